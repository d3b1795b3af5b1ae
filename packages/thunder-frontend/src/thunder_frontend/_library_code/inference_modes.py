"""Inference mode, which lasts as long as what entered it: a program leaves what it enters, and nothing else."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError

ENTER, EXIT = torch.inference_mode.__enter__, torch.inference_mode.__exit__
REFUSED = "the program {} torch.inference_mode() and does not undo that before it returns; use a with statement"


class InferenceModes:
    """Enters and leaves inference mode for real while a program is acquired."""

    def __init__(self) -> None:
        self._entered: list[weakref.ref[Any]] = []

    def lookasides(self) -> dict[Any, Callable[..., Any]]:
        """Return what is run in place of which functions."""
        return {ENTER: self._enter, EXIT: self._exit}

    def _enter(self, mode: torch.inference_mode) -> None:
        ENTER(mode)
        self._entered.append(weakref.ref(mode))

    def _exit(self, mode: torch.inference_mode, *exception: Any) -> None:
        here = next((reference for reference in self._entered if reference() is mode), None)
        if here is None:
            raise AcquisitionError(REFUSED.format("leaves"))
        self._entered.remove(here)
        EXIT(mode, *exception)

    def restore(self) -> bool:
        """Leave what was entered and is not left; return whether there was any."""
        left = [mode for reference in reversed(self._entered) if (mode := reference()) is not None]
        self._entered.clear()
        for mode in left:
            EXIT(mode, None, None, None)
        return bool(left)

    def check(self) -> None:
        """Refuse to go on where the program has not left what it entered.

        Raises:
            AcquisitionError: it has not.
        """
        if self.restore():
            raise AcquisitionError(REFUSED.format("enters"))
