"""A training step by Inductor: what each of its programs needs is compiled before it runs."""

import torch
from torch import nn

import thunder
from thunder_executors_inductor import entry


def test_inductor_compiles_the_kernels_of_each_part_of_a_step_together(monkeypatch):
    together, alone = [], []
    compile_traces, compile_trace = entry.compile_traces, entry.compile_trace
    monkeypatch.setattr(entry, "compile_traces", lambda t, s: together.append(len(t)) or compile_traces(t, s))
    monkeypatch.setattr(entry, "compile_trace", lambda t, s: alone.append(t) or compile_trace(t, s))
    torch.manual_seed(0)
    functions = [nn.GELU(), nn.GELU(approximate="tanh")]
    model = nn.Sequential(*[layer for f in functions for layer in (nn.Linear(8, 8), f, nn.LayerNorm(8))])
    x = torch.randn(4, 8)
    thunder.jit(model, executors=["inductor"])(x).square().sum().backward()
    gradients = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(x).square().sum().backward()
    torch.testing.assert_close(gradients, [p.grad for p in model.parameters()], rtol=1e-4, atol=1e-4)
    assert len(together) == 2 and min(together) > 1 and not alone, (together, len(alone))
