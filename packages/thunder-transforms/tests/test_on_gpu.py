"""Programs as graphs of CUDA itself."""

import copy

import pytest
import torch
from torch.testing import assert_close

from thunder_frontend import jit
from thunder_transforms import CUDAGraphTransform, compile

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device"),
]


def model():
    torch.manual_seed(0)
    layers = (torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 3))
    return torch.nn.Sequential(*layers).cuda()


def trained(run, module):
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    losses = []
    for _ in range(8):
        x, target = torch.randn(4, 6, device="cuda"), torch.randn(4, 3, device="cuda")
        optimizer.zero_grad()
        loss = (run(x) - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses


@pytest.mark.parametrize("way", ["transform", "mode"])
def test_a_model_trains_as_in_eager(way):
    first, second = model(), model()
    graphs = CUDAGraphTransform()
    if way == "transform":
        run = jit(first, executors=["torch"], transforms=[graphs])
    else:
        run = compile(first, mode="reduce-overhead")
    assert_close(trained(run, first), trained(second, second))
    assert_close(list(first.parameters()), list(second.parameters()))
    if way == "transform":
        assert sum(r.replayed for r in graphs.runs) >= 8 and not any(r.reason for r in graphs.runs)


def test_a_program_that_is_called_again_before_its_backward_part_has_eagers_gradients():
    module, graphs = model(), CUDAGraphTransform()
    run = jit(module, executors=["torch"], transforms=[graphs])
    for count in (1, 1, 1, 1, 1, 1, 3, 3, 1):
        inputs = [torch.randn(4, 6, device="cuda") for _ in range(count)]
        for x, y in zip(inputs, [run(x) for x in inputs], strict=True):
            found = torch.autograd.grad(y.square().sum(), list(module.parameters()))
            assert_close(found, torch.autograd.grad(module(x).square().sum(), list(module.parameters())))
    assert any(g.results.lent for s in graphs.runs[0]._seen.values() for g in s.graphs.values())
    assert all(r.replayed for r in graphs.runs)


def test_random_numbers_are_drawn_at_each_replay():
    graphs = CUDAGraphTransform(warm_ups=1)
    run = jit(lambda x: torch.nn.functional.dropout(x * 2, 0.5) + 1, executors=["torch"], transforms=[graphs])
    x = torch.ones(1000, device="cuda")
    drawn = [run(x) for _ in range(5)]
    assert all(not torch.equal(a, b) for a, b in zip(drawn, drawn[1:], strict=False))


def test_graphs_of_several_streams_do_not_share_memory():
    graphs = CUDAGraphTransform(warm_ups=1)
    run = jit(lambda x: (x * 2).exp().sin() + 1, executors=["torch"], transforms=[graphs])
    inputs = [torch.randn(1 << 20, device="cuda") for _ in range(2)]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in inputs]
    found = []
    for _ in range(6):
        for x, stream in zip(inputs, streams, strict=True):
            with torch.cuda.stream(stream):
                found.append(run(x))
    torch.cuda.synchronize()
    assert_close(found, [(x * 2).exp().sin() + 1 for x in copy.copy(inputs)] * 6)
    assert sum(r.recorded for r in graphs.runs) == 2


def test_what_waits_in_secret_is_found_by_the_capture_and_runs_without():
    graphs = CUDAGraphTransform(warm_ups=1)
    run = jit(lambda x: (x * 2).exp() * float((x.sum() * 0).item()) + 1, executors=["torch"], transforms=[graphs])
    for _ in range(4):
        x = torch.randn(5, device="cuda")
        assert_close(run(x), torch.ones_like(x))
    assert any("waits for the device" in left.reason for left in graphs.left_out)
