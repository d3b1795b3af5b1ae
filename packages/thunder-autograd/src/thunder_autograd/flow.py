"""Minimum cuts of flow networks: small ones here, large ones through SciPy."""

from __future__ import annotations

import importlib
import math
from collections import deque
from collections.abc import Collection, Hashable

SMALL = 20_000  # edges up to which the cut is found here, where contracted; importing SciPy takes longer
UNBOUNDED = 1 << 62  # more than all that can be cut


class Network:
    """A flow network that is built edge by edge.

    Example:
        >>> from thunder_autograd.flow import Network
        >>> network = Network()
        >>> network.edge(network.source, network.node("a"), 5.0)
        0
        >>> network.edge(network.node("a"), network.sink, 3.0)
        1
        >>> network.node("a") in network.sink_side()
        False
    """

    __slots__ = ("_heads", "_nodes", "_tails", "_weights", "sink", "source")

    def __init__(self) -> None:
        self.source, self.sink = 0, 1
        self._nodes: dict[Hashable, int] = {}
        self._tails: list[int] = []
        self._heads: list[int] = []
        self._weights: list[int] = []

    def node(self, key: Hashable) -> int:
        """Return the number of the node for ``key``, made where there is none yet."""
        return self._nodes.setdefault(key, len(self._nodes) + 2)

    def edge(self, tail: int, head: int, capacity: float) -> int:
        """Add an edge and return its number. An infinite capacity can never be cut."""
        self._tails.append(tail)
        self._heads.append(head)
        self._weights.append(UNBOUNDED if math.isinf(capacity) else math.ceil(capacity))
        return len(self._weights) - 1

    def change(self, edge: int, capacity: float) -> None:
        """Give an edge another capacity."""
        self._weights[edge] = UNBOUNDED if math.isinf(capacity) else math.ceil(capacity)

    def sink_side(self, least: Collection[int] = (), most: Collection[int] | None = None) -> set[int]:
        """Return the nodes on the sink's side of a minimum cut, of the one with the most of them.

        Args:
            least: nodes that are known to be among them.
            most: the only nodes that may be among them, where that is known.
        """
        count = len(self._nodes) + 2
        there = [] if most is None else [node for node in range(2, count) if node not in most]
        place = _contracted(count, self._tails, self._heads, self._weights, there, least)
        weights: dict[tuple[int, int], int] = {}
        for tail, head, weight in zip(self._tails, self._heads, self._weights, strict=True):
            if weight:
                way = place[tail], place[head]
                weights[way] = weights.get(way, 0) + weight
        edges = [(t, h, w) for (t, h), w in weights.items() if t != h and t != self.sink and h != self.source]
        if len(edges) <= SMALL:
            reached = _reached(count, edges)
        else:
            large = importlib.import_module("thunder_autograd.large_flow")
            reached = large.reached(count, edges, UNBOUNDED)
        return {node for node in range(count) if place[node] not in reached}


def _contracted(
    count: int,
    tails: list[int],
    heads: list[int],
    weights: list[int],
    with_source: Collection[int],
    with_sink: Collection[int],
) -> list[int]:
    """Return what stands for each node: source or sink for those known to be on its side, else itself.

    Known are those given, and what no cut can part from them.
    """
    ahead: list[list[int]] = [[] for _ in range(count)]
    behind: list[list[int]] = [[] for _ in range(count)]
    for tail, head, weight in zip(tails, heads, weights, strict=True):
        if weight >= UNBOUNDED:
            ahead[tail].append(head)
            behind[head].append(tail)
    place = list(range(count))
    for end, known, neighbours in ((0, with_source, ahead), (1, with_sink, behind)):
        stack = [end, *known]
        for node in known:
            place[node] = end
        while stack:
            for node in neighbours[stack.pop()]:
                if node > 1 and place[node] == node:
                    place[node] = end
                    stack.append(node)
    return place


def _reached(count: int, ways: list[tuple[int, int, int]]) -> set[int]:
    """Return the nodes that the source, node 0, still reaches when a maximum flow to node 1 is taken away.

    Args:
        count: of nodes.
        ways: edges as tail, head and capacity.

    Source:
        E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation" (1970).
    """
    edges: list[list[int]] = [[] for _ in range(count)]
    to: list[int] = []
    left: list[int] = []  # capacity left; the edge back is the next one
    for tail, head, weight in ways:
        edges[tail].append(len(to))
        edges[head].append(len(to) + 1)
        to += (head, tail)
        left += (weight, 0)
    while True:
        level = _levels(count, edges, to, left)
        if level[1] < 0:
            return {node for node in range(count) if level[node] >= 0}
        _block(edges, to, left, level)


def _levels(count: int, edges: list[list[int]], to: list[int], left: list[int]) -> list[int]:
    """Return the distance of each node from the source along edges with capacity left; -1 where there is no way."""
    level = [-1] * count
    level[0] = 0
    queue = deque([0])
    while queue:
        node = queue.popleft()
        for edge in edges[node]:
            head = to[edge]
            if left[edge] and level[head] < 0:
                level[head] = level[node] + 1
                queue.append(head)
    return level


def _block(edges: list[list[int]], to: list[int], left: list[int], level: list[int]) -> None:
    """Send flow along shortest ways until none is left."""
    following = [0] * len(edges)
    path: list[int] = []
    node = 0
    while True:
        if node == 1:
            flow = min([left[edge] for edge in path])
            first = len(path)
            for place in range(len(path) - 1, -1, -1):
                edge = path[place]
                left[edge] -= flow
                left[edge ^ 1] += flow
                if not left[edge]:
                    first = place
            node = to[path[first] ^ 1]
            del path[first:]
        at = following[node]
        outgoing = edges[node]
        while at < len(outgoing):
            edge = outgoing[at]
            if left[edge] and level[to[edge]] == level[node] + 1:
                break
            at += 1
        following[node] = at
        if at < len(outgoing):
            path.append(outgoing[at])
            node = to[outgoing[at]]
        elif path:  # no way on: not this edge again
            node = to[path.pop() ^ 1]
            following[node] += 1
        else:
            return
