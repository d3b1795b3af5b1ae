"""The measurement of native code runs, and what it measures is what eager computes."""

import sys

import pytest
import torch

import thunder
from thunder_benchmarks import native

missing = thunder.get_executor("native").missing


pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")


def test_the_tables(monkeypatch, capsys):
    steps = native.Case("an LSTM", native.Unrolled(4), (torch.randn(2, 1, 4),))
    monkeypatch.setattr(native, "cases", lambda: [steps])
    monkeypatch.setattr(native.throughput, "__defaults__", (0.01,))
    monkeypatch.setattr(native.medians, "__defaults__", (1, 0.001))
    monkeypatch.setattr(sys, "argv", ["native"])
    native.main()
    assert "an LSTM" in capsys.readouterr().out


def test_native_programs_compute_what_eager_does():
    unrolled, x = native.Unrolled(4), torch.randn(3, 2, 4)
    compiled = thunder.jit(unrolled, executors=["native"])
    unrolled(x).sum().backward()
    expected = [p.grad.clone() for p in unrolled.parameters()]
    unrolled.zero_grad()
    result = compiled(x)
    result.sum().backward()
    assert torch.equal(result, unrolled(x))
    torch.testing.assert_close([p.grad for p in unrolled.parameters()], expected)
    assert "native_0" in str(thunder.last_traces(compiled)[-1])
    assert "native_0" in str(thunder.last_backward_traces(compiled)[-1])
