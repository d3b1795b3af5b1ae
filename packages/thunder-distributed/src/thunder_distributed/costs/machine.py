"""What machines and networks can do: constants in one file, with where they are from."""

from __future__ import annotations

import json
import math
from bisect import bisect_left
from dataclasses import dataclass
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class Machine:
    """One process's device.

    Args:
        name: of it.
        flops: operations per second of matrix products, by dtype; ``"default"`` for others.
        bandwidth: bytes per second from and to its memory.
        launch: seconds that starting an operation takes.
        slowdown: how many times longer computing takes while something is communicated.
        host: bytes per second to and from the memory of its host.
        cores: how many cores there are for each process, which computes with one and communicates with the others and
            with what is left of that one; ``None`` for devices, which have engines of their own to communicate with.
    """

    name: str
    flops: dict[str, float]
    bandwidth: float
    launch: float
    slowdown: float = 1.0
    host: float = math.inf
    cores: float | None = None

    def pace(self, busy: float | None = None) -> float:
        """Return how many seconds of computing are done in a second.

        Args:
            busy: how many cores communicating keeps busy meanwhile; ``None`` if nothing is communicated.

        Example:
            >>> here = Machine("four processes on two cores", {"default": 1e9}, 1e9, 0.0, cores=0.5)
            >>> here.pace(), here.pace(busy=0.125)
            (0.5, 0.375)
        """
        if self.cores is None:
            return 1.0 if busy is None else 1 / self.slowdown
        return min(1.0, max(self.cores - (busy or 0.0), self.cores / 2))

    def seconds(self, operations: float, moved: float, dtype: str) -> float:
        """Return how long an operation takes: what of arithmetic and memory takes longer.

        Args:
            operations: of floating-point numbers.
            moved: bytes read and written.
            dtype: of the result.
        """
        peak = self.flops.get(dtype, self.flops["default"])
        return max(operations / peak, moved / self.bandwidth, self.launch)


@dataclass(frozen=True)
class Link:
    """What joins the processes of one level: those of a node, or nodes.

    Args:
        latency: seconds for each step of a ring.
        bandwidth: bytes per second out of each process.
        curve: pairs of bytes and the fraction of the bandwidth that is reached, ascending; between them the fraction is
            interpolated in the logarithm of bytes: a straight line is up to half off in the middle.
    """

    latency: float
    bandwidth: float
    curve: tuple[tuple[float, float], ...] = ()

    def reached(self, size: float) -> float:
        """Return the bytes per second for a message of so many bytes."""
        if not self.curve:
            return self.bandwidth
        sizes = [s for s, _ in self.curve]
        i = bisect_left(sizes, size)
        if i == 0:
            return self.bandwidth * self.curve[0][1]
        if i == len(sizes):
            return self.bandwidth * self.curve[-1][1]
        (low, at_low), (high, at_high) = self.curve[i - 1], self.curve[i]
        share = math.log(size / low) / math.log(high / low)
        return self.bandwidth * (at_low + share * (at_high - at_low))


@dataclass(frozen=True)
class Network:
    """What joins all processes.

    Args:
        inside: links between the processes of a node.
        between: links between nodes, per process; ``None`` where there is one node.
        per_node: how many processes a node has.
        reduces: how many times faster sums over a node are than rings make them, as its switch adds up.
    """

    inside: Link
    between: Link | None = None
    per_node: int = 8
    reduces: float = 1.0

    ROUNDS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "all_to_all": 1.0, "broadcast": 1.0}

    def seconds(self, kind: str, size: float, processes: int) -> float:
        """Return how long a collective takes, by rings inside of nodes and between them.

        Args:
            kind: ``"all_reduce"``, ``"all_gather"``, ``"reduce_scatter"``, ``"all_to_all"``, ``"broadcast"`` or
                ``"permute"``.
            size: bytes of the whole: what each process has of an all-reduce, gets of an all-gather, or gives to a
                reduce-scatter.
            processes: how many take part.

        Source:
            the costs of ring algorithms in R. Thakur et al., Optimization of collective communication operations in
            MPICH (2005); hierarchical as in NCCL.
        """
        if processes <= 1:
            return 0.0
        if kind == "permute":
            link = self.between if self.between is not None and processes > self.per_node else self.inside
            return link.latency + size / link.reached(size)
        rounds = self.ROUNDS[kind]
        near = min(processes, self.per_node)
        nodes = -(-processes // self.per_node)
        if nodes == 1 or self.between is None:
            link = self.inside
            rounds /= self.reduces if kind == "all_reduce" else 1.0
            return rounds * ((near - 1) * link.latency + (near - 1) / near * size / link.reached(size))
        slowest = min(self.inside.reached(size), self.between.reached(size / near) * near)
        latency = (near - 1) * self.inside.latency + (nodes - 1) * self.between.latency
        return rounds * (latency + (processes - 1) / processes * size / slowest)

    def calling(self, kind: str, size: float, processes: int) -> float:
        """Return for how long a collective keeps the thread that waits for it: devices have streams of their own."""
        return 0.0

    def beside(self, kind: str, size: float, processes: int) -> tuple[float, float]:
        """Return how long a collective takes while something is computed: as long, and it keeps no core busy."""
        return self.seconds(kind, size, processes), 0.0


def known_machines() -> dict[str, tuple[Machine, Network]]:
    """Return the machines whose constants are in this package, with their networks, by name."""
    return {name: _read(name, entry) for name, entry in _table("machines.json").items() if not name.startswith("_")}


def machine(name: str) -> tuple[Machine, Network]:
    """Return a machine and its network.

    Raises:
        KeyError: none is known by that name.

    Example:
        >>> device, network = machine("h100")
        >>> round(network.seconds("all_gather", 1e9, 8) * 1e3, 1)
        2.5
    """
    known = known_machines()
    if name not in known:
        raise KeyError(f"no machine is known as {name!r}; there are {', '.join(known)}")
    return known[name]


def _read(name: str, entry: dict[str, Any]) -> tuple[Machine, Network]:
    rest = entry.get("slowdown", 1.0), entry.get("host", math.inf)
    device = Machine(name, entry["flops"], entry["bandwidth"], entry["launch"], *rest)
    between = None if entry["between"] is None else _link(entry["between"])
    inside, per_node, reduces = _link(entry["inside"]), entry.get("per_node", 8), entry.get("reduces", 1.0)
    return device, Network(inside, between, per_node, reduces)


def _link(entry: dict[str, Any]) -> Link:
    curve = tuple([(float(size), float(share)) for size, share in entry.get("curve", ())])
    return Link(entry["latency"], entry["bandwidth"], curve)


def _table(name: str) -> dict[str, Any]:
    return json.loads((files(__package__) / name).read_text(encoding="utf-8"))  # type: ignore[no-any-return]


__all__ = ["Link", "Machine", "Network", "known_machines", "machine"]
