"""What PyTorch is set to while a program is traced, and what that means for a call.

A tracer lets the user's program set PyTorch's own state (``torch.no_grad()``, ``torch.autocast``, ``torch.device`` and
so on run for real while it is traced). :func:`call` reads that state and makes it part of the program: casts are
recorded, defaults become explicit, what runs without gradients is tagged.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from thunder_ir import DType, OpTags, Symbol, TensorProxy, current_builder
from thunder_torch.around import Around
from thunder_torch.autocast import AutocastState, cast_arguments, is_listed
from thunder_torch.convert import to_torch_dtype
from thunder_torch.memo import default_device_name
from thunder_torch.metadata import metadata_of
from thunder_torch.names import last_name, path_of
from thunder_torch.opaque import opaque
from thunder_torch.randomness import draws
from thunder_torch.specs import tensors_of
from thunder_torch.symbol import find_symbol
from thunder_torch.traits import Trait, has_trait
from thunder_torch.watched_draws import drew

_SDPA = (
    ("MATH", torch._C._get_math_sdp_enabled),
    ("FLASH_ATTENTION", torch._C._get_flash_sdp_enabled),
    ("EFFICIENT_ATTENTION", torch._C._get_mem_efficient_sdp_enabled),
    ("CUDNN_ATTENTION", torch._C._get_cudnn_sdp_enabled),
)
_ALL_SDPA = tuple([name for name, _ in _SDPA])


def sdpa_backends() -> tuple[str, ...]:
    """Return the names of the attention backends that are allowed now."""
    return tuple([name for name, enabled in _SDPA if enabled()])


@dataclass(frozen=True)
class Within(Around):
    """A callable that runs under the state which held where it was traced.

    Args:
        function: what runs.
        autocast: states to enter.
        sdpa: names of the attention backends to allow, or ``None`` to leave them.
    """

    function: Callable[..., Any]
    autocast: tuple[AutocastState, ...] = ()
    sdpa: tuple[str, ...] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with ExitStack() as stack:
            for state in self.autocast:
                stack.enter_context(torch.autocast(state.device_type, to_torch_dtype(state.dtype)))
            if self.sdpa is not None:
                stack.enter_context(sdpa_kernel([getattr(SDPBackend, name) for name in self.sdpa]))
            return self.function(*args, **kwargs)


def call(what: Symbol | Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Record a call of any PyTorch function under PyTorch's present state, and return proxies for its result.

    Args:
        what: a symbol, or any callable of tensors: known ones become their symbol, others opaque operations. It must
            not write to its arguments: see :mod:`thunder_torch.inplace`.
        args, kwargs: of the call, with proxies for tensors.

    Raises:
        Exception: what PyTorch raises for such arguments.

    Example:
        >>> import torch
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_torch import call
        >>> def program(x, y):
        ...     with torch.autocast("cpu", torch.bfloat16):
        ...         return call(torch.matmul, (x, y), {})
        >>> print(trace_of(program, Tensor((2, 3)), Tensor((3,))))
        def program(x: "float32[2, 3]", y: "float32[3]"):
            t0 = ltorch.to(x, torch.bfloat16)  # bfloat16[2, 3]
            t1 = ltorch.to(y, torch.bfloat16)  # bfloat16[3]
            t2 = ltorch.matmul(t0, t1)  # bfloat16[2]
            return t2
    """
    symbol = what if isinstance(what, Symbol) else find_symbol(what)
    if torch._C._is_any_autocast_enabled():
        what, args, kwargs = _under_autocast(symbol or what, args, kwargs)
        symbol = what if isinstance(what, Symbol) else find_symbol(what)
    function = symbol.origin if symbol is not None else what
    if torch._C._len_torch_function_stack() or torch.get_default_dtype() is not torch.float32:
        kwargs = with_defaults(function, args, kwargs)
    tags = () if torch.is_grad_enabled() else (OpTags.CONSTANT_FOR_DERIVATIVE,)
    if last_name(function) == "scaled_dot_product_attention":
        if (allowed := sdpa_backends()) != _ALL_SDPA:
            symbol = opaque(Within(function, sdpa=allowed))
        if draws(function, args, kwargs):
            tags = (*tags, OpTags.RANDOM)
    if symbol is None:
        symbol = opaque(what)
        if not path_of(what) and OpTags.RANDOM not in symbol.tags:
            metadata_of(what, args, kwargs)  # remembered: the call itself asks again
            tags = (*tags, OpTags.RANDOM) if drew(what) else tags
    if not tags:
        return symbol(*args, **kwargs)
    with current_builder().tagged(*tags):
        return symbol(*args, **kwargs)


def _under_autocast(
    what: Symbol | Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    kinds = {t.device.type for t in tensors_of(args, kwargs)}
    states = tuple([s for s in AutocastState.current() if s.device_type in kinds])
    for state in states:
        args, kwargs = cast_arguments(what, args, kwargs, state, convert)
    if isinstance(what, Symbol) and (what.origin is None or OpTags.MATMUL not in what.tags):
        # Nothing inside it is on a list, or it is none of PyTorch's, which autocast would not know.
        return what, args, kwargs
    if states and not any(is_listed(what, s) for s in states):
        function = what.origin if isinstance(what, Symbol) else what
        return Within(function, autocast=states), args, kwargs
    return what, args, kwargs


def convert(tensor: TensorProxy, dtype: DType) -> TensorProxy:
    """Record the conversion of a tensor to a dtype."""
    symbol = find_symbol(torch.Tensor.to) or opaque(torch.Tensor.to)
    converted: TensorProxy = symbol(tensor, to_torch_dtype(dtype))
    return converted


def with_defaults(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a factory function with the default dtype and device made explicit."""
    if not has_trait(function, Trait.CREATES):
        return kwargs
    device = default_device_name()
    if device is not None and kwargs.get("device") is None:
        kwargs = {**kwargs, "device": torch.device(device)}
    if has_trait(function, Trait.OF_DEFAULT_DTYPE) and kwargs.get("dtype") is None:
        is_complex = any(isinstance(a, complex) for a in args)
        default = torch.get_default_dtype()
        kwargs = {**kwargs, "dtype": default.to_complex() if is_complex else default}
    return kwargs
