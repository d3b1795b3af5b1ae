"""The numpy language: the core of the array API under NumPy's names, with NumPy's promotion."""
# ruff: noqa: F403  (each family says in its __all__ what its functions are)

import math

from thunder_ir.dtypes import bool8 as bool8
from thunder_ir.dtypes import complex64 as complex64
from thunder_ir.dtypes import complex128 as complex128
from thunder_ir.dtypes import float16 as float16
from thunder_ir.dtypes import float32 as float32
from thunder_ir.dtypes import float64 as float64
from thunder_ir.dtypes import int8 as int8
from thunder_ir.dtypes import int16 as int16
from thunder_ir.dtypes import int32 as int32
from thunder_ir.dtypes import int64 as int64
from thunder_ir.dtypes import uint8 as uint8
from thunder_ir.dtypes import uint16 as uint16
from thunder_ir.dtypes import uint32 as uint32
from thunder_ir.dtypes import uint64 as uint64
from thunder_lang.numpy import manipulation
from thunder_lang.numpy.elementwise import *
from thunder_lang.numpy.language import numpy as numpy
from thunder_lang.numpy.manipulation import *
from thunder_lang.numpy.promotion import *
from thunder_lang.numpy.statistics import *

bool_ = bool8
array = manipulation.asarray
e, inf, nan, pi, newaxis = math.e, math.inf, math.nan, math.pi, None
