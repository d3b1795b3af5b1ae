"""Reports about programs."""

import pytest
import torch

from thunder_examine import examine, saved_for_backward
from thunder_executors import Declined, OperatorExecutor
from thunder_frontend import jit
from thunder_torch import symbol_of


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


def test_everything_that_becomes_of_a_program_is_told(capsys):
    def fn(model, x, scale, mode):
        return model(x).sum() * scale if mode == "sum" else model(x)

    model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.GELU(), torch.nn.Linear(128, 8))
    found = examine(fn, model, torch.randn(32, 64), 3.5, "sum")
    assert found.problem is None and found.splits == ()
    assert found.executors["torch"] >= 4
    assert {("args[2]", "3.5"), ("args[3]", "'sum'")} <= set(found.constants)
    forward, backward = found.facts.parts
    assert len(forward.memory.held) == len(forward.stages[-1].lines) and forward.memory.peak > 0
    assert backward.name == "backward" and any(d["saved"] for d in found.facts.saved)
    found.print()
    shown = capsys.readouterr().out
    for words in ("lines by executor: ", "forward: at most ", "backward: at most ", "for backward", "compiled for"):
        assert words in shown


def test_executors_that_decline_say_why(capsys):
    refusing = OperatorExecutor("refusing")
    refusing.implements(symbol_of(torch.sin), when=lambda x: Declined("it is Monday"))(torch.sin)
    compiled = jit(lambda x: x.sin() + x.sin(), executors=[refusing, "torch"])
    found = examine(compiled, torch.ones(3))
    told = [(d.operation, d.executor, d.reason) for d in found.declined]
    assert told.count(("ltorch.sin", "refusing", "it is Monday")) == 1
    found.print()
    assert "it is Monday" in capsys.readouterr().out


def test_what_runs_in_python_is_told(capsys):
    def fn(x):
        y = x * 2
        return float(y.numpy().tobytes()[0]) + y.sin()

    found = examine(fn, torch.ones(2))
    assert "numpy" in found.problem
    assert any("test_examine.py" in split for split in found.splits)
    assert found.facts is None
    found.print()
    assert "in Python: " in capsys.readouterr().out


def test_a_program_that_cannot_be_acquired_says_why():
    report = examine(lambda x: x.numpy().tobytes(), torch.ones(2))
    assert "numpy" in report.problem
