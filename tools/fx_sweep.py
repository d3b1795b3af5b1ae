"""Compare every operation of PyTorch's database with eager execution, there and back through FX graphs.

python tools/fx_sweep.py                       all operations, float32, two samples each
python tools/fx_sweep.py softmax --samples 99  one operation, all its samples
python tools/fx_sweep.py --core-aten           graphs of core ATen alone
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import torch
from opinfo import chosen, copied, difference, named, quiet, traced
from opinfo_page import worst
from opinfo_sweep import FALLBACKS, REFUSALS, UNWRITTEN

from thunder_executors import to_callable
from thunder_fx import FXError, from_fx, to_fx
from thunder_ir import Trace

WAYS = ("there", "back", "again")


def stages(trace: Trace, tensors: list[torch.Tensor], core_aten: bool) -> list[Callable[[], Any]]:
    """Return what runs a trace as an FX graph, that graph as a trace, and that trace as a graph again."""
    module = to_fx(trace, core_aten=core_aten)

    def back() -> Trace:
        return from_fx(module)

    return [
        lambda: module(*tensors),
        lambda: to_callable(back(), ["torch"])(*tensors),
        lambda: to_fx(back())(*tensors),
    ]


def sample(name: str, function: Callable[..., Any], args: Any, kwargs: Any, core_aten: bool) -> tuple[str, str] | None:
    """Return the outcome of one sample and what is wrong, or ``None`` if eager or recording it refuses it."""
    try:
        torch.manual_seed(0)
        expected = function(*copied(args), **copied(kwargs))
        trace, tensors = traced(function, copied(args), copied(kwargs))
    except Exception:
        return None
    try:
        ways = stages(trace, tensors, core_aten)
    except Exception as error:
        refused = isinstance(error, (*REFUSALS, FXError))
        return "refused" if refused else "raised", f"there: {type(error).__name__}: {error}"
    for kind, way in zip(WAYS, ways, strict=True):
        try:
            torch.manual_seed(0)
            actual = way()
        except Exception as error:
            refused = isinstance(error, (*REFUSALS, FXError))
            return "refused" if refused else "raised", f"{kind}: {type(error).__name__}: {error}"
        if name in UNWRITTEN:
            expected, actual = torch.zeros_like(expected), torch.zeros_like(actual)
        found = difference(expected, actual, exact=False)
        if found:
            return "wrong", f"{kind}: {found}"
    return "right", ""


def operation(op: Any, options: argparse.Namespace) -> tuple[Counter[str], str]:
    """Compare the samples of an operation; return how many came out how, and the first problem."""
    counts: Counter[str] = Counter()
    first = ""
    dtypes = [d for d in (getattr(torch, options.dtype), *FALLBACKS) if d in op.dtypes]
    with quiet():
        torch.manual_seed(0)
        samples = list(op.sample_inputs("cpu", dtypes[0], requires_grad=False))[: options.samples] if dtypes else []
        for given in samples:
            outcome = sample(named(op), op.op, (given.input, *given.args), given.kwargs, options.core_aten)
            if outcome is not None:
                counts[outcome[0]] += 1
                first = first or outcome[1].replace("\n", " ")
    return counts, first


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operations; all if none is named")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--core-aten", action="store_true")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    operations: Counter[str] = Counter()
    for op in chosen(options.names):
        counts, problem = operation(op, options)
        total.update(counts)
        operations[worst(counts)] += 1
        if problem:
            print(f"{named(op):45} {dict(counts)} {problem[:300]}", flush=True)
    print(f"samples: {dict(total)}; operations: {dict(operations)}")
    return 1 if total["wrong"] or total["raised"] else 0


if __name__ == "__main__":
    sys.exit(main())
