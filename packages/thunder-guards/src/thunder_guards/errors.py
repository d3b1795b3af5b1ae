"""Errors of acquisition: what cannot be traced, with the way out."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Iterator, Sequence
from types import CodeType, TracebackType
from typing import Any

import torch

from thunder_guards.own_code import OURS, name_in, package_of
from thunder_ir import NumberProxy, ThunderError


class AcquisitionError(ThunderError, RuntimeError):
    """The program does something that a trace cannot hold.

    The message says what, in which operation, and where in the user's code; the traceback has the user's frames only.
    """

    operation: str | None = None
    where: str | None = None
    frames: tuple[tuple[CodeType, str, torch.nn.Module | None], ...] = ()
    """The interpreted frames that it went through, innermost first: code, package, the module whose method it is."""
    recorded: int = 0
    """How many calls the program had until then."""
    sees: bool = False
    """Whether it came so far in the one way alone in which Python sees values that only the run tells."""

    def __str__(self) -> str:
        parts = [super().__str__()]
        if self.operation is not None:
            parts.append(f"  operation: {self.operation}")
        if self.where is not None:
            parts.append(f"  at {self.where}")
        return "\n".join(parts)


class BeginAgain(BaseException):  # noqa: N818  (a signal, which no handler of the user's may take for an error)
    """What was acquired of a call until now does not hold any more, or was not prepared for what it met."""


class HandedOverError(AcquisitionError):
    """The program gives one of Thunder's own operations what that cannot take; it runs nowhere but in a program."""


def in_users_code(error: AcquisitionError) -> AcquisitionError:
    """Return the error with the place in the user's code, and without the frames of Thunder and PyTorch below it.

    Where a module of PyTorch's is all that there is, the place is in that one.
    """
    frames, library, ours = [], [], OURS | {"torch"}
    for traceback in entries(error.__traceback__):
        module = name_in(traceback.tb_frame.f_globals)
        if package_of(module) not in ours:
            frames.append(traceback)
        elif module.startswith(_LIBRARY):
            library.append(traceback)
    frames = frames or library
    if not frames:
        return error
    code, line = frames[-1].tb_frame.f_code, frames[-1].tb_lineno
    text = linecache.getline(code.co_filename, line).strip()
    error.where = f"{code.co_filename}:{line}, in {code.co_name}" + (f": {text}" if text else "")
    return error.with_traceback(traceback_of(frames))


def entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """Yield the entries of a traceback, the outermost first."""
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def traceback_of(frames: Sequence[TracebackType]) -> TracebackType | None:
    """Return a traceback of these frames alone, the outermost first; ``None`` if there are none."""
    kept: TracebackType | None = None
    for found in reversed(frames):
        kept = TracebackType(kept, found.tb_frame, found.tb_lasti, found.tb_lineno)
    return kept


_LIBRARY = ("torch.nn.modules", "torch.nn.utils", "torch.optim", "torch.distributions")


def is_of_our_code(error: Exception) -> bool:
    """Whether an error was raised by code that user code had called Thunder for, and not by user code."""
    ours = [name_in(tb.tb_frame.f_globals).startswith("thunder_") for tb in entries(error.__traceback__)]
    return any(itertools.dropwhile(bool, ours))


def state_of(error: BaseException) -> tuple[Any, dict[str, Any]]:
    """Return what an exception holds, for those that hold tensors or symbolic numbers: its arguments and attributes."""
    if any(isinstance(held, (torch.Tensor, NumberProxy)) for held in (*error.args, *error.__dict__.values())):
        return error.args, dict(error.__dict__)
    return (), {}


def with_state(error: BaseException, state: tuple[Any, dict[str, Any]]) -> BaseException:
    """Return the exception with what :func:`state_of` returned of it, made of this call's tensors."""
    args, attributes = state
    error.args = args or error.args
    error.__dict__.update(attributes)
    return error


class DataDependentError(AcquisitionError):
    """Python needs the value of a tensor that is known only when the program runs."""


class UnknownTensorError(AcquisitionError):
    """A tensor reached an operation by a way that cannot be guarded."""


class UnsupportedOperationError(AcquisitionError, NotImplementedError):
    """An operation of PyTorch's has no place in a program."""


class SharpEdgeError(AcquisitionError):
    """The program has an effect, or reads something, that the compiled program cannot repeat."""


class SharpEdgeWarning(UserWarning):
    """As :class:`SharpEdgeError`, where the caller asked for warnings."""


class DifferenceError(ThunderError, AssertionError):
    """A compiled call did something else than eager; only looked for with ``check="first-call"``."""
