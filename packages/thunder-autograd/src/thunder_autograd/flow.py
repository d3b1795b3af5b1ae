"""Maximum flow and the minimum cut, through SciPy."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import breadth_first_order, maximum_flow  # type: ignore[import-untyped]

LARGEST = 2**31 - 1  # capacities are 32-bit integers


class Network:
    """A flow network that is built edge by edge.

    Example:
        >>> from thunder_autograd.flow import Network
        >>> network = Network()
        >>> network.edge(network.source, network.node("a"), 5.0)
        >>> network.edge(network.node("a"), network.sink, 3.0)
        >>> network.node("a") in network.sink_side()
        False
    """

    __slots__ = ("_heads", "_nodes", "_tails", "_weights", "sink", "source")

    def __init__(self) -> None:
        self.source, self.sink = 0, 1
        self._nodes: dict[Hashable, int] = {}
        self._tails: list[int] = []
        self._heads: list[int] = []
        self._weights: list[float] = []

    def node(self, key: Hashable) -> int:
        """Return the number of the node for ``key``, made where there is none yet."""
        return self._nodes.setdefault(key, len(self._nodes) + 2)

    def edge(self, tail: int, head: int, capacity: float) -> None:
        """Add an edge; an infinite capacity can never be cut. Capacities of edges between the same nodes add up."""
        self._tails.append(tail)
        self._heads.append(head)
        self._weights.append(capacity)

    def sink_side(self) -> set[int]:
        """Return the nodes on the sink's side of a minimum cut, of the one with the most of them."""
        count = len(self._nodes) + 2
        tails, heads = np.array(self._tails, np.int32), np.array(self._heads, np.int32)
        graph = csr_array((self._capacities(), (tails, heads)), shape=(count, count))
        graph.sum_duplicates()
        graph.data = np.minimum(graph.data, LARGEST).astype(np.int32)
        residual = graph - maximum_flow(graph, self.source, self.sink).flow
        residual.data = (residual.data > 0).astype(np.int32)
        residual.eliminate_zeros()
        reached = breadth_first_order(residual.tocsr(), self.source, return_predecessors=False)
        return set(range(count)).difference(reached.tolist())

    def _capacities(self) -> np.ndarray:
        """Scale capacities to integers so that all finite ones together stay below what counts as infinite."""
        weights = np.array(self._weights, np.float64)
        finite = np.isfinite(weights)
        total = weights[finite].sum()
        scale = min(1.0, 2**30 / total) if total > 0 else 1.0
        return np.where(finite, np.ceil(weights * scale), LARGEST).astype(np.int64)
