"""What becomes of calls that no program can be made of: refused, or run in Python, whole or by the frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from thunder_executors import ExecutorError, UnavailableError, UnclaimedError
from thunder_frontend._splits import Splits
from thunder_guards.errors import DifferenceError, HandedOverError, SharpEdgeError, is_of_our_code
from thunder_interpreter import UnsupportedOpcode, UnsupportedPython
from thunder_ir import DuplicateRuleError, OutsideTraceError, ThunderError, TraceFormatError, VerificationError

ASKED_FOR = (
    SharpEdgeError, DifferenceError, VerificationError, ExecutorError, UnavailableError, UnclaimedError,
    DuplicateRuleError, OutsideTraceError, TraceFormatError, HandedOverError, UnsupportedPython,
)  # fmt: skip
"""Errors that tell of what was asked for when compiling, or of the Python that runs, and not of the program."""

KINDS = 8
"""For how many kinds of calls it is found out on its own that there is no program; then it is taken for granted."""


class Fallback:
    """Runs the calls of one callable that no program can be made of.

    Args:
        function: what is compiled.
        name: of it, for messages.
        mode: ``"error"`` refuses them, ``"warn"`` runs the callable in Python, ``"split"`` its frame by ``splits``.
        splits: runs frames in Python, and what they call compiled; knows what does so.
    """

    def __init__(self, function: Callable[..., Any], name: str, mode: str, splits: Splits) -> None:
        self._function, self._name, self._mode, self._splits = function, name, mode, splits
        self._kinds: set[Any] = set()
        self._gave_up = False

    def takes(self, error: Exception) -> bool:
        """Whether a call for which there was this error runs in Python."""
        if self._mode == "error" or isinstance(error, ASKED_FOR):
            return False
        unsupported = isinstance(error, (ThunderError, UnsupportedOpcode))
        return unsupported or is_of_our_code(error)

    def knows(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Whether there is no program for calls of this kind."""
        if self._gave_up:
            return True
        kinds = self._kinds
        return bool(kinds) and (len(kinds) >= KINDS or self._kind(args, kwargs) in kinds)

    def note(self, error: Exception, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Note that there is no program for a call, and why."""
        self._kinds.add(self._kind(args, kwargs))
        self._splits.report.note(self._name, error)

    def give_up(self, error: Exception) -> None:
        """Note why no more programs are made, for whatever calls."""
        self._gave_up = True
        self._splits.report.note(self._name, error)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call in Python; what eager raises, this raises, and no warning is given then."""
        if self._mode == "warn":
            result = self._function(*args, **kwargs)
            self._splits.report.tell('All of it runs without being compiled; fallback="error" refuses it.')
        else:
            result = self._splits.run(self._function, args, kwargs)
            self.tell()
        return result

    def tell(self) -> None:
        """Warn of what runs in Python."""
        self._splits.report.tell(
            'What it calls is compiled. thunder.explain tells of all such places, fallback="error" refuses them.'
        )

    def loses(self, error: Exception) -> bool:
        """Whether there may be a program of this kind of call once the frame is lost that this error tells of."""
        return self._mode == "split" and self._splits.loses(error, self._function)

    def _kind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        training = getattr(self._function, "training", None)
        return (training, torch.is_grad_enabled(), *map(_kind_of, args), *kwargs, *map(_kind_of, kwargs.values()))


def _kind_of(value: object) -> Any:
    if isinstance(value, torch.Tensor):
        return (type(value), value.dtype, value.dim(), value.requires_grad, value.layout)
    if isinstance(value, torch.nn.Module):
        return (type(value), id(value), value.training)
    if value is None or isinstance(value, (bool, str)):
        return value
    return type(value)
