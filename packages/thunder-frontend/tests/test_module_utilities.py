"""What ``torch.nn.utils`` and hooks do to modules is part of the program, over steps of training."""

import copy

import pytest
import torch
from against_eager import tensors
from torch import nn
from torch.distributed._functional_collectives import all_reduce
from torch.distributed.fsdp import fully_shard
from torch.nn.utils import parametrizations, parametrize, prune

from thunder_frontend import AcquisitionError, jit, last_traces


def pruned():
    layers = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    prune.l1_unstructured(layers[0], "weight", amount=0.4)
    prune.ln_structured(layers[2], "weight", 0.5, 2, 0)
    return layers


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)


def symmetric():
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = symmetric()

    def forward(self, x):
        with parametrize.cached():
            return self.layer(x) + self.layer(x * 2)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(3, 3), nn.Parameter(torch.ones(1))

    def forward(self, x):
        scaled = {name: p * self.scale for name, p in self.layer.named_parameters()}
        return torch.func.functional_call(self.layer, scaled, (x,))


class OtherStatistics(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x):
        other = torch.func.functional_call(self.norm, {"running_mean": torch.zeros(3)}, (x,))
        return other, self.norm(x)


class Hooked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.layer.register_forward_pre_hook(lambda m, args, kwargs: ((args[0] + 1,), kwargs), with_kwargs=True)
        self.layer.register_forward_hook(lambda m, args, kwargs, out: out + args[0], with_kwargs=True)
        self.register_forward_hook(lambda m, args, out: out * 2)

    def forward(self, x):
        return self.layer(x)


def normalised(how):
    return lambda: how(nn.Linear(3, 3))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "make",
    [
        pruned, symmetric, Cached, Functional, OtherStatistics, Hooked, normalised(nn.utils.weight_norm),
        normalised(nn.utils.spectral_norm), normalised(parametrizations.weight_norm),
        normalised(parametrizations.spectral_norm), normalised(parametrizations.orthogonal),
    ],
)  # fmt: skip
def test_a_module_trains_as_in_eager(make):
    torch.manual_seed(0)
    eager = make()
    try:
        ours = copy.deepcopy(eager)
    except RuntimeError:  # weights that are results are not copied
        torch.manual_seed(0)
        ours = make()
    compiled, x = jit(ours), torch.randn(4, 3)
    for _ in range(3):
        found, truth = tensors(compiled(x)), tensors(eager(x))
        torch.testing.assert_close(found, truth)
        for module, results in ((eager, truth), (ours, found)):
            sum([r.sum() for r in results]).backward()
            with torch.no_grad():
                for p in module.parameters():
                    p.sub_(0.1 * p.grad)
                    p.grad = None
    torch.testing.assert_close(dict(ours.state_dict()), dict(eager.state_dict()))


class Raising(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = 0
        self.register_forward_hook(self.hook, always_call=True)

    def hook(self, module, args, result):
        self.seen += 1

    def forward(self, x, fail):
        if fail:
            raise ValueError
        return x + 1


def test_hooks_that_always_run_run():
    module = Raising()
    compiled = jit(module)
    for fail in (False, True, False, True):
        try:
            compiled(torch.ones(2), fail)
        except ValueError:
            assert fail
    assert module.seen == 4


def test_functions_that_torch_compiled_are_part_of_the_program():
    scale = nn.Linear(3, 3)
    inner = torch.compile(lambda x: x * scale.bias, backend="eager")
    outer = jit(lambda x: torch.compile(torch.sin, backend="eager")(inner(x)))
    x = torch.randn(3)
    torch.testing.assert_close(outer(x), (x * scale.bias).sin())
    scale.bias = nn.Parameter(torch.ones(3))
    torch.testing.assert_close(outer(x), x.sin())


def test_compiled_modules_are_what_distributed_data_parallel_wraps(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        module, x = torch.nn.Linear(3, 3), torch.ones(2, 3)
        torch.nn.parallel.DistributedDataParallel(jit(module))(x).sum().backward()
        torch.testing.assert_close(module.weight.grad, torch.full((3, 3), 2.0))
        with pytest.raises(AcquisitionError, match="compile the module that it wraps"):
            jit(torch.nn.parallel.DistributedDataParallel(module))(x)
    finally:
        torch.distributed.destroy_process_group()


def test_fully_shard_takes_modules_whose_forward_is_compiled(tmp_path):
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    try:
        torch.manual_seed(0)
        expected, x = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)), torch.randn(2, 3)
        found = copy.deepcopy(expected)
        for layer in found:
            layer.forward = jit(layer.forward)
            fully_shard(layer)
        fully_shard(found)
        for _ in range(2):
            for module in (expected, found):
                module(x).sum().backward()
                torch.optim.SGD(module.parameters(), 0.1).step()
        torch.testing.assert_close(found(x), expected(x))
        with pytest.raises(AcquisitionError, match=r"module.forward = thunder.jit\(module.forward\), then fully_shard"):
            jit(found)(x)
        with pytest.raises(TypeError, match=r"module.forward = thunder.jit\(module.forward\), then fully_shard"):
            fully_shard(jit(expected))
    finally:
        torch.distributed.destroy_process_group()


@pytest.fixture
def alone(tmp_path):
    """A process group of one."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.distributed.all_reduce(x, async_op=True).wait(),
        lambda x: torch.distributed.all_reduce(x.requires_grad_()),
        lambda x: torch.distributed.all_reduce(x.expand(3, 2)),
        lambda x: torch.distributed.send(x, 0),
    ],
    ids=["waited for later", "differentiated", "not contiguous", "to one process"],
)
def test_collectives_that_a_program_cannot_hold_are_refused_with_the_way_out(program):
    with pytest.raises(AcquisitionError, match="_functional_collectives, which return new tensors"):
        jit(program, fallback="error")(torch.ones(2))


def in_place(x):
    y = x * 2
    torch.distributed.all_reduce(y)
    torch.distributed.all_reduce(y)
    torch.distributed.all_reduce(x * 2)
    return x + 1


def functional(x):
    for _ in range(3):
        all_reduce(x * 2, "sum", torch.distributed.group.WORLD)
    return x + 1


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("program", "requires_grad"), [(in_place, False), (functional, False), (functional, True)])
def test_collectives_that_nobody_reads_are_made_as_other_processes_wait_for_them(program, requires_grad):
    compiled = jit(program, fallback="error")
    compiled(torch.ones(3, requires_grad=requires_grad))
    assert str(last_traces(compiled)[-1]).count("all_reduce") == 3


@pytest.mark.usefixtures("alone")
def test_functional_collectives_are_programs():
    reduced = jit(lambda x: all_reduce(x, "sum", torch.distributed.group.WORLD) * 2)
    torch.testing.assert_close(reduced(torch.ones(2)), torch.full((2,), 2.0))


def test_modules_that_would_be_replicated_run_where_there_is_one_device():
    module, x = torch.nn.Linear(3, 3), torch.ones(2, 3)
    for compiled in (jit(torch.nn.DataParallel(module)), torch.nn.DataParallel(jit(module))):
        torch.testing.assert_close(compiled(x), module(x))
