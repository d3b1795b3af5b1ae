"""Sizes that an operation's result decides: read off it, and checked, where it leaves the operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_autograd import jvp_rule, vjp_rule
from thunder_ir import IntegerProxy, OpTags, Symbol, TensorProxy, Unknown, current_builder, is_unknown
from thunder_ir.unknown import Terms
from thunder_lang.language import core
from thunder_torch.errors import DataDependentShapeError
from thunder_torch.names import LTORCH
from thunder_torch.running import read_sizes
from thunder_torch.specs import map_tensors, tensors_of
from thunder_vmap import batching_rule


def _sized_meta(a: TensorProxy, claimed: tuple[Any, ...]) -> tuple[Any, ...]:
    shape, numbers, named = [], [], {}
    for size, claim in zip(a.shape, claimed, strict=True):
        if claim is None:
            unknown = size.unknown if isinstance(size, IntegerProxy) else None
            what = unknown.what if unknown is not None else "a size of a result"
            upper = unknown.upper if unknown is not None else float("inf")
            claim = IntegerProxy(getattr(size, "value", size), "", Unknown(what, 0, upper))
            numbers.append(claim)
        named[id(size)] = claim
        shape.append(claim)
    result = a.like(shape=tuple(shape))
    result.strides = None if a.strides is None else tuple([_renamed(s, named) for s in a.strides])
    return (result, *numbers)


def _renamed(stride: Any, named: dict[int, Any]) -> Any:
    """Return a stride in terms of the sizes that have names now."""
    if not isinstance(stride, IntegerProxy) or stride.unknown is None or stride.unknown.terms is None:
        return named.get(id(stride), stride)
    terms: Terms = tuple(
        [(tuple([named.get(id(f), f) for f in factors]), count) for factors, count in stride.unknown.terms]
    )
    return IntegerProxy(stride.value, "", Unknown(stride.unknown.what, 0, terms=terms))


sized = Symbol(
    "sized",
    LTORCH,
    meta=_sized_meta,
    tags=frozenset({OpTags.SHAPE_OP, OpTags.VIEW}),
    origin=read_sizes,
    language=core,
    doc="Return a tensor and those of its sizes for which nothing is claimed, having checked the claimed ones.",
)


@vjp_rule(sized)
def sized_vjp(a: TensorProxy, claimed: tuple[Any, ...]) -> tuple[Any, Callable[..., Any]]:
    """``da = dy``."""
    return sized(a, claimed), lambda dy: (dy, None)


@jvp_rule(sized)
def sized_jvp(a: TensorProxy, claimed: Any, da: TensorProxy, *_: Any) -> tuple[Any, Any]:
    """``dy = da``, of the same sizes."""
    output = sized(a, claimed)
    (along,) = sized(da, output[0].shape)
    return output, (along, *[None] * (len(output) - 1))


@batching_rule(sized)
def sized_batching(size: Any, args: tuple[Any, ...], dims: tuple[Any, ...]) -> tuple[Any, Any]:
    """Refuse: each example of a batch would have sizes of its own."""
    refuse_unknown_sizes(args[0])
    output = sized(args[0], (*args[0].shape,))
    return output, (dims[0],)


def refuse_unknown_sizes(output: Any) -> None:
    """Refuse results whose sizes would be others for each example of a batch.

    Raises:
        DataDependentShapeError: there is one.
    """
    for tensor in tensors_of((output,), {}):
        for size in tensor.shape:
            if is_unknown(size):
                raise DataDependentShapeError(
                    f"{size.unknown.what} depends on values and would be another one for each example of a batch; "
                    "use a form with a static shape inside of vmap"
                )


def with_sizes(output: Any) -> Any:
    """Return what an operation returned with names for the sizes that only the run of the program tells.

    Sizes that are computed from earlier ones are checked when the program runs, all others are read.
    """
    known: dict[int, Any] = {}

    def settle(tensor: TensorProxy) -> Any:
        open_sizes = [d for d in tensor.shape if not isinstance(d, int) and not d.name]
        if not open_sizes:
            return tensor
        claimed = tuple([_claim(d, known) for d in tensor.shape])
        result, *numbers = sized(tensor, claimed)
        read = [d for d, claim in zip(tensor.shape, claimed, strict=True) if claim is None]
        known.update({id(d): number for d, number in zip(read, numbers, strict=True)})
        return result

    return map_tensors(settle, output)


def _claim(size: Any, known: dict[int, Any]) -> Any:
    """Return what a size is said to be: a number of the program, or ``None`` where it is to be read."""
    if size.__class__ is int or size.name:
        return size
    found = known.get(id(size))
    if found is not None or size.unknown is None or size.unknown.terms is None:
        return found
    terms = size.unknown.terms
    if any([not f.name and id(f) not in known for factors, _ in terms for f in factors]):
        return None
    total: Any = 0
    for factors, count in terms:
        part: Any = count
        for factor in factors:
            part = part * (factor if factor.name else known[id(factor)])
        total = total + part
    return total


class TorchSymbol(Symbol):
    """A symbol that stands for PyTorch's callables. Sizes that its result decides are values of the program, too."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record a call and return its output proxies."""
        output = super().__call__(*args, **kwargs)
        if output.__class__ is TensorProxy:
            for size in output.shape:
                if size.__class__ is not int:
                    break
            else:
                return output
        return with_sizes(output) if current_builder().recording else output
