"""What the kernels of a program will be called with, before it runs: fake tensors, laid out as real ones will be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from thunder_ir import BoundSymbol, NumberProxy, OpTags, Proxy, TensorProxy, Trace, is_unknown, substitute
from thunder_ir.passes import pair_outputs
from thunder_torch.convert import to_torch_device, to_torch_dtype


class InEager(Protocol):
    """A function that says what computes the same by PyTorch's own functions."""

    @property
    def eager(self) -> Callable[..., Any]: ...


Kernel = TypeVar("Kernel", bound=InEager)
EFFECTS = frozenset({OpTags.IN_PLACE, OpTags.DONT_DCE, OpTags.RANDOM, OpTags.COLLECTIVE, OpTags.DEVICE_SYNC})
"""Of calls that are not made on fake tensors to learn how results are laid out."""


def foreseen(trace: Trace, kernels: type[Kernel]) -> list[tuple[Kernel, list[Any]]]:
    """Return the kernels of a program with what each will be called with, where that is known.

    Numbers have the values at hand. Strides are those that the program tells; where it does not, the call that makes a
    tensor is made on fake tensors, if it is one of PyTorch's functions or a kernel. Cotangents, and other inputs of
    unknown strides, are thought to be laid out in order.

    Args:
        trace: a program, ready to run.
        kernels: the class of those of its functions that are asked for.
    """
    known: dict[str, Any] = {}
    found: list[tuple[Kernel, list[Any]]] = []
    with FakeTensorMode():
        _learn(trace.inputs, known, in_order=True)
        for bound in trace.bound_symbols:
            function = bound.symbol.implementation
            inputs = [known.get(p.name) for p in bound.inputs]
            is_known = None not in inputs
            if isinstance(function, kernels) and is_known:
                found.append((function, inputs))
            _learn(bound.outputs, known, in_order=bound.has_tag(OpTags.PROLOGUE))
            if is_known and any([isinstance(p, TensorProxy) and p.name not in known for p in bound.outputs]):
                _run(bound, function.eager if isinstance(function, kernels) else _pytorchs(bound), known)
    return found


def _learn(proxies: Sequence[Proxy], known: dict[str, Any], in_order: bool) -> None:
    """Keep what proxies say of themselves: the values of numbers, and tensors whose strides are known."""
    for p in proxies:
        if isinstance(p, NumberProxy):
            if not is_unknown(p):
                known[p.name] = p.value
        elif isinstance(p, TensorProxy) and (p.strides is not None or in_order):
            shape, strides = substitute((tuple(p.shape), p.strides), known)
            if all([type(n) is int for n in (*shape, *(strides or ()))]):
                made = torch.empty(shape, dtype=to_torch_dtype(p.dtype), device=to_torch_device(p.device))
                known[p.name] = made if strides is None else made.new_empty_strided(shape, strides)


def _pytorchs(bound: BoundSymbol) -> Callable[..., Any] | None:
    """Return the function of PyTorch that a call without effects is one of."""
    has_effects = EFFECTS & {*bound.symbol.tags, *bound.tags}
    return None if has_effects or not bound.symbol.path.startswith("torch.") else bound.symbol.implementation


def _run(bound: BoundSymbol, function: Callable[..., Any] | None, known: dict[str, Any]) -> None:
    """Make a call on fake tensors and keep what it returns."""
    if function is not None:
        try:
            made = function(*substitute(bound.args, known), **substitute(bound.kwargs, known))
        except RuntimeError:  # what it returns depends on data, or fake tensors have no such function
            return
        pair_outputs(bound.output, made, known)
