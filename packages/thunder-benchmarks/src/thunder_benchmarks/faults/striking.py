"""What a fault does to the process that it is in."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from thunder_distributed import Ledger
from thunder_frontend import Transform
from thunder_ir import Trace

_ATTACH_FILTER = 26  # SO_ATTACH_FILTER of Linux, which socket does not name
_DROP = struct.pack("HBBI", 0x06, 0, 0, 0)  # a packet filter of one instruction: take no byte of any packet


def cut_off() -> None:
    """Let nothing arrive any more that is sent to this process over TCP, neither data nor acknowledgements."""
    program = ctypes.create_string_buffer(_DROP)
    for name in os.listdir("/proc/self/fd"):
        try:
            connection = socket.socket(fileno=os.dup(int(name)))
        except OSError:  # no socket, or closed meanwhile
            continue
        with connection:
            if connection.family in (socket.AF_INET, socket.AF_INET6):
                connection.setsockopt(
                    socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("HxxxxxxP", 1, ctypes.addressof(program))
                )


def pause(seconds: float) -> None:
    """Stop this process, all of its threads, for a while."""
    subprocess.Popen(["sh", "-c", f"sleep {seconds}; kill -CONT {os.getpid()}"])
    os.kill(os.getpid(), signal.SIGSTOP)


class Striker:
    """Strikes once, at a place of a phase.

    Args:
        kind: ``"kill"``, ``"stop"``, ``"slow"`` or ``"partition"``.
        phase: in which it strikes.
        step: of training.
        place: how many collectives of the phase begin before; in the phases without any it is random when.
        note: a file, which gets the time at which it struck.
        pause: seconds for which a slow process stands still.
    """

    def __init__(self, kind: str, phase: str, step: int, place: int, note: Path, pause: float) -> None:
        self.kind, self.phase, self.step, self.place = kind, phase, step, place
        self.note, self.pause = note, pause
        self.left: int | None = None
        self.struck = False

    def strike(self) -> None:
        """Strike, unless that was done before."""
        if self.struck:
            return
        self.struck = True
        self.note.write_text(repr(time.time()), encoding="utf-8")
        if self.kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.kind == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.kind == "slow":
            pause(self.pause)
        else:
            cut_off()

    def began(self) -> None:
        """Note that a collective begins."""
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.strike()

    @contextmanager
    def within(self, phase: str, step: int) -> Iterator[None]:
        """Strike while the body runs, if it is the phase and the step; at its end at the latest."""
        if (phase, step) != (self.phase, self.step):
            yield
            return
        if phase == "checkpoint":
            timer = threading.Timer(random.Random(self.place).uniform(0.0, 0.1), self.strike)
            timer.start()
            yield
            timer.join()
            return
        self.left = self.place
        yield
        self.left = None
        self.strike()


class Striking(Ledger):
    """A ledger that tells a striker of every collective that begins."""

    def __init__(self, striker: Striker) -> None:
        super().__init__()
        self.striker = striker

    def begin(self, sent: float) -> None:
        self.striker.began()
        super().begin(sent)


class StrikingCompiler(Transform):
    """A transform that changes nothing, and strikes where a program is compiled."""

    def __init__(self, striker: Striker) -> None:
        self.striker = striker

    def transform_traces_pre_prologue(
        self, prologue_trace: Any, computation_trace: Trace, epilogue_trace: Any, **kwargs: Any
    ) -> tuple[Any, Trace, Any]:
        if self.striker.phase == "compile":
            self.striker.strike()
        return prologue_trace, computation_trace, epilogue_trace


__all__ = ["Striker", "Striking", "StrikingCompiler", "cut_off", "pause"]
