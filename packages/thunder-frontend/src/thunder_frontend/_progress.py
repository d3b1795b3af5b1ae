"""What is shown on a terminal while compiling takes long: the stage, and for how long; nothing anywhere else."""

from __future__ import annotations

import _thread
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

AFTER, EVERY = 1.0, 0.2
"""Seconds after which the line is shown, and after which it is written again."""

SHOWS_ONE = _thread.allocate_lock()
"""Held by the one compilation that is shown, of those that several threads make."""


class Line:
    """A line at the bottom of a terminal, written by a thread of its own until it is taken away.

    The thread is none of :mod:`threading`'s, so that programs which count these find as many as without.

    Args:
        name: of what is compiled.
        stream: the terminal.
        after: seconds after which it is shown.
    """

    def __init__(self, name: str, stream: TextIO, after: float) -> None:
        self._name, self._stream, self._after = name, stream, after
        self._stage, self._start = "", time.monotonic()
        self._done, self._left = _thread.allocate_lock(), _thread.allocate_lock()
        self._done.acquire()
        self._left.acquire()
        _thread.start_new_thread(self._write, ())

    def stage(self, name: str) -> None:
        """Take in which stage has begun."""
        self._stage = name

    def end(self) -> None:
        """Take the line away."""
        self._done.release()
        self._left.acquire()

    def _write(self) -> None:
        try:
            if self._done.acquire(timeout=self._after):
                return
            while True:
                seconds = time.monotonic() - self._start
                self._put(f"\r\x1b[Kthunder compiles {self._name}: {self._stage}, {seconds:.0f} s")
                if self._done.acquire(timeout=EVERY):
                    break
            self._put("\r\x1b[K")
        except (OSError, ValueError):  # the terminal was closed
            return
        finally:
            self._left.release()

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


@contextmanager
def progress(name: str, stream: TextIO | None = None, after: float = AFTER) -> Iterator[Callable[[str], None]]:
    """Show, while the block runs, what is compiled and how far that is; yield what takes in each stage.

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
