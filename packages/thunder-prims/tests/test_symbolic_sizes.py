"""Metas and rules take sizes that are symbolic: none of them fixes one without need."""

import pytest

import thunder_prims as prims
from thunder_autograd import vjp_rule
from thunder_ir import IntegerProxy, Tensor, number_proxy, trace_of

WINDOW = ((3,), (2,), (1,))

PROGRAMS = {
    "sum": (lambda n: ((n, 3),), lambda x: (prims.sum, x, (0,))),
    "var": (lambda n: ((n, 3),), lambda x: (prims.var, x, (0,), 1)),
    "amax": (lambda n: ((3, n),), lambda x: (prims.amax, x, (1,))),
    "cumsum": (lambda n: ((n, 3),), lambda x: (prims.cumsum, x, 0)),
    "sort": (lambda n: ((n, 3),), lambda x: (prims.sort, x, 0, False, False)),
    "linear": (lambda n: ((n, 5, 3), (4, 3), (4,)), lambda x, w, b: (prims.linear, x, w, b)),
    "matmul": (lambda n: ((n, 5, 3), (n, 3, 4)), lambda a, b: (prims.matmul, a, b)),
    "convolution": (
        lambda n: ((n, 3, 9), (4, 3, 3)),
        lambda x, w: (prims.convolution, x, w, None, (1,), (1,), (1,), False, (0,), 1),
    ),
    "convolution of any length": (
        lambda n: ((2, 3, n), (4, 3, 3)),
        lambda x, w: (prims.convolution, x, w, None, (2,), (1,), (1,), False, (0,), 1),
    ),
    "avg_pool": (lambda n: ((2, 3, n),), lambda x: (prims.avg_pool, x, *WINDOW, False, True, None)),
    "max_pool": (lambda n: ((n, 3, 8),), lambda x: (prims.max_pool, x, *WINDOW, (1,), False)),
    "solve": (lambda n: ((n, 3, 3), (n, 3, 2)), lambda a, b: (prims.solve, a, b)),
    "fft_r2c": (lambda n: ((n, 6),), lambda x: (prims.fft_r2c, x, (1,), "none")),
    "attention": (lambda n: ((2, n, 4),) * 3, lambda q, k, v: (prims.attention, q, k, v, None, True, 0.5)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_for_one_size_holds_for_others(name):
    shapes, call = PROGRAMS[name]

    def program(size, *tensors):
        symbol, *arguments = call(*tensors)
        output, pullback = vjp_rule[symbol](*arguments)
        outputs = output if isinstance(output, tuple) else (output,)
        return output, pullback(*[o if i == 0 else None for i, o in enumerate(outputs)])

    size = number_proxy(6, "n")
    trace = trace_of(program, size, *[Tensor(s, "float64") for s in shapes(size)])
    fixed = [c for c in trace.constraints if c.relation == "eq" and isinstance(c.right, int) and c.holds]
    assert not fixed, "a size has been fixed"
    assert any(isinstance(d, IntegerProxy) for p in trace.outputs for d in p.shape)
