"""Runs with one fault each, compared with undisturbed training."""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from thunder_benchmarks.faults.striking import Striker
from thunder_benchmarks.faults.training import EVERY, SIZE, STEPS, Training, whole_checkpoint
from thunder_benchmarks.tables import markdown

KINDS = ("kill", "stop", "slow", "partition")
PHASES = ("compile", "forward", "backward", "checkpoint")
SLACK = 3.0
"""Seconds beyond the timeout that are no hang: what a process computes before it waits, and how long raising takes."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    Args:
        kind: one of ``KINDS``: kill -9, SIGSTOP, a pause of a third of the timeout, or nothing arrives any more.
        phase: one of ``PHASES``.
        way: ``"ddp"`` or ``"fsdp"``.
        rank: whom it strikes.
        step: of training; compilation is before the first one.
        place: how many collectives of the phase begin before.
    """

    kind: str
    phase: str
    way: str
    rank: int
    step: int
    place: int


@dataclass(frozen=True)
class Expected:
    """Undisturbed training.

    Args:
        losses: of each step, to the last bit, for each rank.
        checkpoints: the parameters after some steps.
    """

    losses: tuple[tuple[str, ...], ...]
    checkpoints: Mapping[int, Mapping[str, torch.Tensor]]


@dataclass(frozen=True)
class Found:
    """What came of a fault.

    Args:
        fault: which.
        seconds: from the fault until the last process raised; 0 if all ended well.
        said: what a process raised.
        checkpoints: how many there were.
        wrong: what should not have been; empty if all is well.
    """

    fault: Fault
    seconds: float
    said: str
    checkpoints: int
    wrong: tuple[str, ...]

    def line(self) -> str:
        """Describe it in a line."""
        return f"{self.fault}: {self.seconds:.1f} s, {'; '.join(self.wrong) or 'as it should be'}"


def faults(count: int, kinds: Sequence[str], phases: Sequence[str], seed: int) -> Iterator[Fault]:
    """Yield faults of each kind in each phase in turn, at random places."""
    draw = random.Random(seed)
    for i in range(count):
        phase, kind = phases[i % len(phases)], kinds[i // len(phases) % len(kinds)]
        step = {"compile": 0, "checkpoint": EVERY * draw.randint(1, STEPS // EVERY) - 1}.get(
            phase, draw.randrange(STEPS)
        )
        yield Fault(kind, phase, draw.choice(("ddp", "fsdp")), draw.randrange(SIZE), step, draw.randrange(4))


def undisturbed(way: str, timeout: float) -> Expected:
    """Train without a fault.

    Raises:
        RuntimeError: that failed.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ended = launched(folder, way, timeout, None, "alone")
        if any(ended.values()) or len(ended) < SIZE:
            raise RuntimeError(f"training failed without any fault: {ended}\n{logs(folder)}")
        losses = tuple([tuple(losses_in(folder, "alone", rank)) for rank in range(SIZE)])
        return Expected(losses, checkpoints_in(folder))


def run(fault: Fault, expected: Expected, timeout: float) -> Found:
    """Train with a fault, start training again, and compare both with undisturbed training."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ended = launched(folder, fault.way, timeout, fault, "struck")
        wrong = list(_ends(fault, ended))
        struck = folder / "struck"
        seconds, said = 0.0, ""
        if not struck.exists():
            wrong.append("the fault was not injected")
        else:
            began = float(struck.read_text(encoding="utf-8"))
            raised = {r: json.loads((folder / f"outcome_struck_{r}").read_text()) for r, text in ended.items() if text}
            seconds = max([outcome["at"] - began for outcome in raised.values()], default=0.0)
            said = next((o["said"] for r, o in sorted(raised.items(), key=lambda item: item[0] == fault.rank)), "")
        if seconds > timeout + SLACK:
            wrong.append(f"it took {seconds:.1f} s until all had raised")
        wrong += _losses(folder, "struck", expected)
        count, bad = _checkpoints(folder, expected)
        wrong += bad
        again = launched(folder, fault.way, max(timeout, 60.0), None, "again")
        if any(again.values()) or len(again) < SIZE:
            wrong.append(f"training did not go on: {again}")
        wrong += _losses(folder, "again", expected)
        wrong += [] if len(checkpoints_in(folder)) == STEPS // EVERY else ["checkpoints are missing in the end"]
        return Found(fault, seconds, said, count, tuple(wrong))


def launched(folder: Path, way: str, timeout: float, fault: Fault | None, launch: str) -> dict[int, str]:
    """Train in some processes; return what each raised that ended by itself, an empty text if nothing."""
    context = multiprocessing.get_context("fork")  # PyTorch is imported once, and no thread runs here
    processes = []
    for rank in range(SIZE):
        striker = None
        if fault is not None and fault.rank == rank:
            striker = Striker(fault.kind, fault.phase, fault.step, fault.place, folder / "struck", timeout / 3)
        target = Training(way, rank, folder, timeout, striker, launch)
        processes.append(context.Process(target=target, daemon=True))
    for process in processes:
        process.start()
    _wait(processes, fault, 2 * timeout + 60.0)
    ended = {}
    for rank in range(SIZE):
        file = folder / f"outcome_{launch}_{rank}"
        if file.exists():
            ended[rank] = json.loads(file.read_text(encoding="utf-8"))["said"]
    return ended


def _wait(processes: Sequence[Any], fault: Fault | None, limit: float) -> None:
    """Wait for processes, and end those that will not end."""
    deadline = time.monotonic() + limit
    others = [p for rank, p in enumerate(processes) if fault is None or fault.rank != rank or fault.kind != "stop"]
    for process in others:
        process.join(max(deadline - time.monotonic(), 0.0))
    for process in processes:
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
        process.join()


def _ends(fault: Fault, ended: Mapping[int, str]) -> Iterator[str]:
    """Say which processes did not end as they should."""
    for rank in range(SIZE):
        if rank == fault.rank and fault.kind in ("kill", "stop"):
            continue
        if rank not in ended:
            yield f"rank {rank} did not end"
        elif fault.kind == "slow" and ended[rank]:
            yield f"rank {rank} raised, though the other was only slow: {ended[rank]}"
        elif fault.kind != "slow" and not ended[rank]:
            if not _may_have_ended(fault, rank):
                yield f"rank {rank} noticed nothing"
        elif fault.kind != "slow":
            yield from _said(fault, rank, ended[rank])


def _may_have_ended(fault: Fault, rank: int) -> bool:
    """Whether a process may have had all that it needed: the last checkpoint was being saved."""
    return fault.phase == "checkpoint" and fault.step == STEPS - 1


def _said(fault: Fault, rank: int, said: str) -> Iterator[str]:
    """Say what an error lacks."""
    kind, _, _ = said.partition(":")
    wanted = {
        "CollectiveError": ("over axis 'shard'", "raised by ", "training.py:"),
        "DisagreementError": ("has not compiled",),
        "CheckpointError": ("the checkpoint of step ",),
    }.get(kind)
    if wanted is None:
        yield f"rank {rank} raised {said}"
    else:
        yield from [f"rank {rank} does not say {text!r}: {said}" for text in wanted if text not in said]


def losses_in(folder: Path, launch: str, rank: int) -> list[str]:
    """Return the lines that a process wrote, a step and a loss in each."""
    file = folder / f"losses_{launch}_{rank}"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def _losses(folder: Path, launch: str, expected: Expected) -> Iterator[str]:
    for rank in range(SIZE):
        for line in losses_in(folder, launch, rank):
            if line not in expected.losses[rank]:
                yield f"rank {rank} had the wrong loss {line}"


def checkpoints_in(folder: Path) -> dict[int, dict[str, torch.Tensor]]:
    """Load all checkpoints, and return the parameters by the step."""
    places = (folder / "checkpoints").glob("step_*")
    return {int(place.name.removeprefix("step_")): whole_checkpoint(place) for place in places}


def _checkpoints(folder: Path, expected: Expected) -> tuple[int, list[str]]:
    try:
        found = checkpoints_in(folder)
    except Exception as error:
        return 0, [f"a checkpoint cannot be loaded: {error!r}"]
    wrong = []
    for step, state in found.items():
        if not all([torch.equal(t, state[name]) for name, t in expected.checkpoints[step].items()]):
            wrong.append(f"the checkpoint of step {step} holds other parameters")
    return len(found), wrong


def logs(folder: Path) -> str:
    """Return the ends of what processes printed."""
    return "\n".join([file.read_text(encoding="utf-8")[-2000:] for file in sorted(folder.glob("log_*"))])


def table(found: Sequence[Found], timeout: float) -> str:
    """Return a table of what came of faults."""
    lines = [
        ["phase", "fault", "runs", "until all had raised, s: median", "most", "checkpoints", "not as it should be"]
    ]
    for phase in PHASES:
        for kind in KINDS:
            rows = [f for f in found if (f.fault.phase, f.fault.kind) == (phase, kind)]
            if not rows:
                continue
            times = [f.seconds for f in rows if f.seconds]
            spent = [f"{statistics.median(times):.1f}", f"{max(times):.1f}"] if times else ["none did", ""]
            checkpoints, wrong = sum([f.checkpoints for f in rows]), sum([bool(f.wrong) for f in rows])
            lines.append([phase, kind, str(len(rows)), *spent, str(checkpoints), str(wrong)])
    bad = sum([bool(f.wrong) for f in found])
    summary = f"{len(found)} runs, {bad} not as they should be; the process group's timeout is {timeout:g} s."
    said = next((f.said for f in found if f.said.startswith("CollectiveError") and f.fault.phase == "backward"), "")
    parts = [
        markdown(lines),
        summary,
        *(["", "What a process says, for example:", "", "```text", said, "```"] if said else []),
    ]
    return "\n".join(parts)


__all__ = [
    "KINDS", "PHASES", "Expected", "Fault", "Found", "checkpoints_in", "faults", "launched", "run", "table",
    "undisturbed",
]  # fmt: skip
