"""Reports about programs."""

import pytest
import torch

from thunder_examine import examine, saved_for_backward
from thunder_frontend import jit


def test_what_is_saved_is_told_with_reasons(capsys):
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.Linear(8, 2))
    compiled = jit(module)
    compiled(torch.randn(16, 4)).sum().backward()
    report = saved_for_backward(compiled)
    assert report.saved_bytes > 0
    assert all(d.why for d in report.decisions)
    report.print()
    assert "bytes saved" in capsys.readouterr().out
    assert "float32[16, 8]" in str(report)


def test_a_program_without_gradients_saves_nothing():
    compiled = jit(lambda x: x + 1)
    with pytest.raises(RuntimeError, match="not called yet"):
        saved_for_backward(compiled)
    compiled(torch.ones(2))
    with pytest.raises(RuntimeError, match="no backward program"):
        saved_for_backward(compiled)


def test_operations_are_counted(capsys):
    report = examine(torch.nn.Linear(2, 2), torch.ones(1, 2))
    assert [(o.name, o.count) for o in report.operations] == [("ltorch.linear", 1)]
    report.print()
    assert "composed" in capsys.readouterr().out


def test_a_program_that_cannot_be_acquired_says_why():
    report = examine(lambda x: x.numpy().tobytes(), torch.ones(2))
    assert "numpy" in report.problem
