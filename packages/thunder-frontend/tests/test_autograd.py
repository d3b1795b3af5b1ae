"""What users do with PyTorch's autograd comes out compiled as it does eagerly, errors included."""

import re
import warnings

import autograd_programs_of_independent_results  # noqa: F401  (files programs)
import autograd_programs_of_results  # noqa: F401  (files programs)
import pytest
import second_order_programs  # noqa: F401  (files programs)
import torch
import training_programs  # noqa: F401  (files programs)
from autograd_programs import PROGRAMS
from torch.multiprocessing.reductions import StorageWeakRef

from thunder_frontend import compile_data, jit, last_backward_traces


def outcome(program, wrap):
    """Return what a program returns, or its error in PyTorch's words, the name of the node apart."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program(wrap)
        except Exception as error:
            words = str(error).split("\n")[0].split(", is at version")[0]
            return type(error), re.sub(r"(Compiled|Sin|Exp|Sqrt)(Backward\d?)?", "Node", words)


def kinds(value):
    """Return which tensors in a value require grad."""
    if isinstance(value, (tuple, list)):
        return [kinds(item) for item in value]
    return value.requires_grad if isinstance(value, torch.Tensor) else None


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_do_what_they_do_in_eager(program):
    expected, found = outcome(program, lambda function: function), outcome(program, jit)
    if isinstance(expected, tuple) and expected and isinstance(expected[0], type):
        assert found == expected
    else:
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=3e-6)
        assert kinds(found) == kinds(expected)


def test_nothing_holds_an_input_after_backward():
    x = torch.randn(100, requires_grad=True)
    value = x * 2
    kept = StorageWeakRef(value.untyped_storage())
    y = jit(lambda a: a.sin() * a)(value).sum()
    del value
    assert not kept.expired()
    y.backward()
    assert kept.expired()


def test_of_several_results_only_the_backward_program_that_runs_is_made():
    compiled = jit(lambda a: (a.sin(), a.cos()))
    a = torch.randn(3, requires_grad=True)
    compiled(a)[1].sum().backward()
    torch.testing.assert_close(a.grad, -a.sin())
    (program,) = compile_data(compiled).compiled
    assert not program.computation.backward.is_ready
    assert "cos" in str(last_backward_traces(compiled)[0]) and program.computation.backward.is_ready

    other = jit(lambda a: (a.sin(), a.cos()))
    first, second = other(a)
    (first + second).sum().backward()
    torch.testing.assert_close(a.grad, -a.sin() + a.cos() - a.sin())
    assert compile_data(other).compiled[0].computation.backward.is_ready
