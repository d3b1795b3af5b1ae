"""Forms: calls share one where they differ in nothing but which values they are of."""

import pytest
import torch

from thunder_executors import calls_of, execution_traces
from thunder_ir import Tensor, dtypes, trace_of
from thunder_native.registry import written
from thunder_native.runtime import runtime
from thunder_torch import symbol_of, torch_language

ROW, MATRIX = Tensor((4,)), Tensor((2, 2))


def forms(*calls):
    """Return the form of each call, each a torch function and what follows ``x``, ``y`` or both, in one program."""

    def program(x, y):
        named = {"x": x, "y": y}
        return [
            symbol_of(function)(*[named.get(v, v) if type(v) is str else v for v in args]) for function, *args in calls
        ]

    return [form(bound) for bound in calls_in(program, ROW, ROW)]


def calls_in(program, *tensors):
    """Return the calls that a program makes, as they are when native code is made of them."""
    return calls_of(execution_traces(trace_of(program, *tensors, language=torch_language), ["torch"])[-1])


def form(bound, **options):
    """Return the form of one call."""
    return written(bound, runtime().addresses, {}, **options).form


def test_calls_of_other_values_share_a_form():
    first, second = forms((torch.mul, "x", "y"), (torch.mul, "y", "x"))
    assert first is second and first.slots == [(4, 0), (5, 1), (6, 2)]
    assert forms((torch.mul, "x", "y"))[0] is first


@pytest.mark.parametrize(
    "one, other",
    [
        ((torch.mul, "x", "y"), (torch.mul, "x", "x")),
        ((torch.mul, "x", "y"), (torch.div, "x", "y")),
        ((torch.mul, "x", 2.0), (torch.mul, "x", 3.0)),
        ((torch.add, "x", 0.0), (torch.add, "x", -0.0)),
        ((torch.softmax, "x", 0), (torch.softmax, "x", -1)),
        ((torch.pow, "x", 2), (torch.pow, "x", 2.0)),
    ],
)
def test_calls_that_differ_otherwise_have_forms_of_their_own(one, other):
    first, second = forms(one, other)
    assert first is not second


def test_forms_depend_on_sizes_and_dtypes():
    tanh, made = symbol_of(torch.tanh), []
    for tensor in (ROW, MATRIX, Tensor((4,), dtypes.float64), ROW):
        (bound,) = calls_in(tanh, tensor)
        made.append(form(bound))
    assert len({id(form) for form in made}) == 3 and made[0] is made[3]


def test_whether_somebody_sees_the_result_counts():
    (bound,) = calls_in(symbol_of(torch.t), MATRIX)
    seen, inner = [form(bound, inner=i) for i in (False, True)]
    assert seen.asks and not inner.asks
