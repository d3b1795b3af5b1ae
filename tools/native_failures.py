"""Call native code with failing inputs among good ones, and count what stays behind: tensors, references, memory.

    python tools/native_failures.py [--calls 100000] [--every 100]

Each failing call, whose indices are out of range, fails in the middle of a region, after tensors were computed and
split. Prints how many calls failed, the uses of the inputs' memory before and after, and the process's memory on the
way; ends with an error if uses grew, if a good call's result is not eager PyTorch's to the bit, or if memory grew by
more than a megabyte over the second half.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from pathlib import Path
from typing import Any

import torch

from thunder_executors import execution_traces
from thunder_ir import trace_of
from thunder_native.executor import NativeExecutor, join_calls
from thunder_torch import proxy_of, symbol_of, torch_language

CHECKED = 10
"""How often memory is looked at."""

GROWTH = 1024
"""Kilobytes by which memory may grow over the second half of the calls."""


def program(table: Any, places: Any) -> Any:
    """Look up rows, with calls before and after; ``split`` makes several tensors at once."""
    embedding, tanh = symbol_of(torch.nn.functional.embedding), symbol_of(torch.tanh)
    found = symbol_of(torch.split)(embedding(places, tanh(tanh(table))), 1)
    return tanh(symbol_of(torch.cat)(found))


def region_of(*examples: torch.Tensor) -> Any:
    """Return what runs, in native code alone, the one region that the calls become."""
    proxies = [proxy_of(t, f"t{i}") for i, t in enumerate(examples)]
    trace = execution_traces(trace_of(program, *proxies, language=torch_language), ["torch"])[-1]
    bound = join_calls(trace, NativeExecutor(default=False)).bound_symbols[0]
    return bound.symbol.implementation.enter


def resident() -> int:
    """Return the kilobytes of memory that the process has."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmRSS"))
    return int(line.split()[1])


def uses(*tensors: torch.Tensor) -> list[tuple[int, int]]:
    """Return how often the memory of tensors is used, and the references that Python has to them."""
    gc.collect()
    return [(torch._C._storage_Use_Count(t.untyped_storage()._cdata), sys.getrefcount(t)) for t in tensors]


def main() -> str | None:
    """Make the calls; return what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=100, help="which call fails")
    options = parser.parse_args()
    torch.set_num_threads(1)
    table, good, bad = torch.randn(16, 8), torch.tensor([1, 2]), torch.tensor([1, 99])
    expected = torch.tanh(torch.nn.functional.embedding(good, table.tanh().tanh()))
    enter = region_of(table, good)
    before, memory, failed, start = uses(table, good, bad), [], 0, time.perf_counter()
    for call in range(options.calls):
        fails = call % options.every == 0
        found = enter(table, bad if fails else good)
        if fails is not isinstance(found, int):
            return f"call {call} {'did not fail' if fails else 'failed'}"
        failed += fails
        if not fails:
            (tensor,) = found
            if not torch.equal(tensor, expected):
                return f"call {call} computed something else"
            del tensor
        del found
        if call % (options.calls // CHECKED) == options.calls // (2 * CHECKED):
            memory.append(resident())
    after = uses(table, good, bad)
    print(f"{options.calls} calls, {failed} of them failed, in {time.perf_counter() - start:.0f} s")
    print(f"uses of the inputs before {before}, after {after}")
    print(f"resident memory on the way, KiB: {memory}")
    if after != before:
        return "uses of the inputs grew"
    return None if memory[-1] - memory[len(memory) // 2] <= GROWTH else "memory grew"


if __name__ == "__main__":
    sys.exit(main())
