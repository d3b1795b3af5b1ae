"""The closed set of operations that every transform knows, each with its rules beside it."""
# ruff: noqa: F403  (each family says in its __all__ what its prims are)

from thunder_prims._version import __version__ as __version__
from thunder_prims.attention import *
from thunder_prims.comparison import *
from thunder_prims.complex_numbers import *
from thunder_prims.conditional import *
from thunder_prims.conversion import *
from thunder_prims.convolution import *
from thunder_prims.creation import *
from thunder_prims.debug import *
from thunder_prims.elementwise_binary import *
from thunder_prims.elementwise_unary import *
from thunder_prims.factorization import *
from thunder_prims.fft import *
from thunder_prims.gathering import *
from thunder_prims.indexing import *
from thunder_prims.keeping import tidy_apart as tidy_apart
from thunder_prims.linalg import *
from thunder_prims.nn import *
from thunder_prims.numbers import *
from thunder_prims.pooling import *
from thunder_prims.prim import PRIMS as PRIMS
from thunder_prims.prim import prim as prim
from thunder_prims.prim import strict as strict
from thunder_prims.random import *
from thunder_prims.random import replay as replay
from thunder_prims.reduction import *
from thunder_prims.scan import *
from thunder_prims.shape import *
from thunder_prims.sort import *
from thunder_prims.special import *
from thunder_prims.tidy import tidy as tidy
from thunder_prims.windows import *
