"""Compare derivatives of every differentiable operation of PyTorch's own database with those of eager execution.

python tools/gradients_sweep.py                          all operations, through thunder.jit, four samples each
python tools/gradients_sweep.py softmax --samples 20     one operation, more samples
python tools/gradients_sweep.py --direct                 record one call and connect it, without the front end
python tools/gradients_sweep.py --checks gradients       only some of the checks
python tools/gradients_sweep.py --dtype complex128       in another dtype
python tools/gradients_sweep.py --table docs/gradients.md

In float64 if not asked otherwise, and complex128 where an operation does not take that. For each sample, compiled and
eager are compared in

- gradients: of a loss with random cotangents: which of them exist, shapes, dtypes and values;
- gradcheck: torch.autograd.gradcheck of what is compiled, against finite differences, with missing cotangents, too;
- second: derivatives of these gradients along random cotangents, by create_graph=True;
- gradgradcheck: torch.autograd.gradgradcheck of what is compiled.

The random generator is seeded before each call on both sides. What eager execution fails itself is not compared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from opinfo import chosen, copied, difference, named, quiet, traced
from torch.autograd.gradcheck import GradcheckError

import thunder
import thunder_torch as ltorch
from thunder_autograd import Split, forward_and_backward
from thunder_executors import grad_rule, transform_for_execution
from thunder_executors_torch import executor
from thunder_ir import Trace
from thunder_testing import sweeps
from thunder_torch.bridge import connect_autograd
from thunder_torch.specs import map_tensors, tensors_of

CHECKS = ("gradients", "gradcheck", "second", "gradgradcheck")
FIRST, SECOND = CHECKS[:2], CHECKS[2:]
FALLBACKS = (torch.float64, torch.complex128, torch.float32)  # for operations that do not take the dtype
WORST_FIRST = ("wrong", "detached", "raised", "right")
CONSIDERED = 40  # samples of an operation from which some are chosen
Function = Callable[..., Any]


class DetachedError(AssertionError):
    """A gradient that eager execution has is missing."""


@dataclass
class Row:
    """What became of one operation.

    Args:
        name: of the operation, with its variant.
        kind: composed or opaque.
        samples: how many were tried.
        found: for each check, the outcomes of the samples to which it applies.
        first: the first problem, as text.
        seconds: CPU time.
    """

    name: str
    kind: str
    samples: int = 0
    found: dict[str, Counter[str]] = field(default_factory=lambda: {check: Counter() for check in CHECKS})
    first: str = ""
    seconds: float = 0.0

    def outcome(self, checks: Sequence[str]) -> str:
        """The worst outcome of these checks; ``–`` if none applies."""
        return next((o for o in WORST_FIRST if any(self.found[check][o] for check in checks)), "–")


@dataclass(frozen=True)
class Sample:
    """A call of an operation, of the tensors in it that require grad.

    Args:
        op: of the database.
        sample: its arguments.
    """

    op: Any
    sample: Any

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Copies of the arguments, in which each tensor is a leaf of its own."""
        return copied(((self.sample.input, *self.sample.args), self.sample.kwargs))

    def call(self, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call ``function`` as the database's tests of gradients do, under a seed."""
        torch.manual_seed(0)
        output = self.op.gradcheck_wrapper(function, *args, **kwargs)
        process = self.sample.output_process_fn_grad
        return process(output) if process is not None else output

    def of_inputs(self, function: Function) -> tuple[Function, tuple[torch.Tensor, ...]]:
        """Return the call as a function of its inputs that require grad, and these."""
        args, kwargs = self.arguments
        inputs = tuple([t for t in tensors_of(args, kwargs) if t.requires_grad])

        def of_inputs(*values: torch.Tensor) -> Any:
            given = {id(t): v for t, v in zip(inputs, values, strict=True)}
            filled = map_tensors(lambda t: given.get(id(t), t), (args, kwargs))
            output = self.call(function, *filled)
            kept = [t for t in tensors_of((output,), {}) if t.is_floating_point() or t.is_complex()]
            return tuple([t for t in kept if t.requires_grad]) or tuple(kept)

        return of_inputs, inputs


def direct(function: Function) -> Function:
    """Return ``function`` recorded at its first call and connected to autograd, without the front end."""
    made: list[Function] = []

    def run(*args: Any, **kwargs: Any) -> Any:
        if not made:
            trace, _ = traced(function, args, kwargs)
            split = _split(trace)
            forward, backward = _ready(split.forward).python_callable(), _ready(split.backward).python_callable()
            made.append(connect_autograd(forward, backward, split, compile=_ready, differentiate=_split))
        return made[0](*tensors_of(args, kwargs))

    return run


def _split(trace: Trace, wanted: Any = None) -> Split:
    return forward_and_backward(trace, rule_of=lambda bound: grad_rule(bound, [executor]), wanted=wanted)


def _ready(trace: Trace) -> Trace:
    return transform_for_execution(trace, [executor])


def cotangents(outputs: Sequence[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Return random tensors like the outputs, the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    made = [torch.randn(t.shape, dtype=t.dtype, generator=generator) for t in outputs]
    return [m.to_sparse() if t.layout is torch.sparse_coo else m for m, t in zip(made, outputs, strict=True)]


def gradients(sample: Sample, function: Function) -> list[torch.Tensor | None] | None:
    """Return the gradients of a loss with random cotangents; ``None`` if nothing requires grad."""
    run, inputs = sample.of_inputs(function)
    outputs = [t for t in run(*inputs) if t.requires_grad]
    if not inputs or not outputs:
        return None
    return list(torch.autograd.grad(outputs, inputs, cotangents(outputs, 1), allow_unused=True))


def second(sample: Sample, function: Function) -> list[torch.Tensor] | None:
    """Return derivatives of the gradients by inputs and cotangents, zeros where there is none."""
    run, inputs = sample.of_inputs(function)
    outputs = [t for t in run(*inputs) if t.requires_grad]
    if not inputs or not outputs:
        return None
    seeds = [c.requires_grad_() for c in cotangents(outputs, 1)]
    found = torch.autograd.grad(outputs, inputs, seeds, create_graph=True, allow_unused=True)
    along = cotangents([torch.zeros_like(i) if g is None else g for g, i in zip(found, inputs, strict=True)], 2)
    pairs = [(g, c) for g, c in zip(found, along, strict=True) if g is not None and g.requires_grad]
    if not pairs:
        return [torch.zeros_like(t) for t in (*inputs, *seeds)]
    firsts, given = zip(*pairs, strict=True)
    wanted = (*inputs, *seeds)
    return list(torch.autograd.grad(firsts, wanted, given, allow_unused=True, materialize_grads=True))


def gradcheck(sample: Sample, function: Function) -> None:
    """Check gradients against finite differences, as PyTorch's tests of the operation do."""
    run, inputs = sample.of_inputs(function)
    tolerance = sample.op.gradcheck_nondet_tol
    torch.autograd.gradcheck(run, inputs, fast_mode=True, nondet_tol=tolerance, check_grad_dtypes=True)


def gradgradcheck(sample: Sample, function: Function) -> None:
    """Check derivatives of gradients against finite differences, as PyTorch's tests of the operation do."""
    run, inputs = sample.of_inputs(function)
    tolerance = sample.op.gradcheck_nondet_tol
    torch.autograd.gradgradcheck(run, inputs, fast_mode=True, nondet_tol=tolerance, check_grad_dtypes=True)


class Sweep:
    """One run over operations.

    Args:
        samples: how many of each operation.
        elements: samples with more numbers than this are passed over, unless there are no smaller ones.
        checks: which of :data:`CHECKS`.
        front_end: whether to go through thunder.jit.
        dtype: of the samples, if an operation takes it.
    """

    def __init__(
        self,
        samples: int = 4,
        elements: int = 300,
        checks: Sequence[str] = CHECKS,
        front_end: bool = True,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        self.samples, self.elements, self.checks = samples, elements, checks
        self.compile = thunder.jit if front_end else direct
        self.dtypes = (dtype, *FALLBACKS)

    def row(self, op: Any) -> Row:
        """Try one operation."""
        row = Row(named(op), "composed" if ltorch.find_symbol(op.op) is not None else "opaque")
        start = time.process_time()
        checks = [c for c in self.checks if op.supports_gradgrad or c in FIRST]
        with quiet():
            for sample in self.chosen(op):
                row.samples += 1
                function = self.compile(op.op)
                for check in checks:
                    outcome, problem = self.check(check, sample, function)
                    row.found[check][outcome] += 1
                    row.first = row.first or (problem and f"{check}: {problem}")
                    if outcome in ("wrong", "detached", "raised") and check in ("gradients", "second"):
                        break  # the others would say the same
        row.seconds = time.process_time() - start
        return row

    def chosen(self, op: Any) -> list[Sample]:
        """Return small samples that require grad, spread over those that there are."""
        found = list(self.candidates(op))
        sizes = [sum(t.numel() if t.requires_grad else 0 for t in tensors_of(*s.arguments)) for s in found]
        small = [s for s, size in zip(found, sizes, strict=True) if 0 < size <= self.elements]
        found = small or found[: self.samples]
        step = max(1, len(found) // self.samples)
        return found[::step][: self.samples]

    def candidates(self, op: Any) -> Iterator[Sample]:
        """Yield samples that have something to differentiate."""
        dtype = next((d for d in self.dtypes if d in op.dtypes), None)
        if dtype is None:
            return
        torch.manual_seed(0)
        for sample in islice(op.sample_inputs("cpu", dtype, requires_grad=True), CONSIDERED):
            if any(t.requires_grad for t in tensors_of((sample.input, *sample.args), sample.kwargs)):
                yield Sample(op, sample)

    def check(self, check: str, sample: Sample, function: Function) -> tuple[str, str]:
        """Return the outcome of one check, and what is wrong."""
        run = {"gradients": gradients, "second": second, "gradcheck": gradcheck, "gradgradcheck": gradgradcheck}[check]
        compares = check in ("gradients", "second")
        expected = None
        if compares:
            try:
                expected = run(sample, sample.op.op)
            except Exception:  # there is no such derivative
                return "–", ""
            if expected is None:
                return "–", ""
        try:
            actual = run(sample, function)
            if compares:
                compare(expected, actual, nan_is_known=check == "gradients")
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if not compares and _fails(run, sample):
                return "–", ""
            if isinstance(error, DetachedError):
                return "detached", problem
            told = isinstance(error, (AssertionError, GradcheckError))
            return "wrong" if told else "raised", problem
        return "right", ""


def _fails(run: Function, sample: Sample) -> bool:
    try:
        run(sample, sample.op.op)
    except Exception:  # whatever it is, it is eager's
        return True
    return False


def compare(
    expected: list[torch.Tensor | None] | None, actual: list[torch.Tensor | None] | None, nan_is_known: bool
) -> None:
    """Raise unless gradients are equal.

    Args:
        expected, actual: of eager execution, and of what is compiled.
        nan_is_known: whether there must be a NaN where eager execution has one. Second derivatives of its formulas are
            NaN in places where the derivative is finite.
    """
    if expected is not None and actual is None:
        raise DetachedError("nothing requires grad")
    assert expected is not None and actual is not None, "only the compiled function has gradients"
    for i, (e, a) in enumerate(zip(expected, actual, strict=True)):
        if e is not None and a is None:
            raise DetachedError(f"input {i} has no gradient")
        assert e is not None or a is None, f"input {i} has a gradient where eager execution gives None"
        if e is not None and not nan_is_known:
            a = torch.where(e.isnan(), e, a)
        found = difference(e, a, exact=False)
        assert not found, f"input {i}: {found}"


def totals(rows: list[Row]) -> list[str]:
    """Return the numbers of outcomes, in lines of text."""
    lines = []
    for title, checks in (("first order", FIRST), ("second order", SECOND), *[(c, (c,)) for c in CHECKS]):
        counts = Counter(r.outcome(checks) for r in rows)
        told = ", ".join([f"{counts[o]} {o}" for o in (*reversed(WORST_FIRST[:3]), "right") if counts[o]][::-1])
        lines.append(f"{title}: {told or 'nothing'} of {sum(counts.values()) - counts['–']}")
    return lines


def table(rows: list[Row], command: str) -> str:
    """Return the rows as a page."""
    lines = [
        "# Gradients",
        "",
        f"Results of `{command}` on PyTorch {torch.__version__.partition('+')[0]} and Python "
        f"{sys.version_info[0]}.{sys.version_info[1]}: derivatives of every",
        "differentiable operation in PyTorch's OpInfo database, compared with eager.",
        "",
        "- *gradients*: which gradients of a loss with random cotangents exist, their shapes, dtypes and values;",
        "- *gradcheck*: `torch.autograd.gradcheck` of the compiled function, in fast mode;",
        "- *second*: derivatives of the gradients with respect to inputs and cotangents, with `create_graph=True`;",
        "- *gradgradcheck*: `torch.autograd.gradgradcheck`, in fast mode.",
        "",
        "First order is the worse of the first two checks, second order the worse of the last two. *Raised* means an",
        "error, *detached* a missing gradient. A dash means that the check does not apply: PyTorch's database lists no",
        "such derivative, eager fails the check itself, or there is nothing to differentiate.",
        "",
        *[f"- {line}" for line in totals(rows)],
        "",
        *sweeps.table(
            ["operation", "kind", *CHECKS, "remark"],
            [(f"`{r.name}`", r.kind, *[_cell(r.found[c]) for c in CHECKS], sweeps.cell(r.first)) for r in rows],
        ),
    ]
    return "\n".join(lines) + "\n"


def _cell(found: Counter[str]) -> str:
    compared = sum(found.values()) - found["–"]
    if not compared:
        return "–"
    worst = next(o for o in WORST_FIRST if found[o])
    return f"{found['right']}/{compared}" + ("" if worst == "right" else f" {worst}")


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="operations; all if none is named")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--elements", type=int, default=300, help="numbers in the tensors of a sample, at most")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--checks", nargs="*", choices=CHECKS, default=CHECKS)
    parser.add_argument("--direct", action="store_true")
    parser.add_argument("--table", type=Path)
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    sweep = Sweep(options.samples, options.elements, options.checks, not options.direct, getattr(torch, options.dtype))
    rows = []
    for op in chosen(options.names):
        if not op.supports_autograd:
            continue
        rows.append(row := sweep.row(op))
        if row.first or options.names:
            told = " ".join([f"{check} {_cell(row.found[check])}" for check in options.checks])
            print(f"{row.name:45} {row.kind:8} {row.seconds:5.1f}s {told}  {row.first[:260]!r}", flush=True)
    print("\n".join(totals(rows)))
    if options.table:
        told = sweeps.command("tools/gradients_sweep.py", arguments, ("--table", options.table))
        options.table.write_text(table(rows, told))
    return 1 if any(r.outcome(CHECKS) in ("wrong", "detached") for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
