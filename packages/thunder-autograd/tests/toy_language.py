"""A small language with rules and NumPy implementations, to test machinery that knows no operation."""

from __future__ import annotations

from typing import Any

import numpy as np

from thunder_autograd import grad_transform_on_trace, vjp_rule
from thunder_ir import Language, OpTags, Symbol, Tensor, TensorProxy, Trace, dtypes, trace_of
from thunder_ir.trees import tree_map

toy = Language("toy")
RUNS: dict[Symbol, Any] = {}


def operation(*tags: Any, method: str = "", run: Any = None, body: Any = None, origin: Any = None) -> Any:
    """Make a symbol of a meta function, or of a decomposition."""

    def make(function: Any) -> Symbol:
        symbol = Symbol(
            function.__name__, "toy", meta=None if body else function, decomposition=function if body else None,
            tags=frozenset(tags), language=toy, origin=origin,
        )  # fmt: skip
        RUNS[symbol] = run
        if method:
            toy.method(method)(symbol)
        return symbol

    return make


def _first(a: Any, b: Any) -> TensorProxy:
    return (a if isinstance(a, TensorProxy) else b).like()


@operation(OpTags.ELEMENTWISE, method="add", run=np.add)
def add(a, b):
    return _first(a, b)


@operation(OpTags.ELEMENTWISE, method="sub", run=np.subtract)
def sub(a, b):
    return _first(a, b)


@operation(OpTags.ELEMENTWISE, method="mul", run=np.multiply)
def mul(a, b):
    return _first(a, b)


@operation(OpTags.ELEMENTWISE, run=np.sin)
def sin(a):
    return a.like()


@operation(OpTags.ELEMENTWISE, run=np.cos)
def cos(a):
    return a.like()


@operation(OpTags.ELEMENTWISE, run=np.tanh)
def tanh(a):
    return a.like()


@operation(run=np.copy)
def copy(a):
    return a.like()


@operation(OpTags.ELEMENTWISE, run=lambda a: a * 3)
def ruleless(a):
    return a.like()


@operation(OpTags.MATMUL, run=np.matmul)
def matmul(a, b):
    return a.like(shape=(a.shape[0], b.shape[1]))


@operation(OpTags.SHAPE_OP, OpTags.VIEW, run=np.transpose)
def transpose(a):
    return a.like(shape=a.shape[::-1])


@operation(OpTags.SHAPE_OP, OpTags.VIEW, OpTags.MAY_COPY, run=np.ascontiguousarray)
def reshaped(a):
    return a.like()


@operation(OpTags.REDUCTION, run=lambda a: np.sum(a, axis=0))
def sum0(a):
    return a.like(shape=a.shape[1:])


@operation(OpTags.VIEW, run=lambda a, n: np.broadcast_to(a, (n, *a.shape)))
def expand(a, n):
    return a.like(shape=(n, *a.shape))


@operation(OpTags.ELEMENTWISE, run=lambda a: (np.sin(a), np.cos(a)))
def sincos(a):
    return a.like(), a.like()


@operation(OpTags.CONSTANT_FOR_DERIVATIVE, OpTags.ELEMENTWISE, run=lambda a: a)
def detach(a):
    return a.like()


@operation(OpTags.RANDOM, run=lambda a: np.random.default_rng(0).random(a.shape))
def noise(a):
    return a.like()


@operation(OpTags.ELEMENTWISE, OpTags.CONSTANT_FOR_DERIVATIVE, run=lambda a: a > 0.5)
def above(a):
    return a.like(dtype=dtypes.bool8)


@operation(OpTags.ELEMENTWISE, OpTags.CONSTANT_FOR_DERIVATIVE, run=np.equal)
def equal(a, b):
    return a.like(dtype=dtypes.bool8)


@operation(OpTags.REDUCTION, run=lambda a: np.max(a, axis=0))
def max0(a):
    return a.like(shape=a.shape[1:])


@operation(OpTags.ELEMENTWISE, run=lambda m, a: np.where(m, a, 0.0))
def masked(m, a):
    return a.like()


@vjp_rule(add)
def add_vjp(a, b):
    return add(a, b), lambda dy: (dy, dy)


@vjp_rule(sub)
def sub_vjp(a, b):
    return sub(a, b), lambda dy: (dy, mul(dy, -1.0))


@vjp_rule(mul)
def mul_vjp(a, b):
    return mul(a, b), lambda dy: (dy * b, dy * a)


@vjp_rule(sin)
def sin_vjp(a):
    return sin(a), lambda dy: dy * cos(a)


@vjp_rule(cos)
def cos_vjp(a):
    return cos(a), lambda dy: dy * sin(a) * -1.0


@vjp_rule(tanh)
def tanh_vjp(a):
    y = tanh(a)
    return y, lambda dy: dy * (1.0 - y * y)


@vjp_rule(matmul)
def matmul_vjp(a, b):
    return matmul(a, b), lambda dy: (matmul(dy, transpose(b)), matmul(transpose(a), dy))


@vjp_rule(transpose)
def transpose_vjp(a):
    return transpose(a), lambda dy: transpose(dy)


@vjp_rule(reshaped)
def reshaped_vjp(a):
    return reshaped(a), lambda dy: reshaped(dy)


@vjp_rule(sum0)
def sum0_vjp(a):
    return sum0(a), lambda dy: expand(dy, a.shape[0])


@vjp_rule(max0)
def max0_vjp(a):
    y = max0(a)
    return y, lambda dy: masked(equal(a, expand(y, a.shape[0])), expand(dy, a.shape[0]))


@vjp_rule(expand)
def expand_vjp(a, n):
    return expand(a, n), lambda dy: sum0(dy)


@vjp_rule(masked)
def masked_vjp(m, a):
    return masked(m, a), lambda dy: (None, masked(m, dy))


@vjp_rule(sincos)
def sincos_vjp(a):
    s, c = sincos(a)

    def pullback(ds, dc):
        if ds is None:
            return mul(dc, s) * -1.0
        return ds * c if dc is None else ds * c - dc * s

    return (s, c), pullback


@operation(body=True, origin=np.sinc, run=lambda a: np.sin(a) * np.tanh(a))
def wave(a):
    """A composite whose pullbacks read two intermediates that are cheap."""
    return sin(a) * tanh(a)


@operation(body=True, origin=np.dot, run=lambda a, w: np.tanh(a @ w) * 2)
def layer(a, w):
    """A composite whose pullbacks read an intermediate that is expensive."""
    return tanh(matmul(a, w)) * 2.0


@operation(body=True, run=lambda a: a * a)
def square(a):
    """A composite whose pullback reads only its input."""
    return a * a


@operation(body=True, origin=np.cbrt, run=lambda a: np.sin(a * a) * np.tanh(a * a))
def nested(a):
    """A composite of composites."""
    return wave(square(a))


@operation(body=True, origin=np.random, run=None)
def dropout(a):
    """A composite that draws random numbers."""
    return masked(above(noise(a)), a)


def traced(function: Any, *shapes: Any, requires_grad: Any = None) -> Trace:
    flags = requires_grad or [True] * len(shapes)
    return trace_of(
        function, *[Tensor(s, "float64", requires_grad=f) for s, f in zip(shapes, flags, strict=True)], language=toy
    )


def joint_of(function: Any, *shapes: Any, **options: Any) -> Trace:
    return grad_transform_on_trace(traced(function, *shapes), **options)


def run(trace: Trace, *arguments: Any) -> Any:
    """Run a trace on arrays, call by call."""
    values = dict(zip([p.name for p in trace.inputs], arguments, strict=True))

    def value(x: Any) -> Any:
        return values[x.name] if isinstance(x, TensorProxy) else x

    for bound in trace.bound_symbols:
        result = RUNS[bound.symbol](*tree_map(value, list(bound.args)))
        results = result if isinstance(bound.output, tuple) else (result,)
        for proxy, item in zip(bound.outputs, results, strict=True):
            assert proxy.name not in values, f"{proxy.name} is defined twice"
            assert np.shape(item) == proxy.shape
            values[proxy.name] = item
    return tree_map(value, trace.output)


def texts(trace: Trace) -> list[str]:
    """The calls of a trace by name, in order."""
    return [bound.symbol.name for bound in trace.bound_symbols]


def numeric_gradients(function: Any, arguments: Any, cotangents: Any, step: float = 1e-6) -> list[Any]:
    """Gradients of the sum of outputs times cotangents by central differences."""

    def loss(*values: Any) -> float:
        out = run(function, *values)
        outs = out if isinstance(out, tuple) else (out,)
        return float(sum(np.sum(o * c) for o, c in zip(outs, cotangents, strict=True)))

    gradients = []
    for at, argument in enumerate(arguments):
        gradient = np.zeros_like(argument)
        for index in np.ndindex(*argument.shape):
            moved = [a.copy() for a in arguments]
            moved[at][index] += step
            high = loss(*moved)
            moved[at][index] -= 2 * step
            gradient[index] = (high - loss(*moved)) / (2 * step)
        gradients.append(gradient)
    return gradients
