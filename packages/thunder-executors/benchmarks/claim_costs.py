"""Measure what claiming and scheduling cost per operation: ``python claim_costs.py``. Figures are CPU time."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable
from typing import Any

from thunder_executors import (
    FusionExecutor,
    OperatorExecutor,
    claim,
    free_after_last_use,
    order_for_memory,
    partition,
    transform_for_execution,
)
from thunder_ir import Symbol, Tensor, Trace, trace_of

SIZES = (1_000, 10_000)
REPEATS = 5

add = Symbol("add", "prims", meta=lambda a, b: a.like())
neg = Symbol("neg", "prims", meta=lambda a: a.like())
twice = Symbol("twice", "mine", decomposition=lambda a: add(a, a))
executor = OperatorExecutor("bench", checks=False)
executor.implements(add)(operator.add)
executor.implements(neg)(operator.neg)
fuser = FusionExecutor("fuser")
fuser.register_supported(add)


def program(size: int) -> Trace:
    """Return a program of so many operations: chains that meet, and a composite in every fifth place."""

    def body(x: Any, y: Any) -> Any:
        values = [x, y]
        for i in range(size):
            if i % 5 == 0:
                values.append(twice(values[-1]))
            elif i % 5 == 1:
                values.append(neg(values[-2]))
            else:
                values.append(add(values[-1], values[-1 - i % 7 % len(values)]))
        return values[-1]

    return trace_of(body, Tensor((4,)), Tensor((4,)))


def microseconds(run: Callable[[], Any], size: int) -> float:
    """Return the least CPU time of several runs, per operation."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) / size * 1e6


def main() -> None:
    """Print a table: microseconds per operation at each size, and how the total grows between them."""
    rows: dict[str, list[float]] = {}
    for size in SIZES:
        trace = program(size)
        claimed = claim(trace, [executor])
        marked = claim(trace, [fuser, executor])
        for name, run in (
            ("claim", lambda t=trace: claim(t, [executor])),
            ("partition", lambda t=marked: partition(t, fuser)),
            ("order", lambda t=claimed: order_for_memory(t)),
            ("free", lambda t=claimed: free_after_last_use(t)),
            ("all passes", lambda t=trace: transform_for_execution(t, [executor])),
        ):
            rows.setdefault(name, []).append(microseconds(run, size))
    print(f"{'pass':<12}" + "".join(f"{f'us/op at {size:,}':>18}" for size in SIZES) + f"{'ratio of totals':>18}")
    for name, costs in rows.items():
        ratio = costs[-1] * SIZES[-1] / (costs[0] * SIZES[0])
        print(f"{name:<12}" + "".join(f"{cost:>18.2f}" for cost in costs) + f"{ratio:>18.1f}")


if __name__ == "__main__":
    main()
