"""What a joint trace and its partition cost, in microseconds of CPU time per operation of the program.

python packages/thunder-autograd/benchmarks/cost.py [operations ...]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from thunder_autograd import grad_transform_on_trace, split_into_forward_and_backward, vjp_rule
from thunder_ir import Language, OpTags, Symbol, Tensor, Trace, trace_of

language = Language("benchmark")


def operation(name: str, *tags: OpTags, meta: Callable[..., Any] = lambda a, *rest: a.like()) -> Symbol:
    """Make an operation whose result is like its first argument."""
    symbol = Symbol(name, "benchmark", meta=meta, tags=frozenset(tags), language=language)
    language.method(name)(symbol)
    return symbol


add = operation("add", OpTags.ELEMENTWISE)
mul = operation("mul", OpTags.ELEMENTWISE)
tanh = operation("tanh", OpTags.ELEMENTWISE)
matmul = operation("matmul", OpTags.MATMUL)
transpose = operation("transpose", OpTags.VIEW, OpTags.SHAPE_OP)
vjp_rule(add)(lambda a, b: (add(a, b), lambda dy: (dy, dy)))
vjp_rule(mul)(lambda a, b: (mul(a, b), lambda dy: (mul(dy, b), mul(dy, a))))
vjp_rule(matmul)(lambda a, b: (matmul(a, b), lambda dy: (matmul(dy, transpose(b)), matmul(transpose(a), dy))))


@vjp_rule(tanh)
def tanh_vjp(a: Any) -> Any:
    """``da = dy * (1 - y**2)``, near enough to measure."""
    y = tanh(a)
    return y, lambda dy: mul(dy, mul(y, y))


def network(operations: int) -> Trace:
    """Record a residual network of that many operations."""

    def program(x: Any, w: Any) -> Any:
        for _ in range(operations // 5):
            h = tanh(matmul(x, w))
            x = add(x, matmul(mul(h, h), w))
        return x

    return trace_of(program, *[Tensor((64, 64), requires_grad=True)] * 2, language=language)


def timed(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, float]:
    """Return a result and the CPU seconds that it took."""
    start = time.process_time()
    result = function(*args, **options)
    return result, time.process_time() - start


def main() -> None:
    """Print one line for each size."""
    partitions: dict[str, dict[str, Any]] = {
        "save-all": {"partition": "save-all"},
        "min-cut": {},
        "budget 0.5": {"memory_budget": 0.5},
        "budget 0.1": {"memory_budget": 0.1},
    }
    print(
        f"{'operations':>10} {'joint':>10} " + " ".join([f"{name:>12}" for name in partitions]) + "  (µs per operation)"
    )
    for size in [int(a) for a in sys.argv[1:]] or [200, 2_000, 20_000]:
        trace = network(size)
        count = len(trace.bound_symbols)
        joint, seconds = timed(grad_transform_on_trace, trace)
        row = [f"{count:>10,} {seconds / count * 1e6:>10.1f}"]
        for options in partitions.values():
            _, seconds = timed(split_into_forward_and_backward, joint, **options)
            row.append(f"{seconds / count * 1e6:>12.1f}")
        print(" ".join(row))


if __name__ == "__main__":
    main()
