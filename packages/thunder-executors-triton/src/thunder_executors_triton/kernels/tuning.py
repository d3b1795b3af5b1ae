"""With which block and how many warps a kernel is launched: by a rule, or as was measured, which is kept on disk.

``THUNDER_TRITON_TUNE=1`` lets a kernel be measured where it is first launched for sizes of one magnitude, with each of
a few choices. What was found is in a table in the user's cache (``THUNDER_TRITON_TABLE`` names another file; empty:
none is kept), one entry for each kernel, magnitude, dtype and device; it is read whether kernels are tuned or not.
Without an entry the first choice is taken, which is the rule's.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import torch
import triton
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources, PTXASError

from thunder_executors_triton.kernels.choices import Choice

TUNE, TABLE = "THUNDER_TRITON_TUNE", "THUNDER_TRITON_TABLE"
ROUNDS = 5


@dataclass
class Tuner:
    """What was measured, and how.

    Args:
        path: of the table; ``None``: it is not kept.
        milliseconds: what a launch takes; ``None``: nothing is measured.
    """

    path: Path | None
    milliseconds: Callable[[Callable[[], None]], float] | None
    _found: dict[str, list[int]] | None = field(default=None, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False)

    def choice(self, key: str, choices: Sequence[Choice], run: Callable[[Choice], None]) -> Choice:
        """Return with which of ``choices`` a kernel is launched.

        Args:
            key: the kernel, with all that the best choice depends on.
            choices: the first is taken where nothing is known and nothing is measured.
            run: launches the kernel; twice is as good as once.
        """
        best = self.known(key, choices)
        if best is not None or self.milliseconds is None:
            return best or choices[0]
        took = {c: self.milliseconds(lambda c=c: run(c)) for c in choices}  # type: ignore[misc]
        best = min(choices, key=lambda c: took[c])
        with self._lock:
            self._found = {**_read(self.path), **(self._found or {}), key: [best.block, best.warps]}
            _write(self.path, self._found)
        return best

    def known(self, key: str, choices: Sequence[Choice]) -> Choice | None:
        """Return which of ``choices`` was measured to be the best, if that is known."""
        if self._found is None:
            self._found = _read(self.path)
        kept = self._found.get(key)
        return next((c for c in choices if [c.block, c.warps] == kept), None)


def _read(path: Path | None) -> dict[str, list[int]]:
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path is not None else {}
    except (OSError, ValueError):  # it is made anew
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path | None, found: dict[str, list[int]]) -> None:
    """Keep a table; a disk that cannot be written to keeps none."""
    if path is None:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=0, sort_keys=True)
        os.replace(name, path)  # others see all of it or nothing
    except OSError:
        return


def milliseconds_on_cuda(run: Callable[[], None]) -> float:
    """Return the least time of a few launches; infinity where the kernel needs more than the device has."""
    took: list[float] = []
    event: Callable[..., Any] = torch.cuda.Event
    try:
        run()
        for _ in range(ROUNDS):
            start, end = event(enable_timing=True), event(enable_timing=True)
            start.record()
            run()
            end.record()
            end.synchronize()
            took.append(start.elapsed_time(end))
    except (CompilationError, OutOfResources, PTXASError):
        return float("inf")
    return min(took)


@cache
def tuner() -> Tuner:
    """Return the tuner of this process, as the environment has it."""
    return Tuner(_path(), milliseconds_on_cuda if os.environ.get(TUNE) == "1" else None)


def _path() -> Path | None:
    named, caches = os.environ.get(TABLE), os.environ.get("XDG_CACHE_HOME")
    if named is not None:
        return Path(named) if named else None
    try:
        return (Path(caches) if caches else Path.home() / ".cache") / "thunder" / "triton.json"
    except RuntimeError:  # there is no home
        return None


@cache
def _device(index: int) -> str:
    return f"{torch.cuda.get_device_name(index)}, Triton {triton.__version__}"


def _key(kernel: str, size: int, dtype: torch.dtype, device: int) -> str:
    return f"{kernel}, {size.bit_length()} bits, {str(dtype).removeprefix('torch.')}, {_device(device)}"


def choices_ahead(
    kernel: str, size: int, dtype: torch.dtype, device: int, choices: Sequence[Choice]
) -> Sequence[Choice]:
    """Return with which of some choices :func:`launch_tuned` will launch a kernel: several where it will measure.

    Args:
        kernel, size, choices: as there.
        dtype: of a tensor that the kernel reads.
        device: index of its GPU.
    """
    best = tuner().known(_key(kernel, size, dtype, device), choices)
    if best is not None:
        return [best]
    return choices if tuner().milliseconds is not None else choices[:1]


def launch_tuned(
    kernel: str, size: int, like: torch.Tensor, choices: Sequence[Choice], run: Callable[[Choice], None]
) -> None:
    """Launch a kernel with the best of some choices.

    Args:
        kernel: its name, or what tells its text.
        size: of what ``choices`` are for; those of one magnitude share an entry.
        like: a tensor that it reads.
        choices: see :meth:`Tuner.choice`.
        run: launches it; it overwrites nothing that it reads.
    """
    if like.device.type != "cuda":
        run(choices[0])
        return
    key = _key(kernel, size, like.dtype, like.device.index)
    known = tuner()
    if known.milliseconds is not None and torch.cuda.is_current_stream_capturing():
        known = Tuner(known.path, None)  # nothing can be measured now
    run(known.choice(key, choices, run))
