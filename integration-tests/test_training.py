"""Models trained eagerly and compiled end in the same place. tools/training_sweep.py trains many more."""

import sys
from pathlib import Path

import pytest

pytest.importorskip("transformers", reason="the models of transformers are optional for the tests")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

import training_sweep  # noqa: E402


@pytest.mark.parametrize(
    ("model", "optimizer"), [("gpt", "adamw"), ("resnet18", "sgd"), ("llama", "adamw-lists"), ("t5", "sgd")]
)
def test_whole_steps_are_eagers(model, optimizer):
    row = training_sweep.row_of(model, "step", optimizer, dropout=0.1)
    assert (row.outcome, row.programs) == ("right", 2)


def test_a_difference_is_told(monkeypatch):
    different = iter([1e-2, 2e-2])
    make = {"sgd": lambda parameters, eps: training_sweep.torch.optim.SGD(parameters, lr=next(different))}
    monkeypatch.setattr(training_sweep, "OPTIMIZERS", make)
    assert "differs" in training_sweep.row_of("gpt", "step", "sgd", dropout=0.0).outcome
