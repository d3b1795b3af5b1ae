"""Maximum flow of large networks, through SciPy. Imported where one comes up: the import takes half a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import breadth_first_order, maximum_flow  # type: ignore[import-untyped]

LARGEST = 2**31 - 1  # SciPy's capacities are 32-bit integers


def reached(count: int, ways: list[tuple[int, int, int]], unbounded: int) -> set[int]:
    """Return the nodes that the source, node 0, still reaches when a maximum flow to node 1 is taken away.

    Args:
        count: of nodes.
        ways: edges as tail, head and capacity.
        unbounded: the weight of edges that cannot be cut.
    """
    tails, heads, weights = zip(*ways, strict=True)
    graph: Any = csr_array(
        (_capacities(weights, unbounded), (np.array(tails, np.int32), np.array(heads, np.int32))), shape=(count, count)
    )
    graph.sum_duplicates()
    graph.data = np.minimum(graph.data, LARGEST).astype(np.int32)
    residual = graph - maximum_flow(graph, 0, 1).flow
    residual.data = (residual.data > 0).astype(np.int32)
    residual.eliminate_zeros()
    return set(breadth_first_order(residual.tocsr(), 0, return_predecessors=False).tolist())


def _capacities(weights: Sequence[int], unbounded: int) -> Any:
    """Scale weights so that all that can be cut together stay below what cannot."""
    exact = np.array(weights, np.float64)
    cuttable = exact < unbounded
    total = exact[cuttable].sum()
    scale = min(1.0, 2**30 / total) if total > 0 else 1.0
    return np.where(cuttable, np.ceil(exact * scale), LARGEST).astype(np.int64)
