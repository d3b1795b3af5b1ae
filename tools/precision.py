"""Measure how precise every composite is against double precision, beside eager, and say which are less so.

python tools/precision.py                                        every composite; some minutes
python tools/precision.py nn.functional.softmax "own attention"  some operations, or own samples, by the first words
python tools/precision.py --limit 1.5                            more times eager's error makes the exit status 1
python tools/precision.py --table docs/precision.md
"""

from __future__ import annotations

import argparse
import math
import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from opinfo import chosen, copied, named, quiet, traced
from opinfo_transforms import tracked
from precision_page import page
from precision_samples import own_calls

import thunder
import thunder_torch as ltorch
from thunder_autograd import grad_transform_on_trace
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import OpTags, is_unknown
from thunder_ir.passes import expand
from thunder_torch.specs import map_tensors, tensors_of

DTYPES = ("bfloat16", "float16", "float32")
FLOOR = 0.2  # of an epsilon: the error of rounding once; what is below is chance
WORST = 1e9  # errors beyond it are not told apart
SCALES = (1.0, 4.0, 0.25)
DRAWS = 3  # of the numbers of a sample, for each scale
UNWRITTEN = ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided")
REFUSALS = (RuntimeError, NotImplementedError, ValueError, TypeError, IndexError)

Tensors = list[torch.Tensor]
Runs = Callable[[Any, Any, Tensors], tuple[Tensors, Tensors]]


@dataclass(frozen=True)
class Found:
    """The errors of one call on one dtype, in units of its epsilon; means over draws.

    Args:
        what: ``"value"`` or ``"gradient"``.
        way: ``"decomposed"`` into prims, or ``"compiled"`` by ``thunder.jit``.
        ours, eager: geometric means of the errors, each with the floor added.
    """

    operation: str
    sample: str
    dtype: str
    what: str
    way: str
    ours: float
    eager: float

    @property
    def ratio(self) -> float:
        """How many times eager's error Thunder's is."""
        return self.ours / self.eager


@dataclass(frozen=True)
class Failure:
    """A call that eager takes and that raised, or gave other results than there should be."""

    operation: str
    dtype: str
    way: str
    text: str


def widened(value: Any) -> Any:
    """Return arguments in double precision, dtypes among them too."""
    if isinstance(value, dict):
        return {k: widened(v) for k, v in value.items()}
    if isinstance(value, torch.dtype) and value.is_floating_point:
        return torch.float64

    def convert(tensor: torch.Tensor) -> torch.Tensor:
        to = torch.complex128 if tensor.is_complex() else torch.float64 if tensor.is_floating_point() else tensor.dtype
        return tensor.detach().to(to).requires_grad_(tensor.requires_grad)

    return map_tensors(convert, value)


def drawn(value: Any, scale: float, generator: torch.Generator | None) -> Any:
    """Return arguments times a number, and each element times one of its own."""

    def draw(tensor: torch.Tensor) -> torch.Tensor:
        if not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor
        tensor = tensor.detach()
        if generator is not None:
            noise = torch.rand(tensor.shape, generator=generator, dtype=torch.float64) / 2 + 0.75
            tensor = (tensor.to(torch.complex128 if tensor.is_complex() else torch.float64) * noise).to(tensor.dtype)
        return tensor * scale

    return map_tensors(draw, value)


def error_of(found: Tensors, truth: Tensors, dtype: torch.dtype) -> float | None:
    """Return the norm of the error over that of the truth, in epsilons; the root of the mean square over tensors.

    Infinite and undefined values count where only one of the two has them. ``None``: nothing to compare.
    """
    squares = []
    for a, t in zip(found, truth, strict=True):
        if not (t.is_floating_point() or t.is_complex()) or not t.numel():
            continue
        rounded = t.to(a.dtype).to(t.dtype)  # what is too large for the dtype is infinite in it
        finite = torch.isfinite(rounded)
        if not torch.equal(finite, torch.isfinite(a.to(t.dtype))):
            return WORST
        difference, size = (a.to(t.dtype) - t)[finite], t[finite]
        scale = float(torch.linalg.vector_norm(size)) or 1.0
        epsilon = max(torch.finfo(a.dtype).eps, torch.finfo(dtype).eps)
        squares.append(min(float(torch.linalg.vector_norm(difference)) / scale / epsilon, WORST) ** 2)
    return math.sqrt(sum(squares) / len(squares)) if squares else None


def differentiated(function: Any, args: Any, kwargs: Any, seeds: Tensors | None) -> tuple[Tensors, Tensors, Tensors]:
    """Return values, gradients and seeds of a call of PyTorch."""
    torch.manual_seed(0)
    values = tensors_of((function(*args, **kwargs),), {})
    outputs = [t for t in values if t.requires_grad]
    inputs = [t for t in tensors_of(args, kwargs) if t.requires_grad]
    if not outputs or not inputs:
        return [t.detach() for t in values], [], []
    generator = torch.Generator().manual_seed(1)
    if not seeds:
        seeds = [torch.randn(t.shape, dtype=t.dtype, generator=generator) for t in outputs]
    seeds = [s.to(t.dtype) for s, t in zip(seeds, outputs, strict=True)]
    found = torch.autograd.grad(outputs, inputs, seeds, allow_unused=True, materialize_grads=True)
    return [t.detach() for t in values], list(found), seeds


def decomposed(function: Any, args: Any, kwargs: Any, differentiable: bool) -> Runs:
    """Return what computes a call as its decomposition into prims does."""
    trace, tensors = traced(function, args, kwargs)
    forward = to_callable(expand(trace), [executor])
    flat = [p for p in tensors_of((trace.output,), {}) if p.dtype.is_inexact and p.requires_grad]
    backward = None
    if differentiable and flat:
        joint = grad_transform_on_trace(trace.replace(output=tuple(flat)))
        flows = len(joint.inputs) > len(tensors)
        backward = to_callable(expand(joint), [executor]) if flows else None

    def run(args: Any, kwargs: Any, seeds: Tensors) -> tuple[Tensors, Tensors]:
        given = tensors_of(args, kwargs)
        with torch.no_grad():
            torch.manual_seed(0)
            values = tensors_of((forward(*[t.detach() for t in given]),), {})
            if not seeds:
                return values, []
            wanted = [t for t in given if t.requires_grad]
            if backward is None:
                return values, [torch.zeros_like(t) for t in wanted]
            torch.manual_seed(0)
            gradients = backward(*[t.detach() for t in given], *seeds)[1]
        found = [g for g, t in zip(gradients, given, strict=False) if t.requires_grad]
        return values, [torch.zeros_like(t) if g is None else g for g, t in zip(found, wanted, strict=True)]

    return run


def compiled(function: Any, args: Any, kwargs: Any, differentiable: bool) -> Runs:
    """Return what computes a call as ``thunder.jit`` does."""
    program = thunder.jit(lambda *a, **k: function(*a, **k), fallback="error")

    def run(args: Any, kwargs: Any, seeds: Tensors) -> tuple[Tensors, Tensors]:
        return differentiated(program, args, kwargs, seeds)[:2]

    return run


WAYS: dict[str, Callable[..., Runs]] = {"decomposed": decomposed, "compiled": compiled}


def is_comparable(function: Any, args: Any, kwargs: Any, draws: bool) -> bool:
    """Whether a call has results that double precision tells: none drawn, and no sizes that depend on values."""
    trace, _ = traced(function, args, kwargs)
    if any([is_unknown(d) for p in tensors_of((trace.output,), {}) for d in p.shape]):
        return False
    return draws or not any([b.has_tag(OpTags.RANDOM) for b in trace.bound_symbols])


def writes(function: Any, args: Any, kwargs: Any) -> bool:
    """Whether eager writes to what it is given."""
    args, kwargs = copied(args), copied(kwargs)
    before = [t.detach().clone() for t in tensors_of(args, kwargs)]
    with torch.no_grad():
        function(*args, **kwargs)
    return any(
        [not torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(before, tensors_of(args, kwargs), strict=True)]
    )


@dataclass
class Measurement:
    """One run.

    Args:
        ways: what to measure.
        found: what came of it.
        failures: what did not.
    """

    ways: tuple[str, ...]
    found: list[Found]
    failures: list[Failure]

    def sample(self, operation: str, sample: str, call: tuple[Any, Any, Any], dtype: str, draws: bool = False) -> None:
        """Measure one call, on several draws of its numbers."""
        function, args, kwargs = call
        try:
            if writes(function, args, kwargs) or not any([t.numel() for t in tensors_of(args, kwargs)]):
                return
            given, names = tracked(function, args, kwargs)
        except REFUSALS:
            return
        try:
            differentiable = bool(differentiated(function, given, names, None)[1])
        except REFUSALS:  # no derivative in PyTorch
            given, names, differentiable = copied(args), copied(kwargs), False
        runs: dict[str, Runs] = {}
        for way in self.ways:
            try:
                if is_comparable(function, given, names, draws):
                    runs[way] = WAYS[way](function, given, names, differentiable)
            except Exception as error:
                self.fail(operation, dtype, way, error)
        requires = [t.requires_grad for t in tensors_of(given, names)]
        errors: dict[tuple[str, str], list[tuple[float, float]]] = {}
        generator = torch.Generator().manual_seed(2)
        for scale in SCALES:
            for i in range(DRAWS):
                some = generator if i else None
                values = drawn(args, scale, some), drawn(kwargs, scale, some)
                for tensor, flag in zip(tensors_of(*values), requires, strict=True):
                    tensor.requires_grad_(flag)
                self.draw(operation, (function, *values), dtype, runs, errors)
        for (way, what), pairs in errors.items():
            means = [math.exp(sum([math.log(p[i] + FLOOR) for p in pairs]) / len(pairs)) for i in range(2)]
            self.found.append(Found(operation, sample, dtype, what, way, *means))

    def draw(self, operation: str, call: tuple[Any, Any, Any], dtype: str, runs: dict[str, Runs], errors: Any) -> None:
        """Add the errors of one draw to those of the others."""
        function, args, kwargs = call
        try:
            *eager, seeds = differentiated(function, args, kwargs, None)
            *truth, _ = differentiated(function, widened(args), widened(kwargs), seeds)
        except REFUSALS:
            return
        kind = getattr(torch, dtype)
        for way, run in runs.items():
            try:
                ours = run(args, kwargs, seeds)
            except Exception as error:
                self.fail(operation, dtype, way, error)
                return
            for i, what in enumerate(("value", "gradient")):
                if not len(ours[i]) == len(truth[i]) == len(eager[i]):
                    self.fail(operation, dtype, way, ValueError(f"{len(ours[i])} tensors for {len(truth[i])}"))
                    continue
                pair = error_of(ours[i], truth[i], kind), error_of(eager[i], truth[i], kind)
                if None not in pair and pair[1] != WORST:
                    errors.setdefault((way, what), []).append(pair)

    def fail(self, operation: str, dtype: str, way: str, error: Exception) -> None:
        """Note what a call raised."""
        text = f"{type(error).__name__}: {error}".replace("\n", " ")[:200]
        self.failures.append(Failure(operation, dtype, way, text))


def composite_of(op: Any) -> Any:
    """Return the callable with a decomposition that an operation of the database is of, or ``None``."""
    if ltorch.find_symbol(op.op) is not None:
        return op.op
    try:  # the database wraps some
        found = operator.attrgetter(op.name)(torch)
    except AttributeError:
        found = getattr(torch.Tensor, op.name, None)
    return found if ltorch.find_symbol(found) is not None else None


def calls(names: list[str], dtype: str, samples: int) -> Iterator[tuple[str, str, tuple[Any, Any, Any], bool]]:
    """Yield operation, sample and call of what is to be measured, and whether it may draw numbers."""
    kind = getattr(torch, dtype)
    named_ones = [n for n in names if not n.startswith("own")]
    for op in chosen(named_ones) if named_ones or not names else []:
        function = composite_of(op)
        if function is None or op.name in UNWRITTEN or kind not in op.dtypes:
            continue
        torch.manual_seed(0)
        every = list(op.sample_inputs("cpu", kind, requires_grad=False))
        for i, s in enumerate(every[:: max(1, len(every) // samples)][:samples]):
            yield named(op), str(i), (function, (s.input, *s.args), s.kwargs), False
    for name, call in own_calls(kind):
        if not names or any([f"own {name}".startswith(n) for n in names]):
            yield name, name, call, True


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--samples", type=int, default=4, help="of each operation")
    parser.add_argument("--limit", type=float, default=1.5)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES, default=DTYPES)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args(arguments)
    measurement = Measurement(tuple(options.ways), [], [])
    with quiet():
        for dtype in options.dtypes:
            for operation, sample, call, draws in calls(options.names, dtype, options.samples):
                measurement.sample(operation, sample, call, dtype, draws)
    for failure in dict.fromkeys(measurement.failures):
        print(f"{failure.operation:40} {failure.dtype} {failure.way} raised {failure.text}")
    above = [f for f in measurement.found if f.ratio > options.limit]
    for f in sorted(above, key=lambda f: -f.ratio):
        kind = f"{f.dtype:8} {f.way:10} {f.what:8}"
        print(f"{f.operation:40} {f.sample:3} {kind} {f.ours:.2f}/{f.eager:.2f} = {f.ratio:.2f}")
    operations = len({f.operation for f in measurement.found})
    print(f"{operations} operations, {len(measurement.found)} measurements, {len(above)} above {options.limit}")
    if options.table:
        options.table.write_text(page(measurement.found, measurement.failures, options.limit))
    return 1 if above or measurement.failures else 0


if __name__ == "__main__":
    sys.exit(main())
