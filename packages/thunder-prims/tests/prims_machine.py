"""A small machine that runs programs of prims with NumPy, and checks rules against it.

``thunder_testing.reference`` says how a prim runs. Every result is compared with what the meta function promised: shape
and dtype.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy_implementations  # noqa: F401  (adds to the reference)

from thunder_autograd import ZERO, jvp_rule, vjp_rule
from thunder_ir import NumberProxy, Symbol, TensorProxy, Trace, dtypes, flat_proxies, record
from thunder_prims import strict
from thunder_prims.creation import zeros_like
from thunder_testing import numpy_dtype, reference
from thunder_vmap import batching_rule

STEP = 1e-6  # of central differences, in float64


def proxy_of(value: Any, name: str) -> Any:
    """A proxy for an array; containers of arrays become containers of proxies; anything else stays."""
    if isinstance(value, np.ndarray):
        return TensorProxy(value.shape, dtypes.dtype(value.dtype.name), name=name)
    if isinstance(value, (tuple, list)) and has_arrays(value):
        return type(value)([proxy_of(v, f"{name}_{i}") for i, v in enumerate(value)])
    return value


def has_arrays(value: Any) -> bool:
    """Whether there is an array in it."""
    return isinstance(value, np.ndarray) or (isinstance(value, (tuple, list)) and any(map(has_arrays, value)))


def arrays_in(value: Any) -> list[Any]:
    """The arrays in nested containers, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    return [a for v in value for a in arrays_in(v)] if isinstance(value, (tuple, list)) else []


def mapped(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """Apply ``function`` to the arrays in nested containers, to others at the same places; leave the rest."""
    if isinstance(value, np.ndarray):
        return function(value, *others)
    if isinstance(value, (tuple, list)) and has_arrays(value):
        return type(value)([mapped(function, *vs) for vs in zip(value, *others, strict=True)])
    return value


def trace_with(function: Callable[..., Any], *arguments: Any) -> Trace:
    """Record ``function`` for arguments like these."""
    proxies = [proxy_of(a, f"x{i}") for i, a in enumerate(arguments)]
    return record(lambda *_: function(*proxies), flat_proxies(proxies), language=strict)


def evaluate(trace: Trace, *arrays: Any) -> Any:
    """Run a program, and check that each value is what its proxy says."""
    values: dict[str, Any] = dict(zip([p.name for p in trace.inputs], arrays, strict=True))

    def read(value: Any) -> Any:
        if isinstance(value, (TensorProxy, NumberProxy)):
            return values[value.name] if value.name else value
        return type(value)([read(v) for v in value]) if isinstance(value, (tuple, list)) else value

    def write(output: Any, result: Any, where: str) -> None:
        if isinstance(output, TensorProxy):
            result = np.asarray(result)
            assert result.shape == output.shape, f"{where} made {result.shape}, promised {output.type_string}"
            assert result.dtype == numpy_dtype(output.dtype), f"{where} made {result.dtype}, not {output.type_string}"
            values[output.name] = result
        elif isinstance(output, NumberProxy):
            values[output.name] = result
        elif isinstance(output, (tuple, list)):
            for o, r in zip(output, result, strict=True):
                write(o, r, where)

    for bound in trace.bound_symbols:
        with np.errstate(all="ignore"):
            result = reference[bound.symbol](*read(bound.args), **bound.kwargs)
        write(bound.output, result, bound.symbol.name)
    return read(trace.output)


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    """Record ``function`` for these arguments and run it."""
    return evaluate(trace_with(function, *arguments), *arrays_in(arguments))


def close(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    """Compare arrays in nested containers."""
    if isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected, strict=True):
            close(a, e, tolerance)
    elif expected is not None:
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def random_like(a: np.ndarray[Any, Any], generator: np.random.Generator) -> Any:
    """A direction in the space of ``a``; zeros (of the same dtype) for an exact one."""
    if a.dtype.kind not in "fc":
        return np.zeros_like(a)
    noise = generator.standard_normal(a.shape)
    return np.asarray(noise + 1j * generator.standard_normal(a.shape) if a.dtype.kind == "c" else noise).astype(a.dtype)


def inner(a: Any, b: Any) -> float:
    """Real inner product of arrays in nested containers; ``None`` is zero, and so is what is exact."""
    if a is None or b is None:
        return 0.0
    if isinstance(a, (tuple, list)):
        return sum(inner(x, y) for x, y in zip(a, b, strict=True))
    if not isinstance(b, np.ndarray) or b.dtype.kind not in "fc":
        return 0.0
    return float(np.sum(np.conj(a) * b).real)


def difference(function: Callable[..., Any], arguments: Any, direction: Any, step: float = STEP) -> Any:
    """The directional derivative of ``function`` by a central difference."""
    ahead = run(function, *mapped(lambda a, d: _step(a, step * d), arguments, direction))
    behind = run(function, *mapped(lambda a, d: _step(a, -step * d), arguments, direction))

    def quotient(p: Any, m: Any) -> Any:
        if isinstance(p, (tuple, list)):
            return tuple([quotient(x, y) for x, y in zip(p, m, strict=True)])
        return np.asarray((p - m) / (2 * step)) if p is not None and np.asarray(p).dtype.kind in "fc" else None

    return quotient(ahead, behind)


def _step(a: Any, by: Any) -> Any:
    return np.asarray(a + by) if a.dtype.kind in "fc" else a  # NumPy makes scalars of arrays without dimensions


def pulled_back(symbol: Symbol, count: int) -> Callable[..., Any]:
    """A function of ``count`` arguments of ``symbol`` and of cotangents, which returns output and gradients."""

    def function(*arguments_and_cotangents: Any) -> Any:
        arguments, cotangents = arguments_and_cotangents[:count], arguments_and_cotangents[count:]
        output, pullback = vjp_rule[symbol](*arguments)
        gradients = pullback(*cotangents)
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        zeros = [zeros_like(a) if g is ZERO else g for g, a in zip(gradients, arguments, strict=False)]
        gradients = tuple(zeros)
        return output, gradients + (None,) * (count - len(gradients))

    return function


def check_vjp(symbol: Symbol, *arguments: Any, tolerance: float = 1e-5, seed: int = 0) -> None:
    """Check the vjp rule against central differences: ``<dy, difference along v> = <gradients, v>``."""
    generator = np.random.default_rng(seed)
    expected = run(symbol, *arguments)
    outputs = expected if isinstance(expected, (tuple, list)) else (expected,)
    cotangents = tuple([random_like(y, generator) if y.dtype.kind in "fc" else None for y in outputs])
    actual, gradients = run(pulled_back(symbol, len(arguments)), *arguments, *cotangents)
    close(actual, expected, 1e-12)
    _check_metadata(arguments, gradients)
    for place, direction in _directions(arguments, generator):
        slope = difference(symbol, arguments, direction)
        slope = slope if isinstance(expected, (tuple, list)) else (slope,)
        along, have = inner(cotangents, slope), inner(gradients, direction)
        np.testing.assert_allclose(have, along, rtol=tolerance, atol=tolerance, err_msg=f"argument {place}")


def _check_metadata(arguments: Any, gradients: Any) -> None:
    for argument, gradient in zip(arguments, gradients, strict=True):
        if isinstance(argument, (tuple, list)) and has_arrays(argument):
            if gradient is not None:
                _check_metadata(argument, gradient)
        elif gradient is not None:
            assert isinstance(argument, np.ndarray), f"a gradient for {argument!r}"
            assert (gradient.shape, gradient.dtype) == (argument.shape, argument.dtype)


def _directions(arguments: Any, generator: np.random.Generator) -> Iterator[tuple[int, Any]]:
    """For each argument with inexact arrays a direction that moves it alone."""
    for place, argument in enumerate(arguments):
        if any(a.dtype.kind in "fc" for a in arrays_in(argument)):
            direction = [mapped(np.zeros_like, a) for a in arguments]
            direction[place] = mapped(lambda a: random_like(a, generator), argument)
            yield place, tuple(direction)


def check_jvp(symbol: Symbol, *arguments: Any, tolerance: float = 1e-5, seed: int = 0) -> None:
    """Check the jvp rule against central differences, along each argument alone and along all together."""
    generator = np.random.default_rng(seed)
    expected = run(symbol, *arguments)
    all_at_once = tuple([mapped(lambda a: random_like(a, generator), a) for a in arguments])
    for _, direction in [*_directions(arguments, generator), (None, all_at_once)]:
        tangents = [_tangent(d) if has_arrays(d) else None for d in direction]
        actual, tangent = run(lambda *both: jvp_rule[symbol](*both), *arguments, *tangents)
        close(actual, expected, 1e-12)
        slope = difference(symbol, arguments, direction)
        if tangent is None:
            close([np.zeros_like(s) for s in np.atleast_1d(slope)], [*np.atleast_1d(slope)], tolerance)
        elif isinstance(slope, tuple):
            close([np.zeros_like(s) if t is None else t for t, s in zip(tangent, slope, strict=True)], slope, tolerance)
        else:
            close(tangent, slope, tolerance)


def _tangent(direction: Any) -> Any:
    """The direction as a rule takes it: ``None`` where it is zero."""
    if isinstance(direction, (tuple, list)):
        return tuple([_tangent(d) for d in direction])
    return direction if direction is not None and direction.any() else None


def check_second_derivative(symbol: Symbol, *arguments: Any, tolerance: float = 1e-4, seed: int = 0) -> None:
    """Check the jvp rules of the program that the vjp rule makes: derivatives of derivatives."""
    generator = np.random.default_rng(seed)
    expected = run(symbol, *arguments)
    outputs = expected if isinstance(expected, (tuple, list)) else (expected,)
    cotangents = tuple([random_like(y, generator) if y.dtype.kind in "fc" else None for y in outputs])
    function = pulled_back(symbol, len(arguments))
    inputs = (*arguments, *cotangents)
    direction = tuple([mapped(lambda a: random_like(a, generator), a) for a in inputs])
    slope = difference(lambda *a: _inexact(function(*a)[1]), inputs, direction)
    trace = trace_with(lambda *a: _inexact(function(*a)[1]), *inputs)
    count = len(arrays_in(inputs))
    tangent = run(
        lambda *both: pushed_forward(trace, both[:count], both[count:]), *arrays_in(inputs), *arrays_in(direction)
    )
    close([np.zeros_like(s) if t is None else t for t, s in zip(tangent, slope, strict=True)], list(slope), tolerance)


def _inexact(gradients: Any) -> tuple[TensorProxy, ...]:
    return tuple([p for p in flat_proxies(gradients) if p.dtype.is_inexact])


def pushed_forward(trace: Trace, inputs: Any, tangents: Any) -> Any:
    """Apply the jvp rule of each call in a program; return the tangents of its outputs."""
    values = dict(zip([p.name for p in trace.inputs], inputs, strict=True))
    along = {p.name: t if p.dtype.is_inexact else None for p, t in zip(trace.inputs, tangents, strict=True)}

    def read(value: Any, table: dict[str, Any], other: Any) -> Any:
        if isinstance(value, TensorProxy):
            return table.get(value.name)
        if isinstance(value, (tuple, list)):
            return type(value)([read(v, table, other) for v in value]) if flat_proxies(value) else other(value)
        return other(value)

    for bound in trace.bound_symbols:
        primals = read(bound.args, values, lambda v: v)
        moved = read(bound.args, along, lambda v: None) if flat_proxies(bound.args) else [None] * len(bound.args)
        if all([along.get(p.name) is None for p in bound.inputs]):
            result, tangent = bound.symbol(*primals), None
        else:
            rule = jvp_rule.get(bound.symbol)
            constant = rule is None and any(tag.name == "CONSTANT_FOR_DERIVATIVE" for tag in bound.symbol.tags)
            result, tangent = (bound.symbol(*primals), None) if constant else jvp_rule[bound.symbol](*primals, *moved)
        if isinstance(bound.output, (tuple, list)):
            parts = tangent if tangent is not None else (None,) * len(bound.output)
            for o, r, t in zip(bound.output, result, parts, strict=True):
                if o is not None:
                    values[o.name], along[o.name] = r, t
        else:
            values[bound.output.name], along[bound.output.name] = result, tangent
    return tuple([along.get(p.name) for p in trace.outputs])


def check_batching(symbol: Symbol, *arguments: Any, size: int = 3, seed: int = 0) -> None:
    """Check the batching rule against a stack of single calls, for each choice of batched arguments.

    The batch dimension is put first, last, or last for every second argument.
    """
    generator = np.random.default_rng(seed)
    places = [i for i, a in enumerate(arguments) if has_arrays(a)]
    for chosen in itertools.chain.from_iterable(itertools.combinations(places, n) for n in range(1, len(places) + 1)):
        for layout in range(3):
            _check_batch(symbol, arguments, set(chosen), layout, size, generator)


def _check_batch(symbol: Symbol, arguments: Any, chosen: set[int], layout: int, size: int, generator: Any) -> None:
    def where_of(place: int, a: Any) -> int:
        return (0, a.ndim, a.ndim * (place % 2))[layout]

    singles: list[list[Any]] = [[] for _ in range(size)]
    stacked, dims = [], []
    for place, argument in enumerate(arguments):
        if place not in chosen:
            for single in singles:
                single.append(argument)
            stacked.append(argument)
            dims.append(mapped(lambda a: None, argument) if has_arrays(argument) else None)
            continue
        versions = [mapped(lambda a: _shuffled(a, generator), argument) for _ in range(size)]
        for single, version in zip(singles, versions, strict=True):
            single.append(version)
        stacked.append(mapped(lambda *vs, p=place: np.stack(vs, where_of(p, vs[0])), *versions))
        dims.append(mapped(lambda a, p=place: where_of(p, a), argument))
    expected = [run(symbol, *single) for single in singles]
    found: list[Any] = []

    def batched(*args: Any) -> Any:
        output, out_dims = batching_rule[symbol](size, args, tuple(dims))
        found.append(out_dims)
        return output

    actual = run(batched, *stacked)
    if isinstance(actual, (tuple, list)):
        for i, (a, d) in enumerate(zip(actual, found[0], strict=True)):
            close(np.moveaxis(a, d, 0), np.stack([e[i] for e in expected]), 1e-12)
    else:
        close(np.moveaxis(actual, found[0], 0), np.stack(expected), 1e-12)


def _shuffled(a: Any, generator: Any) -> Any:
    """Other values from the same set, so that the domain is kept."""
    return generator.permutation(a.ravel()).reshape(a.shape)


def check_rules(symbol: Symbol, *arguments: Any, second: bool = True, tolerance: float = 1e-5) -> None:
    """Check all rules of a prim for these arguments: arrays, numbers and parameters."""
    if "CONSTANT_FOR_DERIVATIVE" not in {tag.name for tag in symbol.tags}:
        check_vjp(symbol, *arguments, tolerance=tolerance)
        check_jvp(symbol, *arguments, tolerance=tolerance)
        if second:
            check_second_derivative(symbol, *arguments, tolerance=10 * tolerance)
    check_batching(symbol, *arguments)
