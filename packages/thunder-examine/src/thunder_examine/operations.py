"""Which operations a program is made of, and what becomes of them."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from itertools import islice, pairwise
from typing import Any

from rich.console import Console

from thunder_examine.facts import Facts, facts_of
from thunder_examine.tables import table
from thunder_executors import Executor, Refusal, claim, who_gains
from thunder_frontend import CompiledFunction, FallbackWarning, ThunderModule, compiled_function, jit
from thunder_guards import ValueGuard
from thunder_ir import BoundSymbol, Trace
from thunder_torch import SYMBOLS


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of a program.

    Args:
        name: id of its symbol.
        count: how often it is called.
        composed: whether transforms reach inside; otherwise it is called as it is, with its derivative from PyTorch.
    """

    name: str
    count: int
    composed: bool


@dataclass(frozen=True, slots=True)
class Declined:
    """An executor that does not run an operation.

    Args:
        operation: id of its symbol.
        executor: its name.
        reason: in its own words.
    """

    operation: str
    executor: str
    reason: str


@dataclass(frozen=True, slots=True)
class OperationsReport:
    """What :func:`examine` found.

    Args:
        operations: by falling count.
        problem: why the program could not be acquired whole; ``None`` if it could.
        facts: of the program that runs: who runs each line, memory line by line, what is saved for the backward program
            and why; ``None`` where it is not one program.
        declined: the executors that were asked before the one that runs an operation, and why they do not.
        constants: what programs were compiled for besides tensors: where each value came from, and the value.
        splits: what runs in Python, where and why.
    """

    operations: tuple[Operation, ...]
    problem: str | None = None
    facts: Facts | None = None
    declined: tuple[Declined, ...] = ()
    constants: tuple[tuple[str, str], ...] = ()
    splits: tuple[str, ...] = ()

    @property
    def executors(self) -> dict[str, int]:
        """How many lines of the program that runs each executor has."""
        parts = self.facts.parts if self.facts is not None else ()
        return dict(Counter(line.executor for part in parts for line in part.stages[-1].lines if line.executor))

    def print(self, most: int = 12) -> None:
        """Print all of it as tables, or the problem.

        Args:
            most: rows of each table.
        """
        console = Console()
        if self.problem is not None:
            console.print(f"The program cannot be acquired whole: {self.problem}", markup=False)
        kinds = [(o.name, str(o.count), "composed" if o.composed else "opaque") for o in self.operations]
        _print_rows(console, most, ("operation", "calls", "understood as"), kinds)
        if self.executors:
            counts = ", ".join([f"{name} {count}" for name, count in self.executors.items()])
            console.print(f"lines by executor: {counts}", markup=False)
        _print_rows(console, most, ("operation", "not run by", "because"), map(astuple, self.declined))
        for part in self.facts.parts if self.facts is not None else ():
            held = part.memory.held
            where = part.stages[-1].lines[held.index(part.memory.peak)].text if held else "it has no line"
            console.print(f"{part.name}: at most {part.memory.peak:,} bytes, at {where}", markup=False)
        saved = [
            (s["name"], f"{s['bytes']:,}", "saved" if s["saved"] else "computed again", s["why"])
            for s in (self.facts.saved if self.facts is not None else ())
        ]
        _print_rows(console, most, ("for backward", "bytes", "what", "why"), saved)
        _print_rows(console, most, ("compiled for", "value"), self.constants)
        for split in self.splits:
            console.print(f"in Python: {split}", markup=False)


def _print_rows(console: Console, most: int, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> None:
    made = table(head, islice(rows, most))
    if made.row_count:
        console.print(made)


def examine(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> OperationsReport:
    """Say whether Thunder can compile a callable for these arguments, and what becomes of it.

    The callable is called once; where that fails because it cannot be compiled whole, once more, in parts.

    Args:
        fn: a function or module, or what ``thunder.jit`` returned.
        args, kwargs: of the call.

    Example:
        >>> import torch
        >>> from thunder_examine import examine
        >>> found = examine(lambda x, n: (x * n + 1) * 3, torch.ones(2), 2)
        >>> [(o.name, o.count, o.composed) for o in found.operations]
        [('ltorch.mul', 2, True), ('ltorch.add', 1, True)]
        >>> found.constants, found.facts.parts[0].memory.peak
        ((('args[1]', '2'),), 16)
    """
    compiled = fn if isinstance(fn, (CompiledFunction, ThunderModule)) else jit(fn, fallback="error")
    problem = None
    try:
        compiled(*args, **kwargs)
    except Exception as error:  # whatever it is, it is the answer
        problem = f"{type(error).__name__}: {error}"
        compiled = jit(fn, fallback="split")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FallbackWarning)
                compiled(*args, **kwargs)
        except Exception:  # in parts, too: the first error tells
            return OperationsReport((), problem)
    function = compiled_function(compiled)
    programs = [part.compiled[-1] for part in function.parts() if part.compiled]
    known = set(SYMBOLS.values())
    bound = [b for made in programs for b in made.traces[0].bound_symbols]
    counts = Counter(b.symbol.id for b in bound)
    composed = {b.symbol.id: _is_composed(b, known) for b in bound}
    guards = [g for made in programs for g in made.specialisation.program.guards]
    stages = [traces for made in programs for traces in (made.traces, made.backward_traces)]
    return OperationsReport(
        tuple([Operation(name, count, composed[name]) for name, count in counts.most_common()]),
        problem,
        facts_of(compiled, measure=False) if function.compiled else None,
        declined_in(stages, function.executors_list),
        tuple(dict.fromkeys([(str(g.source), repr(g.value)) for g in guards if isinstance(g, ValueGuard)])),
        tuple(map(str, function.split_off())),
    )


def declined_in(stages: Iterable[Sequence[Trace]], executors: Sequence[Executor]) -> tuple[Declined, ...]:
    """Ask executors once more for what they declined, of the stages of each program."""
    refusals: list[Refusal] = []
    for traces in stages:
        for before, after in pairwise(traces):
            if after.provenance is not None and after.provenance.made_by == "claim":
                claim(before, who_gains(before, executors), refusals)
    return tuple(dict.fromkeys([Declined(r.operation, r.executor, r.reason) for r in refusals]))


def _is_composed(bound: BoundSymbol, known: set[Any]) -> bool:
    return bound.symbol in known or bound.symbol.is_prim
