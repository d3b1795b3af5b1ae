"""Compare every operation of PyTorch's own database of operations with eager execution, and say what came out.

python tools/opinfo_sweep.py                       all operations, float32, two samples each
python tools/opinfo_sweep.py softmax --samples 99  one operation, all its samples
python tools/opinfo_sweep.py --decomposed          run what the functions decompose into
python tools/opinfo_sweep.py --transforms vjp      compare gradients, too
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
from opinfo import chosen, copied, difference, named, quiet, traced

import thunder_torch as ltorch
from thunder_autograd import grad_transform_on_trace, jvp_transform_on_trace
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import OpTags, ThunderError, Trace, is_unknown
from thunder_ir.passes import expand
from thunder_torch.errors import DataDependentShapeError, UnknownMetadataError, UnsupportedMutationError
from thunder_torch.metadata import map_tensors, tensors_of
from thunder_vmap import batch_transform_on_trace

REFUSALS = (DataDependentShapeError, UnknownMetadataError)
FALLBACKS = (torch.int64, torch.complex64, torch.bool, torch.float64)  # for operations that do not take the dtype
UNWRITTEN = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")


@dataclass
class Report:
    """What the samples of one operation came to.

    Args:
        name: of the operation, with its variant.
        right, wrong, raised, refused: numbers of samples; refused are those that raise clearly by design.
        metadata: samples for which shape, dtype or strides were told otherwise than they came out.
        kind: composed or opaque.
        first: the first problem, as text.
    """

    name: str
    right: int = 0
    wrong: int = 0
    raised: int = 0
    refused: int = 0
    metadata: int = 0
    kind: str = "opaque"
    first: str = ""
    seconds: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    transforms: Counter[str] = field(default_factory=Counter)

    @property
    def outcome(self) -> str:
        """``right`` if all samples are, else the worst that happened."""
        for outcome in ("wrong", "raised", "refused"):
            if getattr(self, outcome):
                return outcome
        return "right" if self.right else "no samples"


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
        self.dtype = getattr(torch, options.dtype)

    def run(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, str]:
        """Return what the program of one call returns, and how its metadata were wrong."""
        if self.options.jit:
            thunder = importlib.import_module("thunder")  # only here: recording one call needs no front end
            torch.manual_seed(0)
            return thunder.jit(function)(*args, **kwargs), ""
        trace, tensors = self.traced(function, args, kwargs)
        run = to_callable(trace, [executor])
        torch.manual_seed(0)
        with torch.no_grad():
            actual = run(*tensors)
        return actual, metadata_difference(trace, actual) if not self.options.decomposed else ""

    def sample(self, report: Report, function: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """Compare one sample."""
        try:
            torch.manual_seed(0)
            expected = function(*copied(args), **copied(kwargs))
        except Exception:
            return
        try:
            actual, metadata = self.run(function, copied(args), copied(kwargs))
        except REFUSALS as error:
            report.refused += 1
            report.first = report.first or f"{type(error).__name__}: {error}"
            return
        except Exception as error:
            if isinstance(error, ThunderError) and self.options.jit:
                report.refused += 1
            else:
                report.raised += 1
            report.first = report.first or f"{type(error).__name__}: {error}"
            return
        if report.name in UNWRITTEN:
            expected, actual = torch.zeros_like(expected), torch.zeros_like(actual)
        found = difference(expected, actual, exact=not self.options.decomposed)
        for kind in self.options.transforms if not found else ():
            try:
                found, compared = getattr(self, kind)(function, args, kwargs)
            except Exception as error:
                report.raised += 1
                report.first = report.first or f"{kind}: {type(error).__name__}: {error}"
                return
            report.transforms[kind] += compared and not found
            if found:
                found = f"{kind}: {found}"
                break
        if found:
            report.wrong += 1
            report.first = report.first or found
        else:
            report.right += 1
        if metadata:
            report.metadata += 1
            report.first = report.first or f"metadata: {metadata}"

    def vjp(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[str, bool]:
        """Return how gradients differ from PyTorch's autograd, or ``""``, and whether there were any."""
        args, kwargs = (map_tensors(_tracked, copied(v)) for v in (args, kwargs))
        torch.manual_seed(0)
        try:
            expected = function(*args, **kwargs)
            outputs = [t for t in tensors_of((expected,), {}) if t.requires_grad]
            inputs = [t for t in tensors_of(args, kwargs) if t.requires_grad]
            if not outputs or not inputs:
                return "", False
            seeds = [torch.ones_like(t) for t in outputs]
            wanted = torch.autograd.grad(outputs, inputs, seeds, allow_unused=True, materialize_grads=True)
        except (RuntimeError, NotImplementedError):  # PyTorch has no derivative
            return "", False
        trace, tensors = self.traced(function, args, kwargs)
        flat = [p for p in tensors_of((trace.output,), {}) if p.dtype.is_inexact and p.requires_grad]
        joint = grad_transform_on_trace(trace.replace(output=tuple(flat)))
        if len(joint.inputs) == len(tensors):  # no derivative flows: PyTorch's is zero
            return difference(list(wanted), [torch.zeros_like(w) for w in wanted], exact=False), True
        result = self.executed(joint, [t.detach() for t in tensors] + seeds)
        found = [g for g, t in zip(result[1], tensors, strict=False) if t.requires_grad]
        zeros = [torch.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True)]
        return difference(list(wanted), zeros, exact=False), True

    def jvp(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[str, bool]:
        """Return how tangents differ from those of PyTorch's forward mode, or ``""``, and whether there were any."""
        tensors = tensors_of(args, kwargs)
        moved = [i for i, t in enumerate(tensors) if t.is_floating_point() or t.is_complex()]
        torch.manual_seed(1)
        tangents = [torch.randn_like(tensors[i]) for i in moved]

        def along(*values: torch.Tensor) -> Any:
            given = dict(zip(moved, values, strict=True))
            left = iter([given.get(i, t) for i, t in enumerate(tensors)])
            filled, named_ = (map_tensors(lambda _: next(left), v) for v in (args, kwargs))
            torch.manual_seed(0)
            return tuple([t for t in tensors_of((function(*filled, **named_),), {}) if t.is_floating_point()])

        try:
            if not moved or not along(*[tensors[i] for i in moved]):
                return "", False
            wanted = torch.func.jvp(along, tuple([tensors[i] for i in moved]), tuple(tangents))[1]
        except Exception:  # PyTorch has no forward derivative, or not under this transform
            return "", False
        trace, _ = self.traced(function, args, kwargs)
        flat = tuple([p for p in tensors_of((trace.output,), {}) if p.dtype.is_floating])
        result = self.executed(jvp_transform_on_trace(trace.replace(output=flat)), [*tensors, *tangents])
        found = [torch.zeros_like(w) if t is None else t for t, w in zip(result[1], wanted, strict=True)]
        return difference(list(wanted), found, exact=False), True

    def batch(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[str, bool]:
        """Return how a batch of two differs from the call for each of the two, or ``""``."""
        tensors = tensors_of(args, kwargs)
        trace, _ = self.traced(function, args, kwargs)
        if not tensors or any(b.has_tag(OpTags.RANDOM) for b in trace.bound_symbols):
            return "", False
        flat = tuple(tensors_of((trace.output,), {}))
        twice = [torch.stack([t, t.flip(0) if t.ndim and t.is_floating_point() else t]) for t in tensors]

        def alone(i: int) -> list[torch.Tensor]:
            left = iter([t[i] for t in twice])
            filled, named_ = (map_tensors(lambda _: next(left), v) for v in (args, kwargs))
            return tensors_of((function(*filled, **named_),), {})

        try:
            wanted = [torch.stack(pair) for pair in zip(alone(0), alone(1), strict=True)]
        except Exception:  # the second of the two is none that the operation takes
            return "", False
        batched = batch_transform_on_trace(trace.replace(output=flat), 2, [0] * len(tensors))
        outputs, places = self.executed(batched, twice)
        found = [torch.stack([t, t]) if d is None else t.movedim(d, 0) for t, d in zip(outputs, places, strict=True)]
        return difference(wanted, found, exact=False), True

    def traced(self, function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Trace, list[torch.Tensor]]:
        """Record one call, in prims if that is asked for."""
        try:
            trace, tensors = traced(function, args, kwargs)
        except UnsupportedMutationError:  # the database wraps methods such as normal_: they get copies
            trace, tensors = traced(lambda *a, **k: function(*copied(a), **copied(k)), args, kwargs)
        return (expand(trace) if self.options.decomposed else trace), tensors

    def executed(self, trace: Trace, values: list[torch.Tensor]) -> Any:
        """Run a program on tensors, with the generator seeded."""
        run = to_callable(trace, [executor])
        torch.manual_seed(0)
        with torch.no_grad():
            return run(*values)

    def operation(self, op: Any) -> Report:
        """Compare the samples of one operation."""
        report = Report(named(op), kind="composed" if ltorch.find_symbol(op.op) is not None else "opaque")
        start = time.process_time()
        try:
            samples = list(self.samples(op))
        except Exception as error:
            report.first = f"no samples: {type(error).__name__}: {error}"
            return report
        with quiet():
            for sample in samples:
                self.sample(report, op.op, (sample.input, *sample.args), sample.kwargs)
        report.seconds = time.process_time() - start
        return report

    def samples(self, op: Any) -> Iterator[Any]:
        """Yield the samples of an operation, up to the number asked for."""
        torch.manual_seed(0)
        dtype = self.dtype if self.dtype in op.dtypes else next((d for d in FALLBACKS if d in op.dtypes), self.dtype)
        for i, sample in enumerate(op.sample_inputs("cpu", dtype, requires_grad=False)):
            if i >= self.options.samples:
                return
            yield sample

    def errors(self, op: Any) -> Report:
        """Compare what wrong arguments raise."""
        report = Report(named(op))
        if op.error_inputs_func is None:
            return report
        with quiet():
            for wrong in op.error_inputs("cpu"):
                sample = wrong.sample_input
                args, kwargs = (sample.input, *sample.args), sample.kwargs
                expected = _raised(lambda a=args, k=kwargs: op.op(*copied(a), **copied(k)))
                actual = _raised(lambda a=args, k=kwargs: self.run(op.op, copied(a), copied(k)))
                if expected is None:
                    continue
                if actual is not None and isinstance(actual, (type(expected), *type(expected).__mro__[:1])):
                    report.right += 1
                else:
                    report.wrong += 1
                    report.errors[f"{type(expected).__name__} -> {type(actual).__name__}"] += 1
                    report.first = report.first or f"{expected!r} -> {actual!r}"[:300]
        return report


def _tracked(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.requires_grad_() if tensor.is_floating_point() or tensor.is_complex() else tensor


def _raised(function: Callable[[], Any]) -> Exception | None:
    try:
        function()
    except Exception as error:
        return error
    return None


def table(reports: list[Report], command: str, transforms: list[str]) -> str:
    """Return the reports as a page."""
    counts = Counter(r.outcome for r in reports)
    lines = [
        "# Operators",
        "",
        f"What `{command}` found on PyTorch {torch.__version__.partition('+')[0]}: every operation of PyTorch's own",
        "database, compared with eager execution in value, dtype, shape and strides.",
        "",
        "".join(
            f"- {outcome}: {counts[outcome]}\n" for outcome in ("right", "wrong", "raised", "refused", "no samples")
        )
        + f"- all: {len(reports)}",
        "",
        "*Composed* functions decompose into prims; *opaque* ones are called as they are and differentiated by",
        "PyTorch. Both have derivatives of any order, jvp and batching. *Refused* are those whose result has a shape",
        "that depends on values.",
        "",
        "A dash in the columns of transforms: not compared, because PyTorch has no such derivative, there is nothing",
        "to differentiate, or the samples cannot be batched.",
        "",
        f"| {' | '.join(['operation', 'kind', 'outcome', 'samples right', *transforms, 'remark'])} |",
        "|---" * (5 + len(transforms)) + "|",
    ]
    for report in reports:
        samples = report.right + report.wrong + report.raised + report.refused
        remark = report.first.replace("|", "\\|").replace("\n", " ")[:120] if report.outcome != "right" else ""
        cells = [f"{report.transforms[k]}/{samples}" if report.transforms[k] else "–" for k in transforms]
        cells = [f"`{report.name}`", report.kind, report.outcome, f"{report.right}/{samples}", *cells, remark]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operations; all if none is named")
    parser.add_argument("--samples", type=int, default=2)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--decomposed", action="store_true")
    parser.add_argument("--transforms", nargs="*", choices=["vjp", "jvp", "batch"], default=[])
    parser.add_argument("--errors", action="store_true")
    parser.add_argument("--jit", action="store_true")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--json", type=Path)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    sweep = Sweep(options)
    reports = []
    for op in chosen(options.names):
        report = sweep.errors(op) if options.errors else sweep.operation(op)
        reports.append(report)
        bad = report.wrong if options.errors else report.outcome != "right" or report.metadata
        if bad or options.names:
            text = (
                f"{report.name:45} {report.outcome:8} right {report.right} wrong {report.wrong} raised {report.raised}"
            )
            print(f"{text} refused {report.refused} metadata {report.metadata}  {report.first[:220]}", flush=True)
    if options.errors:
        right, wrong = sum(r.right for r in reports), sum(r.wrong for r in reports)
        print(f"error inputs: {right} of {right + wrong} raise PyTorch's exception type")
    else:
        print(dict(Counter(r.outcome for r in reports)), f"of {len(reports)}")
    if options.json:
        options.json.write_text(json.dumps([{k: str(v) for k, v in vars(r).items()} for r in reports]))
    if options.table:
        flags = [a for a in (arguments or sys.argv[1:]) if a != "--table" and a != str(options.table)]
        options.table.write_text(table(reports, " ".join(["python tools/opinfo_sweep.py", *flags]), options.transforms))
    return 1 if any(r.wrong for r in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
