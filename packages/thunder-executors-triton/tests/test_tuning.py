"""Choices of launches: measured once, kept on disk."""

import json

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

pytest.importorskip("triton", reason="Triton is not installed here; `python3 tools/dev.py gpu-libraries` runs this")

from thunder_executors_triton import kernel  # noqa: E402
from thunder_executors_triton.kernels.choices import OF_ELEMENTS, Choice, of_rows  # noqa: E402
from thunder_executors_triton.kernels.tuning import Tuner, tuner  # noqa: E402

FAST = OF_ELEMENTS[2]


class Clock:
    """Launches kernels, and says what they took."""

    def __init__(self):
        self.launched = []

    def run(self, choice):
        self.launched.append(choice)

    def milliseconds(self, run):
        run()
        return 1.0 if self.launched[-1] == FAST else 2.0


def test_the_fastest_choice_is_taken_and_kept_for_processes_to_come(tmp_path):
    path, clock = tmp_path / "deep" / "table.json", Clock()
    assert Tuner(path, clock.milliseconds).choice("gelu", OF_ELEMENTS, clock.run) == FAST
    assert clock.launched == list(OF_ELEMENTS)
    assert json.loads(path.read_text()) == {"gelu": [FAST.block, FAST.warps]}
    for measures in (clock.milliseconds, None):
        assert Tuner(path, measures).choice("gelu", OF_ELEMENTS, clock.run) == FAST
    assert len(clock.launched) == len(OF_ELEMENTS)


def test_tuners_of_several_processes_keep_each_others_entries(tmp_path):
    path, clock = tmp_path / "table.json", Clock()
    tuners = [Tuner(path, clock.milliseconds) for _ in range(2)]
    for name, one in zip(("first", "second"), tuners, strict=True):
        one.choice("both", OF_ELEMENTS, clock.run)
        one.choice(name, OF_ELEMENTS, clock.run)
    assert set(json.loads(path.read_text())) == {"both", "first", "second"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"gelu": [3, 7]}', '{"gelu": "fast"}'])
def test_a_table_that_says_nothing_of_use_is_passed_over(text, tmp_path):
    path = tmp_path / "table.json"
    path.write_text(text)
    assert Tuner(path, None).choice("gelu", OF_ELEMENTS, Clock().run) == OF_ELEMENTS[0]


def test_where_the_table_cannot_be_kept_all_goes_on(tmp_path):
    (tmp_path / "file").write_text("")
    clock = Clock()
    assert Tuner(tmp_path / "file" / "table.json", clock.milliseconds).choice("a", OF_ELEMENTS, clock.run) == FAST


def test_choices_of_rows_hold_the_row_and_begin_with_the_rule():
    for block in (16, 1024, 2048, 16_384):
        choices = of_rows(block)
        assert all(c.block == block and 1 <= c.warps <= 32 for c in choices) and len(set(choices)) == len(choices)
    assert of_rows(1024)[0] == Choice(1024, 4)


def test_the_environment_says_where_the_table_is_and_whether_to_measure(tmp_path, monkeypatch):
    monkeypatch.setenv("THUNDER_TRITON_TABLE", str(tmp_path / "t.json"))
    monkeypatch.setenv("THUNDER_TRITON_TUNE", "1")
    found = tuner.__wrapped__()
    assert found.path == tmp_path / "t.json" and found.milliseconds is not None
    monkeypatch.setenv("THUNDER_TRITON_TABLE", "")
    monkeypatch.delenv("THUNDER_TRITON_TUNE")
    assert tuner.__wrapped__() == Tuner(None, None)


class Largest(TorchDispatchMode):
    """Remembers the most elements of a floating tensor that is made, but for those of some shapes."""

    def __init__(self, *known):
        super().__init__()
        self.known, self.most = known, 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        made = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor) and t.is_floating_point()]
        made = [t for t in made if tuple(t.shape) not in self.known]
        self.most = max([self.most, *[t.numel() for t in made]])
        return out


@pytest.mark.parametrize("gradients", [True, False])
def test_what_linear_cross_entropy_holds_does_not_grow_with_the_vocabulary(gradients, device):
    rows, features = 64, 32
    largest = {}
    for classes in (50, 200, 1000):
        x, weight = torch.randn(rows, features, device=device), torch.randn(classes, features, device=device)
        target = torch.randint(classes, (rows,), device=device)
        with Largest((classes, features), (features, classes)) as mode:
            kernel("linear_cross_entropy")(x, weight, target, gradients=gradients)
        largest[classes] = mode.most
    assert all(most <= rows * features for most in largest.values()), largest
    assert largest[1000] > 1000  # some rows' logits are among what was seen
