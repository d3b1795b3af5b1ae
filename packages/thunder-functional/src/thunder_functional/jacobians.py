"""Matrices of derivatives: jacrev, jacfwd, hessian."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from thunder_functional.arguments import ArgNums, check_differentiable, function_of_chosen, map_leaves
from thunder_functional.batching import vmap
from thunder_functional.forward import linearize
from thunder_functional.reverse import vjp
from thunder_ir import TensorProxy, dtypes
from thunder_ir.trees import flatten, unflatten
from thunder_prims import broadcast_in_dim, convert_element_type, eq, iota, reshape


def jacrev(function: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of ``function``, row by row, in reverse mode.

    Args:
        function: of tensors, or pytrees of them; returns a tensor or a pytree of them.
        argnums: with respect to which positional arguments.

    Returns:
        A function that returns, for each tensor of the output and each of the chosen arguments, a tensor whose shape is
        that of the output followed by that of the argument: a pytree like the output, and at each leaf of it one like
        the arguments.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        positions, of_chosen = function_of_chosen(function, argnums, args, kwargs)
        output, pullback = vjp(of_chosen, *[args[p] for p in positions])
        check_differentiable(output, "what jacrev differentiates")
        leaves, structure = flatten(output)
        rows = []
        for at, leaf in enumerate(leaves):
            of_leaf = functools.partial(_pull_one, pullback, structure, len(leaves), at)
            gradients = vmap(of_leaf)(_basis(leaf))
            of_arguments = gradients[0] if isinstance(argnums, int) else gradients
            rows.append(map_leaves(lambda g, leaf=leaf: reshape(g, (*leaf.shape, *g.shape[1:])), of_arguments))
        return unflatten(structure, rows)

    return run


def _pull_one(pullback: Any, structure: Any, count: int, at: int, cotangent: TensorProxy) -> Any:
    return pullback(unflatten(structure, [cotangent if i == at else None for i in range(count)]))


def jacfwd(function: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of ``function``, column by column, in forward mode.

    Args:
        function, argnums: see :func:`jacrev`, which returns the same.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        positions, of_chosen = function_of_chosen(function, argnums, args, kwargs)
        primals = tuple([args[p] for p in positions])
        output, pushforward = linearize(of_chosen, *primals)
        check_differentiable(output, "what jacfwd differentiates")
        leaves, structure = flatten(primals)
        columns = []
        for at, leaf in enumerate(leaves):
            along = functools.partial(_push_one, pushforward, structure, len(leaves), at)
            tangents = flatten(vmap(along, out_dims=-1)(_basis(leaf)))[0]
            columns.append([reshape(t, (*t.shape[:-1], *leaf.shape)) for t in tangents])
        return _by_output(output, columns, structure, isinstance(argnums, int))

    return run


def _push_one(pushforward: Any, structure: Any, count: int, at: int, tangent: TensorProxy) -> Any:
    return pushforward(*unflatten(structure, [tangent if i == at else None for i in range(count)]))


def _by_output(output: Any, columns: list[list[Any]], structure: Any, single: bool) -> Any:
    """Turn columns by argument into a pytree like the output with one like the arguments at each leaf."""
    leaves, out = flatten(output)
    rows = []
    for at in range(len(leaves)):
        of_arguments = unflatten(structure, [column[at] for column in columns])
        rows.append(of_arguments[0] if single else of_arguments)
    return unflatten(out, rows)


def hessian(function: Callable[..., Any], argnums: ArgNums = 0) -> Callable[..., Any]:
    """Return a function that computes the matrix of second derivatives of ``function``: forward over reverse mode.

    Args:
        function: returns a tensor without dimensions.
        argnums: with respect to which positional arguments.
    """
    return jacfwd(jacrev(function, argnums), argnums)


def _basis(like: TensorProxy) -> TensorProxy:
    """Return the unit tensors of a shape, one for each element, along a dimension in front."""
    count = math.prod(like.shape)
    places = iota(count, 0, 1, dtypes.int64, like.device)
    rows, columns = (broadcast_in_dim(places, (count, count), (dim,)) for dim in (0, 1))
    return reshape(convert_element_type(eq(rows, columns), like.dtype), (count, *like.shape))
