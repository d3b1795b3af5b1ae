"""The core language: plain functions over the prims, with PyTorch's promotion, broadcasting, indexing and errors."""
# ruff: noqa: F403  (each family says in its __all__ what its functions are)

from thunder_lang._version import __version__ as __version__
from thunder_lang.comparison import *
from thunder_lang.conditional import *
from thunder_lang.conversion import *
from thunder_lang.creation import *
from thunder_lang.dims import *
from thunder_lang.einsum import *
from thunder_lang.elementwise_binary import *
from thunder_lang.elementwise_unary import *
from thunder_lang.gathering import *
from thunder_lang.indexing import *
from thunder_lang.joining import *
from thunder_lang.language import core as core
from thunder_lang.linalg import *
from thunder_lang.nn import *
from thunder_lang.operands import *
from thunder_lang.promotion import *
from thunder_lang.random import *
from thunder_lang.reduction import *
from thunder_lang.scan import *
from thunder_lang.shape import *
from thunder_lang.sort import *
from thunder_lang.special import *
