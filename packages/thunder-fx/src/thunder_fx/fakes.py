"""Fake tensors and symbolic sizes that stand for the inputs of a program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

from thunder_fx.errors import FXError
from thunder_ir import BoolProxy, FloatProxy, IntegerProxy, NumberProxy, Proxy, TensorProxy, is_unknown, substitute
from thunder_torch import to_torch_device, to_torch_dtype


def new_fake_mode() -> FakeTensorMode:
    """Return a mode in which sizes may be symbols, and may depend on values."""
    shapes = ShapeEnv(allow_scalar_outputs=True, allow_dynamic_output_shape_ops=True)
    return FakeTensorMode(allow_non_fake_inputs=True, shape_env=shapes, static_shapes=False)


def fake_inputs(inputs: Sequence[Proxy], mode: FakeTensorMode) -> list[Any]:
    """Return what stands for the inputs of a program.

    Args:
        inputs: tensors and numbers; a number that is a size of a tensor among them is one symbol.
        mode: what the tensors belong to.

    Raises:
        FXError: an input is neither a tensor nor a number, or a size of a tensor is no input.
    """
    numbers = {p.name: fake_number(p, mode) for p in inputs if isinstance(p, NumberProxy)}
    return [numbers[p.name] if p.name in numbers else _fake_tensor(p, numbers, mode) for p in inputs]


def fake_number(proxy: NumberProxy, mode: FakeTensorMode) -> Any:
    """Return a symbol for a number, with the value at hand for a hint; one without a hint if nothing is at hand."""
    shapes: Any = mode.shape_env
    if isinstance(proxy, BoolProxy) or not isinstance(proxy, (IntegerProxy, FloatProxy)):
        raise FXError(f"the input {proxy.name} is a {proxy.python_type.__name__}, which FX graphs have no symbol for")
    if is_unknown(proxy):
        return shapes.create_unbacked_symint() if isinstance(proxy, IntegerProxy) else shapes.create_unbacked_symfloat()
    source = ConstantSource(proxy.name)
    if isinstance(proxy, FloatProxy):
        symbol = shapes.create_unspecified_symbol(proxy.value, source=source, dynamic_dim=DimDynamic.DYNAMIC)
        return shapes.create_symfloatnode(symbol, hint=proxy.value, source=source)
    symbol = shapes.create_symbol(
        proxy.value, source=source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None, positive=None
    )
    return shapes.create_symintnode(symbol, hint=proxy.value, source=source)


def _fake_tensor(proxy: Proxy, numbers: dict[str, Any], mode: FakeTensorMode) -> torch.Tensor:
    if not isinstance(proxy, TensorProxy):
        raise FXError(f"the input {proxy.name} is a {proxy.type_string}; FX graphs take tensors and numbers")
    missing = [d.name or "?" for d in proxy.shape if isinstance(d, Proxy) and d.name not in numbers]
    if missing:
        raise FXError(
            f"the sizes {', '.join(missing)} of the input {proxy.name} ({proxy.type_string}) are no inputs of the "
            "program: pass the program with its symbolic sizes as inputs"
        )
    shape, strides = substitute((tuple(proxy.shape), proxy.strides), numbers)
    dtype, device = to_torch_dtype(proxy.dtype), to_torch_device(proxy.device)
    with mode:
        if proxy.strides is None or any([isinstance(s, Proxy) for s in (*proxy.shape, *proxy.strides)]):
            return torch.empty(shape, dtype=dtype, device=device)  # what has symbolic sizes is laid out in order
        return torch.empty_strided(shape, strides, dtype=dtype, device=device)


__all__ = ["fake_inputs", "fake_number", "new_fake_mode"]
