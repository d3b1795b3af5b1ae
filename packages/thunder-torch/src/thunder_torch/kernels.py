"""Which calls PyTorch has no kernel for, though it tells their metadata: of tensors of some dtypes."""

from __future__ import annotations

import math
import warnings

import torch

from thunder_ir import BoundSymbol, OpTags, TensorProxy, flat_proxies, value_of
from thunder_torch.memo import Memo, arguments_key
from thunder_torch.specs import at_values
from thunder_torch.trials import succeeds
from thunder_torch.unknown_sizes import has_unknown_sizes

LARGEST = 1 << 16  # elements in all arguments together up to which a call is tried
_LACKING = Memo()


def lacks_kernel(bound: BoundSymbol) -> bool:
    """Whether a call raises, as far as a trial on real tensors of made-up values, of the sizes at hand, tells.

    Only calls of few elements are tried, on the CPU. What raises for other reasons is taken for one, too.

    Example:
        >>> import torch
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_torch import symbol_of
        >>> from thunder_torch.kernels import lacks_kernel
        >>> trace = trace_of(lambda x: symbol_of(torch.argmax)(x), Tensor((2, 3), "bool8"))
        >>> lacks_kernel(trace.bound_symbols[0])
        True
    """
    function = bound.symbol.origin
    proxies = flat_proxies((bound.args, bound.kwargs))
    tensors = [p for p in proxies if isinstance(p, TensorProxy)]
    if function is None or bound.has_tag(OpTags.VIEW) or not tensors or len(tensors) < len(proxies):
        return False
    if has_unknown_sizes(tensors) or sum([math.prod(map(value_of, t.shape)) for t in tensors]) > LARGEST:
        return False
    args, kwargs = at_values((bound.args, bound.kwargs))
    key = arguments_key(function, args, kwargs)
    if key is None:
        return False
    found: bool | None = _LACKING.get(key)
    if found is None:
        with torch.autocast("cpu", enabled=False), warnings.catch_warnings(action="ignore"):
            found = not succeeds(function, args, kwargs)
        _LACKING.keep(key, found)
    return found
