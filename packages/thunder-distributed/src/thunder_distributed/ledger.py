"""What an axis remembers while programs run over it: what was sent, how long was waited, and what was agreed on."""

from __future__ import annotations

import hashlib
import time
import zlib
from collections import Counter
from collections.abc import Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import zip_longest
from typing import Any

import torch.distributed as dist

from thunder_executors import ExecutorError

MATCHES = b"all the same"
LATEST = 1.5
"""How much longer than the first process, who compares, the others wait for what it finds."""


class DisagreementError(ExecutorError):
    """Processes would communicate differently, so that none of them would ever end; the message says where."""


class Ledger:
    """The account of one axis in this process.

    ``sent`` counts bytes that leave this process, ``calls`` the collectives, and ``waited`` the seconds in which
    nothing but waiting was done.
    """

    def __init__(self) -> None:
        self.sent = 0.0
        self.calls = 0
        self.waited = 0.0
        self._agreed: dict[str, str] = {}
        """By the hash of what is communicated, what does it."""
        self._ways: Counter[str] = Counter()
        """In how many ways programs of one name communicate."""

    def begin(self, sent: float) -> None:
        """Note a collective that sends so many bytes from here."""
        self.calls += 1
        self.sent += sent

    @contextmanager
    def waiting(self) -> Any:
        """Note how long is waited within."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.waited += time.perf_counter() - start

    def has_others(self, digest: str) -> bool:
        """Whether programs of the same name communicate in other ways, so that each process may run another one."""
        return self._ways[self._agreed[digest]] > 1

    def agree(self, where: str, lines: Sequence[str], program: str, limit: float, line: str = "Collective") -> str:
        """Make sure that all processes of an axis are about to communicate in the same way.

        Each puts a hash of what it will send into the store of the process group, the first compares them, and all
        read what it found. What was agreed on once is not asked again, so that a process may compile for a batch of
        another size by itself.

        Args:
            where: the axis: its name, and the ranks on it.
            lines: what is communicated, in order.
            program: its name, for messages.
            limit: seconds to wait for the others.
            line: what each line describes, for messages.

        Returns:
            The hash of what is communicated.

        Raises:
            DisagreementError: another process communicates otherwise, or has compiled nothing within the limit.
        """
        text = "\n".join(lines)
        digest = hashlib.sha256(text.encode()).hexdigest()
        if digest not in self._agreed:
            Meeting(where, program, limit, line).attend(text, digest)
            self._agreed[digest] = program
            self._ways[program] += 1
        return digest


class Meeting:
    """One comparison between all processes of an axis.

    Args:
        where: the axis, by name and ranks.
        program: its name, for messages.
        limit: seconds to wait for the others.
        line: what each line describes, for messages.
    """

    def __init__(self, where: str, program: str, limit: float, line: str = "Collective") -> None:
        name, _, ranks = where.partition(":")
        self.name, self.ranks = name, [int(r) for r in ranks.split(",")]
        self.where, self.program, self.limit, self.line = where, program, limit, line
        self.store = dist.distributed_c10d._get_default_store()

    def attend(self, text: str, digest: str) -> None:
        """Compare, and return if all are the same.

        Raises:
            DisagreementError: they are not, or somebody did not come.
        """
        try:
            self._attend(text, digest)
        except dist.DistError as error:
            raise DisagreementError(
                f"rank {dist.get_rank()} cannot compare {self.program} with the others over axis {self.name!r}, as the "
                f"store of the process group is gone: {error}. The process that holds it has ended"
            ) from error

    def _attend(self, text: str, digest: str) -> None:
        me = dist.get_rank()
        number = self.store.add(f"thunder/{self.where}/meetings/{me}", 1)
        base = f"thunder/{self.where}/{number}"
        self.store.set(f"{base}/{me}", digest.encode() + b"\n" + zlib.compress(text.encode()))  # type: ignore[arg-type]
        if me == self.ranks[0]:
            self.store.set(f"{base}/verdict", self.verdict(base))  # type: ignore[arg-type]
        verdict = self.read(f"{base}/verdict", self.ranks[0], self.limit * LATEST)
        if verdict != MATCHES:
            raise DisagreementError(verdict.decode())

    def verdict(self, base: str) -> bytes:
        """Return what the first process finds."""
        found: dict[int, tuple[bytes, bytes]] = {}
        deadline = time.monotonic() + self.limit
        for rank in self.ranks:
            try:
                value = self.read(f"{base}/{rank}", rank, max(deadline - time.monotonic(), 0.01))
            except DisagreementError as error:
                return str(error).encode()
            digest, _, text = value.partition(b"\n")
            found[rank] = digest, text
        first = self.ranks[0]
        for rank, (digest, text) in found.items():
            if digest != found[first][0]:
                mine, theirs = (zlib.decompress(t).decode().splitlines() for t in (found[first][1], text))
                return self.difference(rank, mine, theirs).encode()
        return MATCHES

    def read(self, key: str, rank: int, seconds: float) -> bytes:
        """Return what another process wrote.

        Raises:
            DisagreementError: it wrote nothing in time.
        """
        try:
            self.store.wait([key], timedelta(seconds=seconds))
        except dist.DistNetworkError:
            raise
        except RuntimeError as error:
            raise DisagreementError(
                f"rank {rank} has not compiled what rank {dist.get_rank()} has, {self.program}, after "
                f"{self.limit:.0f} s: it runs another program, is stuck, or has ended. All processes of axis "
                f"{self.name!r} must call the model equally often, with arguments of the same kinds"
            ) from error
        return self.store.get(key)

    def difference(self, rank: int, mine: Sequence[str], theirs: Sequence[str]) -> str:
        """Describe the first line in which two processes differ."""
        pairs = enumerate(zip_longest(mine, theirs, fillvalue="nothing more"), 1)
        number, (here, there) = next((i, pair) for i, pair in pairs if pair[0] != pair[1])
        return (
            f"processes of axis {self.name!r} would communicate differently in {self.program}: wait for each other for "
            f"ever, or mix what does not belong together. {self.line} {number} is\n"
            f"  on rank {self.ranks[0]}: {here}\n  on rank {rank}: {there}\n"
            "Arguments, settings or branches differ between the processes: let all of them call the model in the same "
            "way"
        )


__all__ = ["DisagreementError", "Ledger"]
