"""Checkpoints that are whole or not there: written beside their place, and renamed once every process has written."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict_saver import save

from thunder_distributed.axes import axis_of

_NAME = re.compile(r"step_(\d+)")


class CheckpointError(RuntimeError):
    """A checkpoint was not saved; those before are as they were."""


def save_checkpoint(
    state: dict[str, Any], folder: str | os.PathLike[str], step: int, *, process_group: Any = None
) -> Path:
    """Save state such that what is found under its name is always whole, whenever a process dies; all call it.

    Args:
        state: what ``torch.distributed.checkpoint`` saves, such as of :func:`~thunder_distributed.get_model_state_dict`
            and :func:`~thunder_distributed.get_optimizer_state_dict`.
        folder: that all processes see; there is a folder in it for each checkpoint.
        step: by which it is found again.
        process_group: whose processes save; all if not given. Its timeout is how long one waits for another.

    Returns:
        Where it is: ``torch.distributed.checkpoint.load`` takes it as ``checkpoint_id``.

    Raises:
        AxisError: ``torch.distributed`` is not initialised.
        CheckpointError: another process has died or hangs, the file system refuses, or the step was saved before.
    """
    first = axis_of(process_group).rank == 0
    place = Path(folder) / f"step_{step}"
    if place.exists():
        raise CheckpointError(f"there is a checkpoint of step {step} in {folder} already: remove it, or save elsewhere")
    beside = place.with_name(f".{place.name}.partial")
    try:
        if first:
            shutil.rmtree(beside, ignore_errors=True)  # what a process left that died
            beside.mkdir(parents=True)
        dist.barrier(process_group)
        save(state, checkpoint_id=beside, process_group=process_group)
        if first:
            os.replace(beside, place)
            _synchronise(place.parent)
        dist.barrier(process_group)
    except (RuntimeError, OSError, CheckpointException) as error:
        raise CheckpointError(
            f"the checkpoint of step {step} in {folder} was not saved: {error}. Either the file system refused, or "
            "another process has died or hangs; earlier checkpoints are whole"
        ) from error
    return place


def latest_checkpoint(folder: str | os.PathLike[str]) -> tuple[int, Path] | None:
    """Return the last step that was saved and where, or ``None`` if none was.

    Args:
        folder: what :func:`save_checkpoint` was given.

    Example:
        >>> import tempfile
        >>> latest_checkpoint(tempfile.mkdtemp()) is None
        True
    """
    places = Path(folder).iterdir() if Path(folder).is_dir() else ()
    found = [(int(match[1]), place) for place in places if (match := _NAME.fullmatch(place.name))]
    return max(found, default=None)


def _synchronise(folder: Path) -> None:
    """Let the names in a folder outlive a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


__all__ = ["CheckpointError", "latest_checkpoint", "save_checkpoint"]
