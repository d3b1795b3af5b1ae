"""Which arguments a transform is about, and the pytrees that they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thunder_ir import DTypeError, TensorProxy
from thunder_ir.trees import flatten, unflatten
from thunder_prims import full

ArgNums = int | Sequence[int]


def chosen(argnums: ArgNums, count: int) -> tuple[int, ...]:
    """Return the positions that ``argnums`` means, counted from the front.

    Raises:
        IndexError: there are not so many arguments.
    """
    positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for position in positions:
        if not -count <= position < count:
            raise IndexError(f"argnums names argument {position}, but the function was called with {count}")
    return tuple([p % count for p in positions])


def function_of_chosen(
    function: Callable[..., Any], argnums: ArgNums, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[int, ...], Callable[..., Any]]:
    """Return the positions that ``argnums`` means, and a function of the arguments there; the others are given."""
    positions = chosen(argnums, len(args))

    def of_chosen(*values: Any) -> Any:
        given = list(args)
        for position, value in zip(positions, values, strict=True):
            given[position] = value
        return function(*given, **kwargs)

    return positions, of_chosen


def check_differentiable(tree: Any, what: str) -> None:
    """Refuse a pytree with leaves that are no tensors of floating-point or complex numbers.

    Raises:
        DTypeError: it has one.
    """
    for leaf in flatten(tree)[0]:
        if not isinstance(leaf, TensorProxy):
            raise DTypeError(f"{what} must be a tensor, or a container of tensors, but has {leaf!r} in it")
        if not leaf.dtype.is_inexact:
            raise DTypeError(f"{what} must be of a floating-point or complex dtype, got {leaf.type_string}")


def zeros_like(a: TensorProxy) -> TensorProxy:
    """Return zeros of the shape, dtype and device of ``a``."""
    return constant_like(a, 0)


def constant_like(a: TensorProxy, value: int) -> TensorProxy:
    """Return a tensor of the shape, dtype and device of ``a`` with one value throughout."""
    kind = complex if a.dtype.is_complex else float if a.dtype.is_inexact else int
    return full(a.shape, kind(value), a.dtype, a.device)


def map_leaves(function: Any, tree: Any, *rest: Any) -> Any:
    """Return the pytree with ``function`` applied to each leaf and those at its place in the others."""
    leaves, structure = flatten(tree)
    others = [flatten(r)[0] for r in rest]
    return unflatten(structure, [function(*each) for each in zip(leaves, *others, strict=True)])
