"""Errors as the user meets them: the frames of the user's own code, and where in it a failing operation came from."""

from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable, Iterator
from types import FrameType, TracebackType

from thunder_executors import FusionExecutor
from thunder_guards.errors import AcquisitionError, entries, traceback_of
from thunder_guards.own_code import OURS, name_in, package_of
from thunder_interpreter import replaced_builtins
from thunder_ir import BoundSymbol, Trace

GENERATED = "<thunder "
LIBRARIES = frozenset({"torch", "contextlib"})
EVERY_FRAME = "THUNDER_FULL_TRACEBACKS"
"""Environment variable under which tracebacks keep the frames of Thunder."""


def tell_the_user(error: Exception, programs: Iterable[Trace]) -> None:
    """Take Thunder's frames out of an error's traceback, and note the user's line that a program failed at.

    Args:
        error: raised by a call of a compiled function.
        programs: the programs that may have been running.
    """
    if os.environ.get(EVERY_FRAME):
        return
    for note in _places(error.__traceback__, programs):
        error.add_note(note)
    _drop_own_frames(error, set())


def _drop_own_frames(error: BaseException, seen: set[int]) -> None:
    """Leave, here and in what led to the error, only the user's frames; forget what only Thunder had to do with."""
    seen.add(id(error))
    error.__traceback__ = _users_frames(error.__traceback__)
    for name in ("__context__", "__cause__"):
        earlier = getattr(error, name)
        if earlier is not None and id(earlier) not in seen:
            suppressed, raised = error.__suppress_context__, earlier.__traceback__ is not None
            _drop_own_frames(earlier, seen)
            if raised and earlier.__traceback__ is None:
                setattr(error, name, None)
            error.__suppress_context__ = suppressed


def _users_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Return a traceback without Thunder's frames, and without a library's frames where Thunder called that."""
    frames: list[TracebackType] = []
    called_by_us = True
    for entry in entries(traceback):
        owner = package_of(name_in(entry.tb_frame.f_globals))
        if owner in OURS and not entry.tb_frame.f_code.co_filename.startswith(GENERATED):
            called_by_us = True
            while frames and _dispatches(frames[-1]):
                frames.pop()
        elif not (called_by_us and owner in LIBRARIES):
            called_by_us = False
            frames.append(entry)
    return traceback_of(frames)


def users_stacklevel() -> int:
    """Return the ``stacklevel`` with which a warning that the caller gives shows the user's line."""
    level, frame = 0, sys._getframe(1)
    while frame.f_back is not None and _of_thunder(frame):
        level, frame = level + 1, frame.f_back
    return level + 1


def _of_thunder(frame: FrameType) -> bool:
    package = package_of(name_in(frame.f_globals))
    return package in OURS or package in LIBRARIES or frame.f_code.co_filename.startswith(GENERATED)


def _dispatches(traceback: TracebackType) -> bool:
    """Whether a frame of PyTorch only hands a call on to whoever overrides it."""
    return traceback.tb_frame.f_globals.get("__name__") == "torch.overrides"


def _places(traceback: TracebackType | None, programs: Iterable[Trace]) -> list[str]:
    """Say for each line of a running program in the traceback which of the user's lines it came from."""
    notes = []
    around: BoundSymbol | None = None  # the region that runs, if one does
    for entry in entries(traceback):
        filename, within = entry.tb_frame.f_code.co_filename, entry.tb_next
        calls_part = within is not None and within.tb_frame.f_code.co_filename == filename
        if filename.startswith(GENERATED) and not calls_part:
            line = linecache.getline(filename, entry.tb_lineno).strip()
            bound = _call_at(line, "".join(linecache.getlines(filename)), programs) or _call_within(around, line)
            around = bound if bound is not None and isinstance(bound.symbol.executor, FusionExecutor) else None
            if bound is not None and around is None and (where := bound.location) is not None:
                source = linecache.getline(where.filename, where.line).strip()
                notes.append(f"raised by {line.partition('  # ')[0]}\n  from {where}:  {source}")
    return notes


def _call_at(line: str, text: str, programs: Iterable[Trace]) -> BoundSymbol | None:
    """Return the call that a line of a program's text makes."""
    output = _first_output(line)
    for program in _with_regions(programs):
        for bound in program.bound_symbols:
            if any(p.name == output for p in bound.outputs):
                if program.executable().text.strip() == text.strip():
                    return bound
                break
    return None


def _call_within(region: BoundSymbol | None, line: str) -> BoundSymbol | None:
    """Return the call that failed in a region, by a line of the text that all regions like it share."""
    if region is None:
        return None
    shared, own = getattr(region.symbol.implementation, "region", None), region.symbol.region
    if not isinstance(shared, Trace) or not isinstance(own, Trace):
        return None
    if len(shared.bound_symbols) != len(own.bound_symbols):  # the executor has taken the calls of its region apart
        return None
    output = _first_output(line)
    pairs = zip(shared.bound_symbols, own.bound_symbols, strict=True)
    return next((mine for other, mine in pairs if any(p.name == output for p in other.outputs)), None)


def _first_output(line: str) -> str:
    """Return the name of the first value that a line of a program's text defines."""
    return line.partition(" = ")[0].strip("(),").partition(",")[0]


def _with_regions(programs: Iterable[Trace]) -> Iterator[Trace]:
    """Yield programs, and those that regions of them say they run again where something failed."""
    for program in programs:
        yield program
        for bound in program.bound_symbols:
            region = getattr(bound.symbol.implementation, "replays", None)
            if isinstance(region, Trace):
                yield region


def because_of_builtins(error: Exception) -> AcquisitionError | None:
    """Return what to raise for an error of Thunder's own code where user code replaced builtins that it relies on."""
    replaced = sorted(set(replaced_builtins()) - _FOR_PEOPLE)
    if not replaced:
        return None
    names = ", ".join([f"builtins.{name}" for name in replaced])
    found = AcquisitionError(
        f"{names} is replaced, which the code of Thunder and PyTorch runs, too, while a program is acquired "
        f"({error!r}); put it back, and give the name another meaning in your own module alone"
    )
    found.__cause__ = error
    return found


_FOR_PEOPLE = frozenset({"print", "input", "open", "help", "breakpoint", "exit", "quit", "__import__"})
"""Builtins on which no computation relies."""
