"""Forward mode: jvp and linearize."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thunder_autograd import jvp_transform_on_trace
from thunder_functional.arguments import check_differentiable, zeros_like
from thunder_functional.subprograms import Staged, record_call, tensors_in
from thunder_ir import ShapeError, TensorProxy
from thunder_ir.trees import flatten, unflatten


def linearize(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return ``function(*primals)``, and the function from tangents of the primals to the tangent of the result.

    Args:
        function: of tensors, or pytrees of them.
        primals: its arguments, of floating-point or complex dtypes.

    Returns:
        ``(output, pushforward)``; ``pushforward`` takes a pytree like each of the primals. It computes only what
        depends on the tangents.
    """
    check_differentiable(primals, "what jvp differentiates with respect to")
    trace = record_call(function, primals)
    pushed = jvp_transform_on_trace(trace)
    outputs, tangents = pushed.output
    tensors = tensors_in(primals)
    staged = Staged(pushed, tensors)
    output = staged.read(outputs)
    structure = flatten(primals)[1]

    def pushforward(*directions: Any) -> Any:
        given, other = flatten(directions)
        if structure != other:
            raise TypeError(f"the tangents must have the structure of the primals, {structure}, not {other}")
        results = iter(staged.finish([_tangent(p, t) for p, t in zip(tensors, given, strict=True)], tangents))
        leaves, out = flatten(output)
        return unflatten(out, [_filled(leaf, results) for leaf in leaves])

    return output, pushforward


def _tangent(primal: TensorProxy, tangent: Any) -> TensorProxy:
    if tangent is None:
        return zeros_like(primal)
    if tuple(tangent.shape) != tuple(primal.shape) or tangent.dtype is not primal.dtype:
        raise ShapeError(f"a tangent of {primal.type_string} cannot be {tangent.type_string}")
    return tangent  # type: ignore[no-any-return]


def _filled(leaf: Any, results: Any) -> Any:
    if not isinstance(leaf, TensorProxy):
        return None
    tangent = next(results)
    return zeros_like(leaf) if tangent is None else tangent


def jvp(function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return ``function(*primals)`` and its derivative along ``tangents``.

    Args:
        function: of tensors, or pytrees of them.
        primals: its arguments, of floating-point or complex dtypes.
        tangents: a pytree like each of the primals; ``None`` for a tensor whose tangent is zero.

    Returns:
        The output and its tangent, a pytree like it.

    Raises:
        DTypeError: a primal has no derivative.
        ShapeError: a tangent is not like its primal.

    Example:
        >>> from thunder_functional import jvp
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_prims import sin
        >>> print(trace_of(lambda x, dx: jvp(sin, (x,), (dx,)), Tensor((2,)), Tensor((2,))))
        def program(x: "float32[2]", dx: "float32[2]"):
            t2 = prims.sin(x)  # float32[2]
            t3 = prims.cos(x)  # float32[2]
            t4 = prims.mul(dx, t3)  # float32[2]
            return (t2, t4)
    """
    output, pushforward = linearize(function, *primals)
    return output, pushforward(*tangents)
