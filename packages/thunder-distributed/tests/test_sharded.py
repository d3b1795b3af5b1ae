"""fsdp() on two processes, and what it refuses."""

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from thunder_distributed import AxisError, ddp, fsdp
from thunder_distributed.checks import check_devices
from thunder_frontend import jit

SCENARIOS = "sharded_scenarios.py"


def test_on_two_processes(scenario, check):
    check(scenario)


def test_without_a_process_group_the_error_says_how_to_get_one():
    with pytest.raises(AxisError, match="start the program with torchrun"):
        fsdp(nn.Linear(2, 2))


def test_a_model_that_is_replicated_is_refused(one_process):
    model = nn.Linear(2, 2)
    ddp(model)
    with pytest.raises(ValueError, match=r"fsdp\(\) of a model that ddp\(\) was applied to already .* two dimensions"):
        fsdp(model)


def test_strategies_are_those_of_the_enumerations(one_process):
    with pytest.raises(TypeError, match="takes an FSDPType as sharding_strategy"):
        fsdp(nn.Linear(2, 2), sharding_strategy="zero3")


def test_modules_that_keep_their_weights_in_lists_are_refused(one_process):
    with pytest.raises(TypeError, match="LSTM, which keeps its weights in a list of its own; leave it out"):
        fsdp(nn.LSTM(2, 2))


def test_what_is_ignored_stays_whole(one_process):
    model = nn.Sequential(nn.LSTM(2, 3), nn.Identity())
    weight = model[0].weight_ih_l0
    compiled = fsdp(model, ignored_params=list(model[0].parameters()))
    assert compiled[0].weight_ih_l0 is weight


def test_meta_parameters_without_a_way_to_values_are_refused(one_process):
    class Bare(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.empty(2))

    with torch.device("meta"):
        model = Bare()
    with pytest.raises(ValueError, match=r"the model, a Bare, has parameters on the meta device .* pass fsdp\(init="):
        fsdp(model)


def test_a_dimension_that_is_not_there_is_refused(one_process):
    with pytest.raises(ValueError, match=r"shard_dim says 2 for weight, of shape \[2, 2\]"):
        fsdp(nn.Linear(2, 2), shard_dim=lambda name, parameter: 2)


def test_a_mesh_of_three_dimensions_is_refused(one_process):
    mesh = init_device_mesh("cpu", (1, 1, 1), mesh_dim_names=("replicate", "shard", "tensor"))
    with pytest.raises(AxisError, match=r"of two to replicate over the first, and this has 3: pass a slice of it"):
        fsdp(nn.Linear(2, 2), device_mesh=mesh)


def test_what_is_no_mesh_is_refused(one_process):
    with pytest.raises(TypeError, match="a DeviceMesh of one dimension, a ProcessGroup, an Axis, .* and not as 'cpu'"):
        fsdp(nn.Linear(2, 2), device_mesh="cpu")


def test_a_model_on_several_devices_is_refused():
    devices = [torch.device("cuda", 1), torch.device("cpu"), torch.device("cuda", 1)]
    with pytest.raises(ValueError, match=r"fsdp\(\) of a model on cpu, cuda:1: put all of it on one device, model\.to"):
        check_devices(devices, "fsdp")


@pytest.mark.parametrize("parallel", [ddp, fsdp])
def test_a_compiled_model_is_distributed_once(one_process, parallel):
    compiled = parallel(jit(nn.Linear(2, 2)))
    with pytest.raises(ValueError, match=rf"{parallel.__name__}\(\) was applied to already .* apply one of them, once"):
        parallel(compiled)
    with pytest.raises(ValueError, match="apply one of them, once"):
        parallel(jit(compiled))
    jit(compiled)(torch.ones(1, 2)).sum().backward()
    assert compiled.weight.grad is not None
