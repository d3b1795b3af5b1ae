"""The torch language: what programs understand of PyTorch. What it does not know runs as an opaque operation."""
# ruff: noqa: F403, I001  (each family says in its __all__ what it defines; the names of functions come first)

from typing import Any

import torch

import thunder_torch._internals_needed  # noqa: F401  (first, so that what PyTorch lacks fails no other import)
from thunder_torch.activation import *
from thunder_torch.attention import *
from thunder_torch.comparison import *
from thunder_torch.conditional import *
from thunder_torch.conversion import *
from thunder_torch.convolution import *
from thunder_torch.creation import *
from thunder_torch.elementwise_binary import *
from thunder_torch.elementwise_unary import *
from thunder_torch.indexing import *
from thunder_torch.linalg import *
from thunder_torch import literals as literals
from thunder_torch.loss import *
from thunder_torch.normalization import *
from thunder_torch.pooling import *
from thunder_torch.random import *
from thunder_torch.reduction import *
from thunder_torch.scan import *
from thunder_torch.shape import *
from thunder_torch.sort import *
from thunder_torch.truth import *
from thunder_torch._supported import warn_if_untested
from thunder_torch._version import __version__
from thunder_torch.autocast import AutocastState, cast_arguments
from thunder_torch.convert import (
    fake_of,
    from_torch_device,
    from_torch_dtype,
    proxy_of,
    to_torch_device,
    to_torch_dtype,
)
from thunder_torch.errors import (
    DataDependentShapeError,
    UnknownMetadataError,
    UnsupportedMutationError,
    WithoutValuesError,
)
from thunder_torch.inplace import Mutation, functional_of, functionalise
from thunder_torch.language import symbol_of, tensor_language, torch_language
from thunder_torch.metadata import metadata_of
from thunder_torch.names import LTORCH, callable_named
from thunder_torch.opaque import drawing_call, opaque, opaque_call
from thunder_torch.sized import sized
from thunder_torch.state import call
from thunder_torch.symbol import SYMBOLS, find_symbol, torchsymbol
from thunder_torch.views import view_argument, viewed


warn_if_untested(torch.__version__)


def __getattr__(name: str) -> Any:
    """Resolve any further function of PyTorch's to its symbol: ``thunder_torch.linalg_inv``."""
    function = callable_named(name)
    if function is None:
        raise AttributeError(f"module 'thunder_torch' has no attribute {name!r}, and PyTorch no function of that name")
    return symbol_of(function)


__all__ = [
    "LTORCH", "SYMBOLS", "AutocastState", "DataDependentShapeError", "Mutation", "UnknownMetadataError",
    "UnsupportedMutationError", "WithoutValuesError", "__version__",
    "call", "cast_arguments", "drawing_call", "fake_of", "find_symbol",
    "from_torch_device", "from_torch_dtype", "functional_of", "functionalise", "metadata_of", "opaque", "opaque_call",
    "proxy_of", "sized", "symbol_of", "tensor_language", "to_torch_device", "to_torch_dtype", "torch_language",
    "torchsymbol", "view_argument", "viewed",
]  # fmt: skip
