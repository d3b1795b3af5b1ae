"""What is shown on a terminal while compiling takes long: the stages, and how long each took; nothing anywhere else."""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import TextIO

AFTER, EVERY = 1.0, 0.2
"""Seconds after which the stages are shown, and after which they are written again."""

SHOWS_ONE = _thread.allocate_lock()
"""Held by the one compilation that is shown, of those that several threads make."""


class Stages:
    """The stages of a compilation, with the seconds that each has taken so far; what comes again goes on."""

    def __init__(self) -> None:
        self._took: dict[str, float] = {}
        self._now, self._since = "", time.monotonic()

    def begin(self, name: str) -> None:
        """Note that a stage has begun, and the one before is over."""
        now = time.monotonic()
        if self._now:
            self._took[self._now] = self._took.get(self._now, 0.0) + now - self._since
        self._now, self._since = name, now

    def now(self) -> tuple[str, float]:
        """Return the stage that has begun last, and its seconds."""
        return self._now, self._took.get(self._now, 0.0) + time.monotonic() - self._since

    def over(self) -> list[tuple[str, float]]:
        """Return the others."""
        return [(name, took) for name, took in list(self._took.items()) if name != self._now]


class Line:
    """What stands at the bottom of a terminal, written by a thread of its own until it is taken away.

    The thread is none of :mod:`threading`'s, so that programs which count these find as many as without.

    Args:
        name: of what is compiled.
        stream: the terminal.
        after: seconds after which it is shown.
    """

    def __init__(self, name: str, stream: TextIO, after: float) -> None:
        self._name, self._stream, self._after = name, stream, after
        self._stages, self._start = Stages(), time.monotonic()
        self._done, self._left = _thread.allocate_lock(), _thread.allocate_lock()
        self._done.acquire()
        self._left.acquire()
        _thread.start_new_thread(self._write, ())

    def stage(self, name: str) -> None:
        """Note which stage has begun."""
        self._stages.begin(name)

    def end(self) -> None:
        """Take it away."""
        self._done.release()
        self._left.acquire()

    def _write(self) -> None:
        try:
            if self._done.acquire(timeout=self._after):
                return
            view = import_module("thunder_frontend._stages_view").View(self._name, self._stream)
            while True:
                view.show(self._stages, time.monotonic() - self._start)
                if self._done.acquire(timeout=EVERY):
                    break
            view.end()
        except (OSError, ValueError):  # the terminal was closed
            return
        finally:
            self._left.release()


@contextmanager
def progress(name: str, stream: TextIO | None = None, after: float = AFTER) -> Iterator[Callable[[str], None]]:
    """Show, while the block runs, what is compiled and how far that is; yield what is told of each stage.

    Args:
        name: of what is compiled.
        stream: where to; nothing is shown unless it is a terminal. ``THUNDER_PROGRESS=0`` shows nothing, either.
        after: seconds after which it is shown.
    """
    stream = sys.stderr if stream is None else stream
    if stream is None or not stream.isatty() or os.environ.get("THUNDER_PROGRESS") == "0":
        yield _unseen
    elif not SHOWS_ONE.acquire(blocking=False):
        yield _unseen
    else:
        line = Line(name, stream, after)
        try:
            yield line.stage
        finally:
            line.end()
            SHOWS_ONE.release()


def _unseen(stage: str) -> None:
    """Show nothing."""
