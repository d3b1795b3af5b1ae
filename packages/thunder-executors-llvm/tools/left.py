"""Measure what is left to one thread, because several would gain nothing.

python packages/thunder-executors-llvm/tools/left.py
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from thunder_executors_llvm import binding
from thunder_executors_llvm.render import render
from thunder_executors_llvm.target import here
from thunder_ir import Tensor, trace_of
from thunder_loops import lower, schedule
from thunder_prims import exp, mul, neg

ROUNDS = 7


def milliseconds(*functions: Callable[[], Any]) -> list[float]:
    """Return the median time of each function, in rounds that take turns."""
    taken: list[list[float]] = [[] for _ in functions]
    for _ in range(ROUNDS):
        for times, function in zip(taken, functions, strict=True):
            start = time.perf_counter()
            function()
            times.append((time.perf_counter() - start) * 1e3)
    return [sorted(times)[ROUNDS // 2] for times in taken]


def threads() -> None:
    """Compare compiling by one thread with compiling by two, each with a machine of LLVM's of its own."""
    target, texts = here(), []
    for count in range(12):
        made = trace_of(lambda a, n=count: _chain(a, n), Tensor((8, 8)))
        ((plan, _),) = schedule(lower(made), {}, {"a0": (8, 1), "out0": (8, 1)}).steps
        texts.append(render(plan, target).text)
    local = threading.local()

    def compiled(text: str) -> None:
        if not hasattr(local, "machine"):
            local.machine = binding._target_machine.__wrapped__(target.machine)
        module = binding._llvm().parse_assembly(text)
        local.machine.emit_object(module)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(compiled, texts))
        one, two = milliseconds(lambda: [compiled(t) for t in texts], lambda: list(pool.map(compiled, texts)))
    print(f"{len(texts)} kernels compiled by one thread {one:.0f} ms; by two threads {two:.0f} ms")


def _chain(a: Any, count: int) -> Any:
    for _ in range(count + 1):
        a = mul(exp(neg(a)), a)
    return a


if __name__ == "__main__":
    torch.set_num_threads(1)
    threads()
