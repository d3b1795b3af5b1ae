"""ddp() on two processes, and what it refuses."""

import copy

import pytest
import torch
from torch import nn

from thunder_distributed import AxisError, axis_of, ddp, fsdp

SCENARIOS = "data_parallel_scenarios.py"


def test_on_two_processes(scenario, check):
    check(scenario)


def test_without_a_process_group_the_error_says_how_to_get_one():
    with pytest.raises(AxisError, match="start the program with torchrun, and call torch.distributed.init_process"):
        ddp(nn.Linear(2, 2))


def test_only_modules_are_taken():
    with pytest.raises(TypeError, match=r"ddp\(\) takes a module, compiled or not, and this is a function"):
        ddp(lambda x: x)


def test_a_model_is_taken_once(one_process):
    model = nn.Linear(2, 2)
    ddp(model)
    with pytest.raises(ValueError, match=r"ddp\(\) of a model that ddp\(\) was applied to already"):
        ddp(model)


def test_a_model_without_values_is_refused(one_process):
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="on the meta device: give it values first"):
        ddp(model)


def test_a_model_of_which_a_part_has_no_values_is_refused(one_process):
    with torch.device("meta"):
        empty = nn.Linear(2, 2)
    with pytest.raises(ValueError, match="on the meta device: give it values first"):
        ddp(nn.Sequential(nn.Linear(2, 2), empty))


@pytest.mark.parametrize(("on_this_host", "parts"), [("1", 1), ("2", 4), (None, 4)])
def test_processes_of_one_host_that_send_by_its_cpu_send_all_at_once(one_process, monkeypatch, on_this_host, parts):
    monkeypatch.delenv("LOCAL_WORLD_SIZE", raising=False)
    if on_this_host is not None:
        monkeypatch.setenv("LOCAL_WORLD_SIZE", on_this_host)
    assert axis_of().bucket_parts == parts


def test_what_is_not_compiled_is_refused_when_called(one_process):
    model = nn.Linear(2, 2)
    ddp(model)
    with pytest.raises(RuntimeError, match="communicates in compiled programs only"):
        model(torch.ones(2))


def test_modules_look_as_before(one_process):
    model = nn.Sequential(nn.Linear(2, 2))
    names = [name for name, _ in model.named_parameters()]
    compiled = ddp(model)
    assert [name for name, _ in compiled.named_parameters()] == names
    assert repr(model[0]) == "Linear(in_features=2, out_features=2, bias=True)"
    assert model[0].weight is dict(compiled.named_parameters())["0.weight"]
    assert list(compiled.state_dict()) == names


@pytest.mark.parametrize("parallel", [ddp, fsdp])
def test_copies_are_trained_by_themselves(one_process, parallel):
    compiled = parallel(nn.Linear(2, 2))
    copied = copy.deepcopy(compiled)
    with copied.no_sync():
        copied(torch.ones(3, 2)).sum().backward()
    copied(torch.ones(3, 2)).sum().backward()
    assert compiled.weight.grad is None
    assert copied.weight.grad.tolist() == [[6.0, 6.0], [6.0, 6.0]]
