"""What is refused before a model is distributed: the message says what to do, and the model is as it was."""

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from thunder_distributed import (
    AxisError,
    Colwise,
    ExpertParallel,
    Rowwise,
    checks,
    column_parallel,
    context_parallel,
    ddp,
    fsdp,
    join,
    parallelize,
    pipeline,
    save_checkpoint,
    sequence_part,
)
from thunder_frontend import jit

SCENARIOS = "refusal_scenarios.py"
WHOLE = Colwise(gather_output=True)
ROWS = torch.ones(2, 4)


def test_on_two_processes(scenario, check):
    check(scenario)


def layers():
    return nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))


def cut(model, mesh=None):
    return parallelize(model, mesh, {"0": WHOLE})


def in_stages(model, mesh=None):
    return pipeline(model, mesh, split_at=["1"], args=(ROWS,))


def refused(distribute, model, error, message):
    """Check that a model is refused, and as it was."""
    held = [(name, type(m), dict(m._parameters), set(m.__dict__)) for name, m in model.named_modules()]
    with pytest.raises(error, match=message):
        distribute(model)
    found = [(name, type(m), dict(m._parameters), set(m.__dict__)) for name, m in model.named_modules()]
    assert all(a[:2] == b[:2] and a[3] == b[3] for a, b in zip(held, found, strict=True))
    for (_, _, before, _), (_, _, after, _) in zip(held, found, strict=True):
        assert before.keys() == after.keys() and all(after[key] is p for key, p in before.items())


@pytest.mark.parametrize(
    "call",
    [
        lambda folder: ddp(layers()),
        lambda folder: column_parallel(layers(), ["0"]),
        lambda folder: context_parallel(layers()),
        lambda folder: in_stages(layers()),
        lambda folder: sequence_part(torch.ones(2, 8)),
        lambda folder: next(join([1])),
        lambda folder: save_checkpoint({"x": ROWS}, folder, 1),
    ],
    ids=["ddp", "column_parallel", "context_parallel", "pipeline", "sequence_part", "join", "save_checkpoint"],
)
def test_all_that_needs_a_process_group_says_how_to_get_one(call, tmp_path):
    with pytest.raises(AxisError, match="start the program with torchrun, and call .*init_process_group"):
        call(tmp_path)


@pytest.mark.parametrize("distribute", [ddp, cut, context_parallel, in_stages])
def test_one_dimension_of_a_mesh_has_to_be_named(one_process, distribute):
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "tensor"))
    place = {"process_group": mesh} if distribute is ddp else {"device_mesh": mesh}
    call = {cut: lambda m: cut(m, mesh), in_stages: lambda m: in_stages(m, mesh)}.get(
        distribute, lambda m: distribute(m, **place)
    )
    refused(call, layers(), AxisError, r"has 2 dimensions, .* pass one of them, mesh\['data'\]")


@pytest.mark.parametrize("distribute", [ddp, fsdp, cut, in_stages])
class TestModelsThatAreDistributedAlready:
    @pytest.mark.parametrize("before", [ddp, fsdp])
    def test_by_thunder(self, one_process, distribute, before):
        advice = {cut: r"apply parallelize\(\) first, and ddp", in_stages: "wrap=lambda stage"}
        wanted = rf"{before.__name__}\(\) was applied to already .*{advice.get(distribute, 'apply one of them, once')}"
        for compiled in (before(layers()), before(jit(layers())), jit(before(layers()))):
            with pytest.raises(ValueError, match=wanted):
                distribute(compiled)

    def test_in_a_part(self, one_process, distribute):
        model = layers()
        model[1] = fsdp(model[1])
        refused(distribute, model, ValueError, r"fsdp\(\) was applied to already \(1\)")

    def test_by_pytorchs_data_parallelism(self, one_process, distribute):
        model = nn.Sequential(DistributedDataParallel(layers()), nn.Linear(4, 4))
        refused(distribute, model, TypeError, "a DistributedDataParallel, '0': put the module that it wraps")

    def test_by_fully_shard(self, one_process, distribute):
        model = fully_shard(layers(), mesh=init_device_mesh("cpu", (1,)))
        refused(distribute, model, TypeError, "whose 0.weight is a DTensor, .* compile it by thunder.jit alone")

    def test_by_parallelize_module(self, one_process, distribute):
        model = parallelize_module(layers(), init_device_mesh("cpu", (1,)), {"1": ColwiseParallel()})
        refused(distribute, model, TypeError, "whose 1.weight is a DTensor")

    def test_a_part_is_compiled(self, one_process, distribute):
        model = layers()
        model[0] = jit(model[0])
        refused(distribute, model, TypeError, "with a part, '0', that is compiled by itself: leave thunder.jit out")


def test_shards_are_not_made_equal_by_pytorchs_data_parallelism(one_process):
    with pytest.raises(RuntimeError, match="DistributedDataParallel is not needed"):
        DistributedDataParallel(fsdp(layers()))


def test_sequences_are_cut_once(one_process):
    with pytest.raises(ValueError, match=r"context_parallel\(\) of a model that it was applied to already"):
        context_parallel(context_parallel(layers()))


@pytest.mark.parametrize("distribute", [cut, context_parallel, in_stages])
def test_models_are_on_one_device(one_process, distribute):
    model = layers()
    model[1].to("meta")
    refused(distribute, model, ValueError, "of a model on cpu, meta: put all of it on one device")


def test_buffers_without_values_are_not_sent(one_process):
    model = layers()
    model.register_buffer("table", torch.empty(2, device="meta"))
    refused(ddp, model, ValueError, "of a model on the meta device: give it values first")


@pytest.mark.parametrize("distribute", [ddp, fsdp, cut, context_parallel, in_stages])
def test_groups_communicate_for_the_device_of_the_model(one_process, distribute):
    group = dist.new_group([0], backend="cuda:gloo")
    place = {"process_group" if distribute is ddp else "device_mesh": group}
    call = {cut: lambda m: cut(m, group), in_stages: lambda m: in_stages(m, group)}.get(
        distribute, lambda m: distribute(m, **place)
    )
    refused(call, layers(), ValueError, "a model on cpu, .* has the backends cuda:gloo: put the model on a device of")


@pytest.mark.parametrize("distribute", [fsdp, cut])
def test_parameters_that_share_memory_would_part_ways(one_process, distribute):
    model = layers()
    model[1].weight = nn.Parameter(model[0].weight.detach().t())
    refused(distribute, model, ValueError, "0.weight and 1.weight share memory and are two parameters")
    assert ddp(model)(ROWS).shape == (2, 4)


@pytest.mark.parametrize("distribute", [fsdp, cut])
def test_parameters_beside_each_other_in_memory_share_nothing(one_process, distribute):
    model, memory = layers(), torch.randn(4, 8)
    expected = torch.ones(2, 4) @ memory[:, ::2].T @ memory[:, 1::2].T
    for i, layer in enumerate(model):
        layer.weight, layer.bias = nn.Parameter(memory[:, i::2]), None
    torch.testing.assert_close(distribute(model)(ROWS), expected)


def test_parameters_one_after_the_other_in_a_buffer_are_not_compared_byte_by_byte(monkeypatch):
    model, memory = layers(), torch.randn(64)
    nn.utils.vector_to_parameters(memory[: sum(p.numel() for p in model.parameters())], model.parameters())
    assert len({p.untyped_storage().data_ptr() for p in model.parameters()}) == 1
    monkeypatch.setattr(checks, "_bytes_of", None)
    checks.check_memory(model, dict(model.named_parameters()), "fsdp")


class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 4, 4))

    def forward(self, x, counts):
        return x


def test_experts_of_two_layers_stay_one(one_process):
    model = nn.ModuleDict({"a": Experts(), "b": Experts()})
    model["b"].weight = model["a"].weight
    one_of_them = {"a": ExpertParallel()}
    refused(lambda m: parallelize(m, None, one_of_them), model, ValueError, "a.weight and b.weight are one parameter")
    parallelize(model, None, {"[ab]": ExpertParallel()})
    assert model["b"].weight is model["a"].weight


@pytest.mark.parametrize(
    ("plan", "error", "message"),
    [
        (["0"], TypeError, "a plan gives names of modules their styles"),
        (None, ValueError, "cuts the layers that its plan names, and this one names none"),
        ({}, ValueError, "cuts the layers that its plan names, and this one names none"),
        ({"0": Colwise}, TypeError, r"gives '0' the style <class .*>: styles are Colwise\(\), Rowwise\(\)"),
        ({"0": ColwiseParallel()}, TypeError, r"what parallelize_module\(\) of PyTorch made is compiled"),
        ({"[01]": WHOLE, "0": Rowwise()}, ValueError, r"gives 0 two styles, .* by '\[01\]' and .* by '0'"),
        ({"0": WHOLE, "2": WHOLE}, KeyError, "the plan names '2', and no module is called so; there are 0, 1"),
        ({"0": WHOLE, "": WHOLE}, TypeError, "the plan cuts the model, a Sequential; it takes a Linear"),
    ],
)
def test_plans_that_mean_nothing(one_process, plan, error, message):
    refused(lambda m: parallelize(m, None, plan), layers(), error, message)


def test_a_module_at_two_places_is_cut_by_either_name(one_process):
    layer = nn.Linear(4, 4)
    model = nn.Sequential(layer, layer)
    expected = model(ROWS)
    torch.testing.assert_close(parallelize(model, None, {"1": WHOLE})(ROWS), expected)


def test_shards_of_a_model_are_asked_for_in_a_way_that_means_something(one_process):
    for broadcast_from in (-1, 1):
        call = lambda m, source=broadcast_from: fsdp(m, broadcast_from=source)  # noqa: E731
        refused(call, layers(), ValueError, r"broadcast_from=-?1, and there are the ranks 0\.\.0")
    refused(lambda m: fsdp(m, ignored_params=["0.weight"]), layers(), ValueError, "has '0.weight' that is no parameter")
    others = layers().parameters()
    refused(lambda m: fsdp(m, ignored_params=others), layers(), ValueError, r"pass parameters, such as model\.get_para")
    refused(lambda m: fsdp(m, shard_dim=lambda name, p: 1), layers(), ValueError, "shard_dim says 1 for 0.bias")
    refused(fsdp, nn.Sequential(nn.Linear(4, 4), nn.LSTM(4, 4)), TypeError, "1 is a LSTM, which keeps its weights in a")


def test_parts_without_values_are_not_given_those_of_the_whole(one_process):
    with torch.device("meta"):
        model = layers()
    parts = cut(model)
    with pytest.raises(ValueError, match=r"0, a Linear, was cut on the meta device, .* values before parallelize\(\)"):
        fsdp(parts)
