"""Callables as exported programs, which PyTorch runs without Thunder."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.testing import assert_close

from thunder_executors import to_callable
from thunder_frontend import AcquisitionError, export
from thunder_fx import FXError, from_exported


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(16, 8)
        self.project = nn.Linear(8, 24)
        self.register_buffer("scale", torch.tensor(0.5))

    def forward(self, ids):
        q, k, v = self.project(self.embedding(ids)).split(8, -1)
        positions = torch.arange(ids.shape[1])
        mask = positions[:, None] >= positions[None]
        scores = (q @ k.transpose(1, 2) * self.scale).masked_fill(~mask, float("-inf"))
        return {"out": scores.softmax(-1) @ v, "length": ids.shape[1]}


SIZES = ({0: Dim("batch", min=2, max=64), 1: Dim("length", min=2, max=32)},)


@pytest.fixture(scope="module")
def attention():
    torch.manual_seed(0)
    return Attention()


@pytest.fixture(scope="module")
def program(attention):
    return export(attention, (torch.randint(0, 16, (3, 5)),), dynamic_shapes=SIZES)


def test_an_exported_module_serves_all_sizes_that_are_left_open(attention, program):
    for shape in ((3, 5), (2, 9), (7, 4)):
        ids = torch.randint(0, 16, shape)
        found, expected = program.module()(ids), attention(ids)
        assert_close(found["out"], expected["out"])
        assert found["length"] == shape[1]


def test_its_state_has_the_names_of_the_modules(attention, program):
    assert set(program.state_dict) == set(attention.state_dict())
    assert program.graph_module.meta["assumed"]


def test_it_is_saved_and_loaded_in_a_process_without_thunder(attention, program, tmp_path):
    torch.export.save(program, tmp_path / "attention.pt2")
    ids = torch.randint(0, 16, (4, 6))
    code = f"""
import sys, torch
program = torch.export.load({str(tmp_path / "attention.pt2")!r})
found = program.module()(torch.tensor({ids.tolist()}))
assert not [name for name in sys.modules if name.startswith("thunder")]
print(found["out"].double().sum().item())
"""
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert float(told.split()[-1]) == pytest.approx(attention(ids)["out"].double().sum().item(), rel=1e-6)


def test_an_exported_program_is_read_as_a_trace(attention, program):
    trace = from_exported(program)
    ids = torch.randint(0, 16, (4, 6))
    state = {**dict(attention.named_parameters()), **dict(attention.named_buffers())}
    state = {
        ("p_" if n in dict(attention.named_parameters()) else "b_") + n.replace(".", "_"): t for n, t in state.items()
    }
    given = {**state, "args_0": ids, "args_0_0": 4, "args_0_1": 6}
    found = to_callable(trace)(*[given[p.name] for p in trace.inputs])
    assert_close(found[0], attention(ids)["out"])


def test_functions_are_exported_with_arguments_by_name():
    program = export(lambda a, *, b: (a * 2, a.sum(0) + b), (torch.ones(4, 3),), {"b": torch.ones(3)})
    assert_close(program.module()(torch.ones(4, 3), b=torch.ones(3)), (torch.full((4, 3), 2.0), torch.full((3,), 5.0)))


def test_open_sizes_beside_arguments_by_name_are_refused():
    with pytest.raises(ValueError, match="pass all arguments by position"):
        export(lambda a, b: a + b, (torch.ones(4),), {"b": torch.ones(4)}, dynamic_shapes=({0: Dim("n", min=2)},))


def test_a_program_that_writes_to_tensors_is_refused():
    counter = nn.BatchNorm1d(3)
    with pytest.raises(AcquisitionError, match="keeps or changes a tensor outside of it"):
        export(counter, (torch.ones(4, 3),))


def test_a_result_that_nobody_could_load_is_refused():
    class Output:
        def __init__(self, value):
            self.value = value

    with pytest.raises(FXError, match="return tensors and numbers, in tuples, lists and dicts"):
        export(lambda a: Output(a * 2), (torch.ones(3),))
