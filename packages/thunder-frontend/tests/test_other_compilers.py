"""Functions and modules that ``thunder.jit`` made, under the compilers of PyTorch."""

import warnings

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

from thunder_frontend import AcquisitionError, FallbackWarning, cache_misses, jit


@pytest.fixture
def graphs():
    return []


@pytest.fixture
def torch_compile(graphs):
    def backend(graph, examples):
        graphs.append([n.name for n in graph.graph.nodes if n.op.startswith("call_")])
        return graph

    torch._dynamo.reset()
    yield lambda f: torch.compile(f, backend=backend)
    torch._dynamo.reset()


@pytest.mark.parametrize("calls", ["__call__", "forward"])
def test_torch_compile_leaves_compiled_modules_as_they_are(torch_compile, graphs, calls):
    module = jit(nn.Linear(3, 3))
    x = torch.randn(2, 3)
    run = torch_compile(lambda x: getattr(module, calls)(x) + 1)
    for _ in range(2):
        torch.testing.assert_close(run(x), nn.functional.linear(x, module.weight, module.bias) + 1)
    assert graphs == [["add"]] and cache_misses(module) == 1


def test_torch_compile_of_a_compiled_module_is_that_module(torch_compile, graphs):
    module = jit(nn.Linear(3, 3))
    x = torch.randn(2, 3)
    torch_compile(module)(x).sum().backward()
    torch.testing.assert_close(module.weight.grad, x.sum(0).expand(3, 3))
    assert not graphs and cache_misses(module) == 1


def test_torch_compile_leaves_compiled_functions_as_they_are(torch_compile, graphs):
    function = jit(torch.sin)
    x = torch.randn(3)
    torch.testing.assert_close(torch_compile(lambda x: function(x) * 2)(x), x.sin() * 2)
    assert graphs == [["mul"]] and cache_misses(function) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("warm", [False, True])
def test_torch_jit_trace_sees_the_operations(warm):
    module = jit(nn.Linear(3, 3))
    x, other = torch.randn(2, 3), torch.randn(4, 3)
    if warm:
        module(x)
    torch.testing.assert_close(torch.jit.trace(module, (x,))(other), module(other))


def clamped_softly(x, bound: float = 2.0):
    return (x / bound).tanh() * bound


with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
    softclamp = torch.jit.script(clamped_softly)


def test_scripted_functions_run_in_programs():
    def program(x):
        return softclamp(x) + softclamp(x, bound=3.0)

    x = torch.randn(3, requires_grad=True)
    compiled = jit(program)
    torch.testing.assert_close(compiled(x), program(x))
    ours, eagers = (torch.autograd.grad(f(x).sum(), x)[0] for f in (compiled, program))
    torch.testing.assert_close(ours, eagers)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_runs_scripted_functions_in_threads_of_its_own_is_split_off():
    def both(x):
        tasks = [torch.jit.fork(softclamp, x * i) for i in range(2)]
        return sum(map(torch.jit.wait, tasks))

    def program(x):
        return both(x.sin()) + 1

    x = torch.randn(3, requires_grad=True)
    with pytest.raises(AcquisitionError, match=r"calls fork\(\)"):
        jit(program, fallback="error")(x)
    compiled = jit(program, fallback="split")
    with pytest.warns(FallbackWarning, match=r"both runs in Python: the program calls fork\(\)"):
        torch.testing.assert_close(compiled(x), program(x))
    ours, eagers = (torch.autograd.grad(f(x).sum(), x)[0] for f in (compiled, program))
    torch.testing.assert_close(ours, eagers)
    assert cache_misses(compiled) == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_traced_functions_are_refused():
    traced = torch.jit.trace(torch.sin, (torch.ones(2),))
    with pytest.raises(AcquisitionError, match="call the function itself"):
        jit(lambda x: traced(x) + 1)(torch.ones(2))


def test_modes_that_operators_are_dispatched_to_see_them():
    module = jit(nn.Linear(3, 3))
    with FlopCounterMode(display=False) as counter:
        module(torch.ones(2, 3)).sum().backward()
    assert counter.get_total_flops() == 2 * (2 * 2 * 3 * 3)


def test_tangents_of_forward_mode_go_through():
    module, x = jit(nn.Linear(3, 3)), torch.ones(2, 3)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(module(forward_ad.make_dual(x, x * 2))).tangent
    torch.testing.assert_close(tangent, nn.functional.linear(x * 2, module.weight))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_training_aware_of_quantisation_is_eagers():
    def made():
        torch.manual_seed(0)
        module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        module.qconfig = torch.ao.quantization.get_default_qat_qconfig("fbgemm")
        return torch.ao.quantization.prepare_qat(module.train())

    eager, compiled = made(), jit(made())
    for _ in range(2):
        x = torch.randn(5, 4)
        for module in (eager, compiled):
            module.zero_grad()
            module(x).square().sum().backward()
        torch.testing.assert_close([p.grad for p in compiled.parameters()], [p.grad for p in eager.parameters()])
    torch.testing.assert_close(dict(compiled.state_dict()), dict(eager.state_dict()))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif("x86" not in torch.backends.quantized.supported_engines, reason="PyTorch has no such kernels here")
def test_operators_that_nobody_called_before_are_called():
    """PyTorch notes down at an operator which of its overloads were asked for."""
    packed = torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(torch.randn(2, 3), 0.1, 0, torch.qint8), None)
    compiled = jit(lambda x, weight: torch.ops.quantized.linear_dynamic(x, weight))
    for _ in range(2):
        x = torch.randn(2, 3)
        torch.testing.assert_close(compiled(x, packed), torch.ops.quantized.linear_dynamic(x, packed))
    assert cache_misses(compiled) == 1
