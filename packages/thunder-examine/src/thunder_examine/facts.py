"""All that a report shows, as plain data."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from thunder_examine.costs import Cost, costs
from thunder_examine.memory import Memory, memory
from thunder_examine.roofline import Roof, roof_of
from thunder_frontend import CompiledFunction, compile_stats, compiled_function
from thunder_guards.traces import epilogue_trace
from thunder_ir import BoundSymbol, TensorProxy, Trace, collector_paused
from thunder_ir.codegen import INDENT, print_bound
from thunder_ir.literals import Context, literal
from thunder_torch import to_torch_device


@dataclass(frozen=True, slots=True)
class Line:
    """One printed call of a program.

    Args:
        text: as the trace prints it; several lines where the call prints so.
        place: file and line of the user's program; empty where it is not known.
        source: the user's line itself; empty where it is not at hand.
        executor: who runs it; empty before executors were asked.
        symbol: the operation's id.
    """

    text: str
    place: str
    source: str
    executor: str
    symbol: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A program after one pass.

    Args:
        made_by: the pass.
        milliseconds: CPU time of it.
        head: the line with name and parameters.
        lines: its calls.
        output: the line that returns.
    """

    made_by: str
    milliseconds: float
    head: str
    lines: tuple[Line, ...]
    output: str


@dataclass(frozen=True, slots=True)
class Part:
    """The forward or the backward program of a specialisation.

    Args:
        name: ``"forward"`` or ``"backward"``.
        stages: first to last.
        memory: of the last stage.
        costs: of the last stage, one per line.
        not_measured: why no line was measured; ``None`` if they were.
        roof: what the device reaches, where lines were measured.
    """

    name: str
    stages: tuple[Stage, ...]
    memory: Memory
    costs: tuple[Cost, ...]
    not_measured: str | None
    roof: Roof | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the specialisation that was compiled last, and of the cache.

    Args:
        name: of the callable.
        parts: forward program, and backward program if there is one.
        prologue: text of what guards and unpacks.
        epilogue: text of what writes and returns.
        phases: CPU milliseconds of compiling, by phase, for each specialisation.
        saved: for each value that the backward program needs: name, type, bytes, whether it is saved, operation, why.
        calls: of the compiled function so far.
        misses: how many of them compiled.
        reasons: for each miss after the first, which guards failed.
        split_off: what runs in Python, where and why.
    """

    name: str
    parts: tuple[Part, ...]
    prologue: str
    epilogue: str
    phases: tuple[dict[str, float], ...]
    saved: tuple[dict[str, Any], ...]
    calls: int
    misses: int
    reasons: tuple[tuple[str, ...], ...]
    split_off: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the same as dictionaries, lists, texts and numbers, as JSON has them."""
        return asdict(self)


@collector_paused()
def facts_of(fn: Any, *, measure: bool = True) -> Facts:
    """Gather the facts of a compiled function.

    Args:
        fn: what ``thunder.jit`` returned, after a call.
        measure: whether the calls of its programs are run, on made-up tensors, to see what they cost.

    Raises:
        TypeError: ``fn`` was not compiled.
        RuntimeError: it was not called yet, or all of it runs in Python.
    """
    function = compiled_function(fn)
    if not function.compiled:
        raise RuntimeError("there is no program to report on: call the function first; thunder.explain says what of it "
                           "runs in Python")  # fmt: skip
    last = function.compiled[-1]
    stats = compile_stats(fn)
    roof = functools.cache(roof_of)
    parts = [_part("forward", last.traces, measure, roof)]
    if last.backward_traces:
        parts.append(_part("backward", _without_box(last.backward_traces), measure, roof))
    return Facts(
        function.name,
        tuple(parts),
        str(last.specialisation.prologue),
        str(epilogue_trace(last.program)),
        tuple({name: seconds * 1e3 for name, seconds in phases.items()} for phases in stats.phases),
        _saved(last.computation.split),
        stats.calls,
        stats.cache_misses,
        tuple(map(tuple, stats.reasons)),
        _split_off(function),
    )


def _split_off(function: CompiledFunction) -> tuple[str, ...]:
    return tuple(map(str, function.split_off()))


def _saved(split: Any) -> tuple[dict[str, Any], ...]:
    decisions = sorted(split.decisions, key=lambda d: (-d.bytes, d.name)) if split is not None else ()
    return tuple(
        {
            "name": d.name, "type": d.type_string, "bytes": d.bytes, "saved": d.saved, "operation": d.operation,
            "why": d.why,
        }
        for d in decisions
    )  # fmt: skip


def _without_box(traces: list[Trace]) -> list[Trace]:
    """Leave out the stage that takes its values in a list, which is how it is called, not what it computes."""
    return [t for t in traces if not (len(t.inputs) == 1 and t.inputs[0].type_string == "any")] or traces


def _part(name: str, traces: list[Trace], measure: bool, roof: Callable[[torch.device], Roof]) -> Part:
    found, reason = costs(traces[-1], measure=measure)
    devices = [p.device for p in traces[-1].inputs if isinstance(p, TensorProxy)]
    reached = roof(to_torch_device(devices[0])) if reason is None and devices else None
    printed = Printed()
    stages = tuple([stage_of(trace, printed) for trace in traces])
    return Part(name, stages, memory(traces[-1]), tuple(found), reason, reached)


class Printed:
    """Lines by their calls, which most stages of a program have in common, and the user's lines by their places."""

    def __init__(self) -> None:
        self._lines: dict[int, tuple[BoundSymbol, Line]] = {}
        self._sources: dict[Any, tuple[str, str]] = {}

    def line(self, bound: BoundSymbol, context: Context) -> Line:
        """Return the line of a call."""
        known = self._lines.get(id(bound))
        if known is None:
            executor = getattr(bound.symbol.executor, "name", "")
            text = f"\n{INDENT}".join(print_bound(bound, context))
            known = bound, Line(text, *self._source(bound.location), executor, bound.symbol.id)
            self._lines[id(bound)] = known  # with the call, so that no other one gets its id
        return known[1]

    def _source(self, place: Any) -> tuple[str, str]:
        if place is None:
            return "", ""
        found = self._sources.get(place)
        if found is None:
            found = self._sources[place] = str(place), linecache.getline(place.filename, place.line).strip()
        return found


def stage_of(trace: Trace, printed: Printed) -> Stage:
    """Return a trace as text, call by call."""
    context = Context(trace.names())
    parameters = ", ".join(f'{p.name}: "{p.type_string}"' for p in trace.inputs)
    lines = tuple([printed.line(bound, context) for bound in trace.bound_symbols])
    made_by, seconds = (trace.provenance.made_by, trace.provenance.seconds) if trace.provenance else ("", 0.0)
    return Stage(
        made_by, seconds * 1e3, f"def {trace.name}({parameters}):", lines, f"return {literal(trace.output, context)}"
    )
