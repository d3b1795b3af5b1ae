"""The measurement of native code runs, and what it measures is what eager computes."""

import sys

import pytest
import torch

import thunder
from thunder_benchmarks import native
from thunder_benchmarks.tables import marks_of

missing = thunder.get_executor("native").missing


pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")


def test_the_tables(monkeypatch, capsys):
    steps = native.Case("an LSTM", native.Unrolled(4), (torch.randn(2, 1, 4),))
    monkeypatch.setattr(native, "cases", lambda: [steps])
    monkeypatch.setattr(native.throughput, "__defaults__", (0.01,))
    monkeypatch.setattr(native.medians, "__defaults__", (1, 0.001))
    monkeypatch.setattr(native.gains, "__defaults__", (1,))
    monkeypatch.setattr(sys, "argv", ["native"])
    native.main()
    assert "an LSTM" in capsys.readouterr().out


def test_making_counts_the_calls_of_a_program():
    def f(x):
        return torch.tanh(torch.exp(torch.sin(torch.cos(x))))

    count, took = native.making(native.Case("four operations", f, (torch.ones(2),)))
    assert count == 4 and took > 0


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


def test_the_page_gets_new_tables_in_place_of_old_ones(monkeypatch, tmp_path):
    case = native.Case("two operations", native.two_operations, (torch.ones(2), torch.ones(2)))
    monkeypatch.setattr(native, "cases", lambda: [case])
    monkeypatch.setattr(native.throughput, "__defaults__", (0.01,))
    monkeypatch.setattr(native.medians, "__defaults__", (1, 0.001))
    monkeypatch.setattr(native.gains, "__defaults__", (1,))
    page = tmp_path / "page.md"
    begin, end = marks_of("thunder_benchmarks.native")
    page.write_text(f"before\n{begin}old\n{end}after\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["native", "--page", str(page)])
    native.main()
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n") and text.endswith("after\n") and "old" not in text
    assert text.count("| two operations |") == 3


@pytest.mark.parametrize("model", ["gpt2", "llama"])
def test_a_decoded_token_is_that_of_eager(model):
    pytest.importorskip("transformers", minversion="5", reason="its caches are those of transformers 5")
    target = getattr(native, model)(native.Sizes(layers=1, width=16, positions=native.LENGTH)).eval()
    case = native.Decoding(model, target, (torch.tensor([[5]]),))
    calls = []
    for compile in native.COMPILERS.values():
        torch.manual_seed(0)
        calls.append(case.call(compile(target)))
    for _ in range(native.LENGTH + 1):
        found = dict(zip(native.COMPILERS, [call() for call in calls], strict=True))
        torch.testing.assert_close(found.pop("with kernels"), found["eager"])  # kernels round less often
        assert all(torch.equal(result, found["eager"]) for result in found.values())
