"""Models cut into stages: on two processes, and the cut itself in one."""

import pytest
import torch
from torch import nn

from thunder_distributed import AxisError, pipeline, pipelines
from thunder_distributed.stages import StageModule, cut_program
from thunder_executors import to_callable
from thunder_testing import assert_text

SCENARIOS = "pipeline_scenarios.py"


def test_on_two_processes(scenario, check):
    check(scenario)


class Skipping(nn.Module):
    """What the first part computes, and the argument itself, are read at the end."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(3, 3, bias=False) for _ in range(3))
        self.register_buffer("table", torch.ones(3))

    def forward(self, x):
        scale = self.table.exp()
        y = self.first(x) * scale
        z = self.second(y)
        return self.third(z * scale) + y + x


def test_stages_hand_on_what_later_ones_read():
    model = Skipping()
    x = torch.randn(2, 3)
    stages = cut_program(model, ["second", "third"], (x,))
    names = [("table", "first.weight"), ("table", "second.weight"), ("third.weight",)]
    assert [stage.names for stage in stages] == names
    assert_text(
        stages[1].trace,  # the table's exponentials, of a buffer alone, are made again and not handed on
        """
        def stage_1(table: "float32[3]", second_weight: "float32[3, 3]", t2: "float32[2, 3]", a0: "float32[2, 3]"):
            t0 = ltorch.exp(table)  # float32[3]
            t3 = ltorch.linear(t2, second_weight, None)  # float32[2, 3]
            t4 = ltorch.mul(t3, t0)  # float32[2, 3]
            t8 = ltorch.clone(t2)  # float32[2, 3]
            t9 = ltorch.clone(a0)  # float32[2, 3]
            return (t4, t8, t9)
        """,
    )
    given = (x,)
    for stage in stages:
        given = to_callable(stage.trace)(*stage.tensors, *given)
    torch.testing.assert_close(given[0], model(x))


class Normalised(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 3))


class Tied(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
        self[2].weight = self[0].weight


class Mapped(nn.Sequential):
    def forward(self, x):
        return {"loss": super().forward(x)}


def layers(count=3):
    return nn.Sequential(*[nn.Linear(3, 3) for _ in range(count)])


@pytest.mark.parametrize(
    ("make", "split_at", "error", "message"),
    [
        (layers, ["3"], KeyError, r"split_at names \['3'\]; there are 0, 1, 2"),
        (layers, [], KeyError, "split_at names nothing"),
        (layers, ["2", "1"], ValueError, r"1 runs as number 1 of \['2', '1'\]: name modules that run once each"),
        (lambda: nn.Sequential(*[nn.Linear(3, 3)] * 3), ["0"], ValueError, "name modules that run once each"),
        (Normalised, ["2"], NotImplementedError, "as batch normalisation does in training"),
        (Tied, ["2"], NotImplementedError, "0.weight is read by stages 0 and 1.*untie it"),
        (lambda: Mapped(nn.Linear(3, 3), nn.Linear(3, 3)), ["1"], NotImplementedError, "returns a tensor, or a tuple"),
    ],
)
def test_what_cannot_be_cut_is_refused(make, split_at, error, message):
    with pytest.raises(error, match=message):
        cut_program(make(), split_at, (torch.ones(4, 3),))


def test_stages_are_a_multiple_of_the_processes(one_process):
    assert [s.stage_index for s in pipeline(layers(), split_at=["1", "2"], args=(torch.ones(4, 3),))] == [0, 1, 2]


def test_only_tensors_by_position_are_taken(one_process):
    with pytest.raises(TypeError, match="takes tensors, by position: bind all else in a module around it"):
        pipeline(layers(), split_at=["1"], args=(torch.ones(4, 3), 2))


class Masked(nn.Sequential):
    def forward(self, x):
        kept = x > 0
        return self[1](self[0](x)) * kept


def test_what_has_no_gradient_is_refused_where_pytorch_expects_one(one_process, monkeypatch):
    monkeypatch.setattr(pipelines, "TRAINS_BESIDE_CONSTANTS", False)
    model = Masked(nn.Linear(3, 3), nn.Linear(3, 3))
    with pytest.raises(NotImplementedError, match=r"stage 1 is given t\d+: bool8\[4, 3\], and stages of PyTorch"):
        pipeline(model, split_at=["1"], args=(torch.ones(4, 3),))
    assert len(pipeline(model.eval(), split_at=["1"], args=(torch.ones(4, 3),))) == 2


def test_stages_run_as_they_were_cut():
    model = layers()
    stage = StageModule(cut_program(model, ["1"], (torch.ones(4, 3),))[0], True)
    with pytest.raises(
        ValueError, match=r"cut for float32\[4, 3\] and gets \[5, 3\]: batches are as many microbatches"
    ):
        stage(torch.ones(5, 3))
    with pytest.raises(ValueError, match="in the mode that the model was in when it was cut"):
        stage.eval()(torch.ones(4, 3))
    with pytest.raises(RuntimeError, match="runs compiled"):
        stage.train()(torch.ones(4, 3))


def test_without_a_process_group_the_error_says_how_to_get_one():
    with pytest.raises(AxisError, match="start the program with torchrun"):
        pipeline(layers(), split_at=["1"], args=(torch.ones(4, 3),))
