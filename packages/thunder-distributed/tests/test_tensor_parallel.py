"""Tensor parallelism on two processes, and what it refuses."""

import pytest
import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

from thunder_distributed import AxisError, Colwise, Rowwise, parallelize

SCENARIOS = "tensor_parallel_scenarios.py"


def test_on_two_processes(scenario, check):
    check(scenario)


def test_without_a_process_group_the_error_says_how_to_get_one():
    with pytest.raises(AxisError, match="start the program with torchrun"):
        parallelize(nn.Linear(2, 2), None, {"": Colwise()})


def test_a_mesh_of_several_dimensions_is_refused(one_process):
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "tensor"))
    with pytest.raises(AxisError, match=r"2 dimensions, \('data', 'tensor'\), and one is needed: .* mesh\['data'\]"):
        parallelize(nn.Linear(2, 2), mesh, {"": Colwise()})


def test_a_plan_in_the_place_of_the_mesh_is_refused(one_process):
    with pytest.raises(TypeError, match="a DeviceMesh of one dimension, a ProcessGroup, an Axis, or None for all"):
        parallelize(nn.Linear(2, 2), {"": Colwise()})


@pytest.mark.parametrize("plan", [{"0": Rowwise()}, {"1": Colwise()}, {"0": Colwise(), "1": Colwise()}])
def test_tied_weights_are_cut_together_or_not_at_all(one_process, plan):
    model = nn.Sequential(nn.Embedding(8, 4), nn.Linear(4, 8, bias=False))
    model[1].weight = model[0].weight
    with pytest.raises(ValueError, match=r"0\.weight and 1\.weight are one parameter, .* cut both along the same"):
        parallelize(model, None, plan)
    assert model[1].weight is model[0].weight and model(torch.tensor([1])).shape == (1, 8)
