"""A call of a torch function is looked up once, and one handler does it."""

import pytest
import torch

from thunder_executors import to_callable
from thunder_ir import DuplicateRuleError
from thunder_tracing import trace_function
from thunder_tracing.tensors._handlers import HANDLERS, answers


def test_a_function_has_one_handler():
    assert torch.Tensor.size in HANDLERS and torch.tanh not in HANDLERS
    with pytest.raises(DuplicateRuleError, match="are done by"):
        answers(torch.Tensor.size)(lambda calls, tensor: None)


def test_forms_of_calls_come_to_the_usual_one():
    def program(x, y):
        a = x.view_as(y)
        b = torch.add(a, 2, y)  # the old form of alpha
        c, d = torch.atleast_2d(b[0], b)
        return c, d.type_as(y), x.as_strided((2,), (1,))

    x, y = torch.arange(6.0), torch.ones(2, 3)
    with pytest.warns(UserWarning, match="deprecated"):
        expected = program(x, y)
    traced = trace_function(program, x, y)
    torch.testing.assert_close(traced.call(to_callable(traced.trace), x, y), expected)
