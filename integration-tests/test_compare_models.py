"""The sweep of models tells rounding that a model multiplies from derivatives that are wrong."""

import copy
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from compare_models import Difference, loss_of, rounded, train_both  # noqa: E402

X = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


SPREAD = 1e-4


class Multiplies(torch.nn.Module):
    """Normalises what hardly differs from row to row, so that a rounding counts a million times and more."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = torch.nn.Parameter(torch.randn(4, 3, dtype=torch.float64))
        self.factor = 1.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (1.0 + SPREAD * x) @ self.weight
        y = y + self.factor * (y.sin() - y.sin().detach())
        return torch.nn.functional.batch_norm(y, None, None, training=True, eps=1e-30)


class InAnotherOrder(Multiplies):
    """Rounds where the other one does not, and computes the same."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = (0.1 + 0.1 * SPREAD * x) @ (self.weight * 10.0)
        y = y + self.factor * (y.sin() - y.sin().detach())
        return torch.nn.functional.batch_norm(y, None, None, training=True, eps=1e-30)


def compare(ours: torch.nn.Module, beside: bool) -> None:
    eager = Multiplies()
    ours.load_state_dict(eager.state_dict())
    near = [rounded(eager)] if beside else []
    train_both(eager, ours, (eager, ours), lambda: ((X,), {}), loss_of, torch.float64, near)


def test_what_is_but_rounding_is_right_beside_eager_that_is_rounded_otherwise():
    with pytest.raises(Difference, match="differs by"):
        compare(InAnotherOrder(), beside=False)
    compare(InAnotherOrder(), beside=True)


def test_a_wrong_derivative_is_found_beside_eager_that_is_rounded_otherwise():
    wrong = InAnotherOrder()
    wrong.factor = 1.01
    with pytest.raises(Difference, match="for weights that differ by one rounding"):
        compare(wrong, beside=True)


def test_weights_differ_by_one_rounding():
    model = Multiplies()
    other = copy.deepcopy(model)
    off = (rounded(model).weight / model.weight - 1).abs()
    assert torch.equal(model.weight, other.weight)
    assert off.min() > 0 and off.max() <= 2 * torch.finfo(torch.float64).eps
    assert not torch.equal(rounded(model, seed=1).weight, rounded(model).weight)


def test_steps_are_compared_until_rounding_makes_another_training():
    class Grows(Multiplies):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            return y + (self.weight.sum() * 1e15).sin() if self.steps > 2 else y

    eager = Grows()
    eager.steps = 0
    ours, near = copy.deepcopy(eager), rounded(eager)
    for model in (eager, ours, near):
        model.register_forward_hook(lambda module, args, output: setattr(module, "steps", module.steps + 1))
    steps = train_both(eager, ours, (eager, ours), lambda: ((X,), {}), loss_of, torch.float64, [near])
    assert steps == 4
