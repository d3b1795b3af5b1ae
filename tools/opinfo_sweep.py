"""Compare every operation of PyTorch's own database of operations with eager execution, and say what came out.

python tools/opinfo_sweep.py                       all operations, float32, two samples each
python tools/opinfo_sweep.py softmax --samples 99  one operation, all its samples
python tools/opinfo_sweep.py --device cuda         on another device
python tools/opinfo_sweep.py --dtypes bool int64   other dtypes, each for the operations that claim it
python tools/opinfo_sweep.py --decomposed          run what the functions decompose into
python tools/opinfo_sweep.py --transforms vjp      compare gradients, too; and jvp, vmap
python tools/opinfo_sweep.py --errors              compare what wrong arguments raise
python tools/opinfo_sweep.py --jit                 through thunder.jit, rather than by recording one call
python tools/opinfo_sweep.py --table docs/operators.md
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from opinfo import chosen, copied, difference, named, quiet
from opinfo_page import page, worst
from opinfo_transforms import TRANSFORMS, executed, recorded

import thunder_torch as ltorch
from thunder_ir import ThunderError, Trace, is_unknown
from thunder_ir.passes import expand
from thunder_testing import sweeps
from thunder_torch.errors import DataDependentShapeError, UnknownMetadataError
from thunder_torch.specs import tensors_of

REFUSALS = (DataDependentShapeError, UnknownMetadataError)
FALLBACKS = (torch.int64, torch.complex64, torch.bool, torch.float64)  # for operations that take no dtype asked for
UNWRITTEN = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")


@dataclass
class Report:
    """What the samples of one operation came to.

    Args:
        name: of the operation, with its variant.
        kind: composed or opaque.
        dtypes: for each dtype how many samples were right, wrong, raised (with an error that is none of Thunder's)
            and refused (with one that is, by design).
        transforms: for each transform how many samples were right, wrong, raised and not compared.
        metadata: samples for which shape, dtype or strides were told otherwise than they came out.
        first: the first problem, as text; of a transform, if there is no other.
    """

    name: str
    kind: str = "opaque"
    dtypes: dict[str, Counter[str]] = field(default_factory=dict)
    transforms: dict[str, Counter[str]] = field(default_factory=dict)
    metadata: int = 0
    first: str = ""
    seconds: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)

    @property
    def counts(self) -> Counter[str]:
        """How many samples came out how, over all dtypes."""
        total: Counter[str] = Counter()
        for counts in self.dtypes.values():
            total.update(counts)
        return total

    @property
    def outcome(self) -> str:
        """``right`` if all samples are, else the worst that happened."""
        return worst(self.counts)

    def note(self, problem: str) -> None:
        """Remember a problem, if it is the first."""
        self.first = self.first or problem.replace("\n", " ")


def metadata_difference(trace: Trace, actual: Any) -> str:
    """Return how the proxies of a trace's output differ from the tensors that came out."""
    told = tensors_of((trace.output,), {})
    found = tensors_of((actual,), {})
    if len(told) != len(found):
        return f"{len(told)} tensors told, {len(found)} found"
    for proxy, tensor in zip(told, found, strict=True):
        sizes = [n if is_unknown(d) else d for d, n in zip(proxy.shape, tensor.shape, strict=False)]
        if (len(proxy.shape), proxy.dtype) != (tensor.ndim, ltorch.from_torch_dtype(tensor.dtype)):
            return f"told {proxy.type_string}, found {tensor.dtype}{tuple(tensor.shape)}"
        if tuple(sizes) != tuple(tensor.shape):
            return f"told {proxy.type_string}, found {tensor.dtype}{tuple(tensor.shape)}"
        if proxy.strides is None or any(map(is_unknown, proxy.strides)):
            continue
        if tensor.numel() > 1 and tuple(proxy.strides) != tuple(tensor.stride()):
            return f"told strides {proxy.strides}, found {tuple(tensor.stride())}"
    return ""


class Sweep:
    """One run over operations.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.dtypes = [getattr(torch, name) for name in options.dtypes]

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, str]:
        """Return what the program of one call returns, and how its metadata were wrong."""
        if self.options.jit:
            thunder = importlib.import_module("thunder")  # only here: recording one call needs no front end
            torch.manual_seed(0)
            return thunder.jit(function)(*args, **kwargs), ""
        trace, tensors = recorded(function, args, kwargs)
        if self.options.decomposed:
            return executed(expand(trace), tensors), ""
        actual = executed(trace, tensors)
        return actual, metadata_difference(trace, actual)

    def sample(self, report: Report, function: Callable[..., Any], args: Any, kwargs: Any) -> str | None:
        """Compare one sample; return the outcome, ``None`` if eager refuses it."""
        try:
            torch.manual_seed(0)
            expected = function(*copied(args), **copied(kwargs))
        except Exception:
            return None
        try:
            actual, metadata = self.run(function, copied(args), copied(kwargs))
        except Exception as error:
            report.note(f"{type(error).__name__}: {error}")
            by_design = isinstance(error, REFUSALS) or (isinstance(error, ThunderError) and self.options.jit)
            return "refused" if by_design else "raised"
        if report.name in UNWRITTEN:
            expected, actual = torch.zeros_like(expected), torch.zeros_like(actual)
        found = difference(expected, actual, exact=not self.options.decomposed)
        if metadata:
            report.metadata += 1
            report.note(f"metadata: {metadata}")
        if found:
            report.note(found)
        return "wrong" if found else "right"

    def transformed(self, report: Report, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Compare what the transforms make of one sample."""
        for kind in self.options.transforms:
            counts = report.transforms.setdefault(kind, Counter())
            try:
                found = TRANSFORMS[kind](function, args, kwargs)
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
                counts["refused" if isinstance(error, REFUSALS) else "raised"] += 1
            else:
                counts["not compared" if found is None else "wrong" if found else "right"] += 1
            if found:
                report.note(f"{kind}: {found}")

    def operation(self, op: Any) -> Report:
        """Compare the samples of one operation."""
        report = Report(named(op), "composed" if ltorch.find_symbol(op.op) is not None else "opaque")
        start = time.process_time()
        claimed = [d for d in self.dtypes if d in op.dtypes]
        fallbacks = [d for d in FALLBACKS if d in op.dtypes]
        for dtype in claimed or (fallbacks or self.dtypes)[:1]:
            self.of_dtype(op, dtype, report)
        report.seconds = time.process_time() - start
        return report

    def of_dtype(self, op: Any, dtype: torch.dtype, report: Report) -> None:
        """Compare the samples of one dtype; transforms for the first dtype alone."""
        with quiet():
            try:
                samples = list(self.samples(op, dtype))
            except Exception as error:
                report.note(f"no samples: {type(error).__name__}: {error}")
                return
            first = not report.dtypes
            counts = report.dtypes.setdefault(str(dtype).removeprefix("torch."), Counter())
            for sample in samples:
                call = op.op, (sample.input, *sample.args), sample.kwargs
                outcome = self.sample(report, *call)
                if outcome is not None:
                    counts[outcome] += 1
                if outcome == "right" and first and report.name not in UNWRITTEN:
                    self.transformed(report, *call)

    def samples(self, op: Any, dtype: torch.dtype) -> Iterator[Any]:
        """Yield the samples of an operation, up to the number asked for."""
        torch.manual_seed(0)
        for i, sample in enumerate(op.sample_inputs(self.options.device, dtype, requires_grad=False)):
            if i >= self.options.samples:
                return
            yield sample

    def errors(self, op: Any) -> Report:
        """Compare what wrong arguments raise."""
        report = Report(named(op))
        if op.error_inputs_func is None:
            return report
        counts = report.dtypes.setdefault("errors", Counter())
        with quiet():
            for wrong in op.error_inputs(self.options.device):
                sample = wrong.sample_input
                args, kwargs = (sample.input, *sample.args), sample.kwargs
                expected = _raised(lambda a=args, k=kwargs: op.op(*copied(a), **copied(k)))
                actual = _raised(lambda a=args, k=kwargs: self.run(op.op, copied(a), copied(k)))
                if expected is None:
                    continue
                same = actual is not None and isinstance(actual, type(expected))
                counts["right" if same else "wrong"] += 1
                if not same:
                    report.errors[f"{type(expected).__name__} -> {type(actual).__name__}"] += 1
                    report.note(f"{expected!r} -> {actual!r}"[:300])
        return report


def _raised(function: Callable[[], Any]) -> Exception | None:
    try:
        function()
    except Exception as error:
        return error
    return None


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operations; all if none is named")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--dtypes", nargs="+", default=["float32"])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--decomposed", action="store_true")
    parser.add_argument("--transforms", nargs="*", choices=list(TRANSFORMS), default=[])
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def line(report: Report) -> str:
    """Return what is printed of an operation."""
    counts = " ".join([f"{o} {report.counts[o]}" for o in ("right", "wrong", "raised", "refused")])
    transforms = "".join([f" {kind} {dict(c)}" for kind, c in report.transforms.items() if c["wrong"] or c["raised"]])
    return f"{report.name:45} {report.outcome:8} {counts} metadata {report.metadata}{transforms}  {report.first[:220]}"


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    sweep = Sweep(options)
    reports = []
    for op in chosen(options.names):
        report = sweep.errors(op) if options.errors else sweep.operation(op)
        reports.append(report)
        failed = any([c["wrong"] or c["raised"] for c in report.transforms.values()])
        bad = report.counts["wrong"] if options.errors else report.outcome != "right" or report.metadata or failed
        if bad or options.names:
            print(line(report), flush=True)
    if options.errors:
        right, wrong = sum(r.counts["right"] for r in reports), sum(r.counts["wrong"] for r in reports)
        print(f"error inputs: {right} of {right + wrong} raise PyTorch's exception type")
    else:
        print(dict(Counter(r.outcome for r in reports)), f"of {len(reports)}")
        for kind in options.transforms:
            outcomes = Counter(worst(r.transforms.get(kind, Counter())) for r in reports)
            print(kind, {o.replace("no samples", "not compared"): n for o, n in outcomes.items()})
    if options.json:
        options.json.write_text(json.dumps([{k: str(v) for k, v in vars(r).items()} for r in reports]))
    if options.table:
        files = (("--table", options.table), ("--json", options.json))
        command = sweeps.command("tools/opinfo_sweep.py", arguments, *files)
        options.table.write_text(page(reports, command, options.dtypes, options.transforms))
    return 1 if any(r.counts["wrong"] for r in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
