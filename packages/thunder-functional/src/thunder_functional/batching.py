"""vmap: a function of one example for a batch of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from thunder_functional.subprograms import put, record_call
from thunder_ir import DimensionError, ShapeError, TensorProxy
from thunder_ir.trees import flatten, unflatten
from thunder_prims import broadcast_in_dim, transpose
from thunder_vmap import batch_transform_on_trace
from thunder_vmap.batching import Randomness


def vmap(
    function: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: Randomness = "error"
) -> Callable[..., Any]:
    """Return a function that computes ``function`` for each example of a batch, all in one.

    Args:
        function: of tensors, or pytrees of them, for one example.
        in_dims: where arguments have their batch dimension: one number for all, or a tuple with a number or a pytree of
            numbers for each; ``None`` for what all examples share.
        out_dims: where results get it, one for all or a pytree like the output.
        randomness: what random operations do: ``"error"`` refuses them, ``"different"`` draws for each example apart,
            ``"same"`` once for all.

    Raises:
        ShapeError: when called, if the batches differ in size or there is none.
        DimensionError: when called, if a tensor has no such dimension.

    Example:
        >>> from thunder_functional import vmap
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_prims import sin
        >>> print(trace_of(vmap(sin, out_dims=1), Tensor((8, 3))))
        def program(a0: "float32[8, 3]"):
            t2 = prims.sin(a0)  # float32[8, 3]
            t3 = prims.transpose(t2, (1, 0))  # float32[3, 8]
            return t3
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        leaves = flatten(args)[0]
        dims = [_place(leaf, dim) for leaf, dim in zip(leaves, _spread(in_dims, args, "in_dims"), strict=True)]
        size = _size(leaves, dims)
        tensors = [(leaf, dim) for leaf, dim in zip(leaves, dims, strict=True) if isinstance(leaf, TensorProxy)]
        shapes = [_without(leaf.shape, dim) for leaf, dim in tensors]
        trace = record_call(functools.partial(function, **kwargs), args, shapes)
        batched = batch_transform_on_trace(trace, size, [dim for _, dim in tensors], randomness=randomness)
        outputs, places = batched.output
        result = put(batched.replace(output=outputs), [leaf for leaf, _ in tensors])
        return _placed(result, iter(places), size, out_dims)

    return run


def _spread(dims: Any, tree: Any, what: str) -> list[Any]:
    """Return a dimension for each leaf of a pytree, from one for all or for each of its parts."""
    leaves, structure = flatten(tree)
    if dims is None or isinstance(dims, int):
        return [dims] * len(leaves)
    if isinstance(tree, (tuple, list)) and isinstance(dims, (tuple, list)) and len(tree) == len(dims):
        return [d for part, of in zip(tree, dims, strict=True) for d in _spread(of, part, what)]
    if isinstance(tree, dict) and isinstance(dims, dict) and tree.keys() == dims.keys():
        return [d for key, part in tree.items() for d in _spread(dims[key], part, what)]
    raise ValueError(f"{what} must be a number, None, or such for each part of {structure}; got {dims!r}")


def _place(leaf: Any, dim: int | None) -> int | None:
    if dim is None or not isinstance(leaf, TensorProxy):
        return None
    if not -leaf.ndim <= dim < leaf.ndim:
        raise DimensionError(f"vmap over dimension {dim} of {leaf.type_string}, which does not have it")
    return dim % leaf.ndim


def _size(leaves: list[Any], dims: list[int | None]) -> Any:
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ShapeError("vmap needs at least one tensor with a batch dimension; in_dims gives none")
    for size in sizes[1:]:
        if size != sizes[0]:
            raise ShapeError(f"vmap over batches of different sizes: {', '.join(map(str, sizes))}")
    return sizes[0]


def _without(shape: tuple[Any, ...], dim: int | None) -> tuple[Any, ...]:
    return shape if dim is None else (*shape[:dim], *shape[dim + 1 :])


def _placed(result: Any, places: Any, size: Any, out_dims: Any) -> Any:
    """Return the results with their batch dimensions where they are wanted."""
    leaves, structure = flatten(result)
    wanted = _spread(out_dims, result, "out_dims")
    return unflatten(
        structure,
        [
            _moved(leaf, next(places), dim, size) if isinstance(leaf, TensorProxy) else leaf
            for leaf, dim in zip(leaves, wanted, strict=True)
        ],
    )


def _moved(tensor: TensorProxy, place: int | None, wanted: int | None, size: Any) -> TensorProxy:
    if wanted is None:
        if place is not None:
            raise ValueError("out_dims is None for a result that differs between the examples of a batch")
        return tensor
    ndim = tensor.ndim + (place is None)
    if not -ndim <= wanted < ndim:
        raise DimensionError(f"out_dims asks for dimension {wanted} of a result that has {ndim}")
    wanted %= ndim
    if place is None:
        shape = (*tensor.shape[:wanted], size, *tensor.shape[wanted:])
        return broadcast_in_dim(tensor, shape, tuple([d for d in range(ndim) if d != wanted]))
    order = [d for d in range(ndim) if d != place]
    order.insert(wanted, place)
    return tensor if order == sorted(order) else transpose(tensor, tuple(order))
