"""Reverse mode: vjp, grad, value_and_grad."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from thunder_autograd import differentiable_outputs, grad_transform_on_trace
from thunder_functional.arguments import ArgNums, check_differentiable, constant_like, function_of_chosen, zeros_like
from thunder_functional.subprograms import Staged, record_call, tensors_in
from thunder_ir import DTypeError, ShapeError, TensorProxy, flat_proxies
from thunder_ir.passes import leading_to
from thunder_ir.trees import flatten, unflatten


def vjp(function: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return ``function(*primals)``, and the function from cotangents of the result to those of the primals.

    Args:
        function: of tensors, or pytrees of them.
        primals: its arguments, of floating-point or complex dtypes.
        has_aux: whether the function returns a pair, of which only the first is differentiated.

    Returns:
        ``(output, pullback)``, or ``(output, pullback, aux)``. ``pullback`` takes a pytree like the output, with
        ``None`` for a cotangent that is zero, and returns a tuple with a pytree like each of the primals.

    Raises:
        DTypeError: a primal has no derivative.

    Example:
        >>> from thunder_functional import vjp
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_prims import sin
        >>> def program(x, dy):
        ...     y, pullback = vjp(sin, x)
        ...     return y, pullback(dy)
        >>> print(trace_of(program, Tensor((2,)), Tensor((2,))))
        def program(x: "float32[2]", dy: "float32[2]"):
            t2 = prims.sin(x)  # float32[2]
            t3 = prims.cos(x)  # float32[2]
            t4 = prims.mul(dy, t3)  # float32[2]
            return (t2, (t4,))
    """
    check_differentiable(primals, "what vjp differentiates with respect to")
    trace = record_call(function, primals)
    result = trace.output
    if has_aux:
        result, aux = _pair(trace.output)
    joint = grad_transform_on_trace(
        trace.replace(output=(result, None)), wanted={p.name for p in trace.inputs}, runs_whole=lambda bound: False
    )
    takes = differentiable_outputs(joint)
    aux_read = flat_proxies(aux) if has_aux else []
    staged = Staged(_keeping(joint, trace, aux_read), tensors_in(primals))
    structure = flatten(primals)[1]
    output = staged.read(joint.output[0][0])

    def pullback(cotangents: Any) -> tuple[Any, ...]:
        given = _cotangents(output, cotangents, takes)
        gradients = staged.finish(given, joint.output[1])
        filled = [zeros_like(p) if g is None else g for g, p in zip(gradients, tensors_in(primals), strict=True)]
        return unflatten(structure, filled)  # type: ignore[no-any-return]

    return (output, pullback, staged.read(aux)) if has_aux else (output, pullback)


def _keeping(joint: Any, trace: Any, read: list[Any]) -> Any:
    """Return the joint program with the calls that compute ``read``, which it dropped as dead."""
    made = {p.name for b in joint.bound_symbols for p in b.outputs} | {p.name for p in joint.inputs}
    missing = {p.name for p in read} - made
    dropped = [b for b in trace.bound_symbols if made.isdisjoint([p.name for p in b.outputs])]
    extra, _ = leading_to(dropped, missing)
    return joint.replace(bound_symbols=(*joint.bound_symbols, *extra)) if extra else joint


def _pair(output: Any) -> tuple[Any, Any]:
    if not isinstance(output, tuple) or len(output) != 2:
        raise TypeError("with has_aux=True the function must return a pair: what is differentiated, and the rest")
    return output


def _cotangents(output: Any, cotangents: Any, takes: tuple[bool, ...]) -> list[TensorProxy]:
    """Return the cotangents of the outputs that take one, zeros for those not given; check the rest."""
    leaves, structure = flatten(output)
    given, other = flatten(cotangents)
    if structure != other:
        raise TypeError(f"the cotangents must have the structure of the output, {structure}, not {other}")
    flags = iter(takes)
    chosen_ones = []
    for leaf, cotangent in zip(leaves, given, strict=True):
        if not isinstance(leaf, TensorProxy) or not next(flags):
            continue
        if cotangent is None:
            cotangent = zeros_like(leaf)
        if tuple(cotangent.shape) != tuple(leaf.shape):
            raise ShapeError(f"a cotangent of {leaf.type_string} cannot be {cotangent.type_string}")
        if cotangent.dtype is not leaf.dtype:
            raise DTypeError(f"a cotangent of {leaf.type_string} cannot be {cotangent.type_string}")
        chosen_ones.append(cotangent)
    return chosen_ones


def value_and_grad(
    function: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False
) -> Callable[..., tuple[Any, Any]]:
    """Return a function that computes ``function`` and its gradient.

    Args:
        function: returns a real number: a tensor without dimensions. With ``has_aux``, a pair of it and anything else.
        argnums: with respect to which positional arguments; for several the gradient is a tuple.
        has_aux: whether the function returns a pair.

    Returns:
        A function that returns ``(value, gradient)``; with ``has_aux``, ``((value, aux), gradient)``.

    Raises:
        ShapeError: when called, if the value has dimensions.
        DTypeError: when called, if the value is not real, or an argument has no derivative.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        positions, of_chosen = function_of_chosen(function, argnums, args, kwargs)
        value, pullback, *aux = vjp(of_chosen, *[args[p] for p in positions], has_aux=has_aux)
        gradients = pullback(_one(value))
        gradient = gradients[0] if isinstance(argnums, int) else gradients
        return ((value, aux[0]) if has_aux else value), gradient

    return run


def _one(value: Any) -> TensorProxy:
    if not isinstance(value, TensorProxy) or value.ndim:
        shown = value.type_string if isinstance(value, TensorProxy) else type(value).__name__
        raise ShapeError(f"grad needs a function that returns a tensor without dimensions, got {shown}")
    if not value.dtype.is_floating:
        raise DTypeError(f"grad needs a function that returns a real number, got {value.type_string}")
    return constant_like(value, 1)


def grad(function: Callable[..., Any], argnums: ArgNums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of ``function``.

    Args:
        function, argnums, has_aux: see :func:`value_and_grad`.

    Returns:
        A function that returns the gradient; with ``has_aux``, ``(gradient, aux)``.

    Example:
        >>> from thunder_functional import grad
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_prims import sin
        >>> len(trace_of(grad(grad(sin)), Tensor(())).bound_symbols) > 0
        True
    """
    both = value_and_grad(function, argnums, has_aux)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return run
