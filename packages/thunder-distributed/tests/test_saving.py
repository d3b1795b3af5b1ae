"""Checkpoints that are whole or not there."""

import pytest
import torch
import torch.distributed.checkpoint as dcp

from thunder_distributed import CheckpointError, latest_checkpoint, save_checkpoint


def test_the_last_step_is_found_and_holds_what_was_saved(one_process, tmp_path):
    for step in (2, 10, 9):
        save_checkpoint({"value": torch.full((3,), float(step))}, tmp_path, step)
    step, place = latest_checkpoint(tmp_path)
    state = {"value": torch.zeros(3)}
    dcp.load(state, checkpoint_id=place)
    assert step == 10 and state["value"].tolist() == [10.0] * 3


def test_what_was_left_half_written_is_not_found_and_written_anew(one_process, tmp_path):
    left = tmp_path / ".step_4.partial"
    left.mkdir()
    (left / "__0_0.distcp").write_bytes(b"torn")
    assert latest_checkpoint(tmp_path) is None
    save_checkpoint({"value": torch.ones(2)}, tmp_path, 4)
    assert latest_checkpoint(tmp_path) == (4, tmp_path / "step_4") and not left.exists()


class Unsaved:
    def __reduce__(self):
        raise RuntimeError("no space left")


def test_a_save_that_fails_says_so_and_leaves_earlier_ones(one_process, tmp_path):
    save_checkpoint({"value": torch.ones(2)}, tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"the checkpoint of step 2 in .* was not saved: .*"):
        save_checkpoint({"value": Unsaved()}, tmp_path, 2)
    assert latest_checkpoint(tmp_path) == (1, tmp_path / "step_1")


def test_a_step_is_not_saved_twice(one_process, tmp_path):
    save_checkpoint({"value": torch.ones(2)}, tmp_path, 1)
    with pytest.raises(CheckpointError, match="there is a checkpoint of step 1"):
        save_checkpoint({"value": torch.ones(2)}, tmp_path, 1)
