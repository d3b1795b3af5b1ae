"""A report on a compiled function: one HTML file that needs no network, the same facts as JSON, and in the terminal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
from rich.console import Console
from rich.table import Table

from thunder_examine.facts import Facts, Line, Part, facts_of
from thunder_examine.tables import table
from thunder_frontend import CompiledFunction, ThunderModule, jit
from thunder_ir import collector_paused


@dataclass(frozen=True, slots=True)
class Report:
    """What :func:`report` found.

    Args:
        facts: all that it shows.
        result: of the call that was reported on; ``None`` where none was made.
    """

    facts: Facts
    result: Any = None

    def json(self) -> str:
        """Return the facts as JSON."""
        return json.dumps(self.facts.as_dict())

    def html(self) -> str:
        """Return the page."""
        loader = jinja2.PackageLoader("thunder_examine", "templates")
        environment = jinja2.Environment(loader=loader, autoescape=True)
        data = json.dumps(compact(self.facts)).replace("<", "\\u003c")  # nothing in it ends the script
        return environment.get_template("report.html").render(name=self.facts.name, data=data)

    def chrome_trace(self) -> str:
        """Return one step as a trace for ``chrome://tracing`` or Perfetto, a span per line, named by the user's lines.

        Raises:
            RuntimeError: no line was measured.
        """
        events: list[dict[str, Any]] = []
        now = 0.0
        for number, part in enumerate(self.facts.parts):
            if part.not_measured is not None:
                raise RuntimeError(f"the {part.name} program was not measured: {part.not_measured}")
            for line, cost in zip(part.stages[-1].lines, part.costs, strict=True):
                micros = (cost.seconds or 0.0) * 1e6
                shown = line.source or line.text
                arguments = {"line": line.text, "place": line.place, "bytes": cost.bytes}
                events.append(
                    {"name": shown, "cat": line.executor, "ph": "X", "ts": now, "dur": micros, "pid": 0, "tid": number,
                     "args": arguments}
                )  # fmt: skip
                now += micros
        return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})

    def print(self, most: int = 12) -> None:
        """Print in the terminal what each line costs, what is saved, how long compiling took, and why it was done anew.

        Args:
            most: lines of each table.
        """
        console = Console()
        for part in self.facts.parts:
            console.print(_costliest(part, most))
        if self.facts.saved:
            console.print(_saved(self.facts, most))
        for number, phases in enumerate(self.facts.phases):
            times = ", ".join([f"{name} {milliseconds:.1f} ms" for name, milliseconds in phases.items()])
            console.print(f"specialisation {number} took: {times}", markup=False)
        console.print(f"{self.facts.calls} calls, {self.facts.misses} compiled")
        for reasons in self.facts.reasons[-3:]:
            console.print(f"compiled anew: {'; '.join(reasons)}", markup=False)
        for split in self.facts.split_off:
            console.print(split, markup=False)


def report(
    fn: Callable[..., Any], *args: Any, path: str | Path | None = None, measure: bool = True, **kwargs: Any
) -> Report:
    """Compile and call a callable, and report on its program.

    Args:
        fn: a function or module, or what ``thunder.jit`` returned. It is called once if arguments are given or it was
            not compiled.
        args, kwargs: of that call.
        path: where the report goes: ``.html``, or ``.json``.
        measure: whether each line of the programs is run, on made-up tensors, to see what it costs.

    Raises:
        RuntimeError: all of it runs in Python, so there is no program; or it was compiled, never called, and is given
            no arguments.
        ValueError: the path ends otherwise.

    Example:
        >>> import torch
        >>> from thunder_examine import report
        >>> found = report(lambda x: (x * 2).sin(), torch.ones(3), measure=False)
        >>> [line.text for line in found.facts.parts[0].stages[0].lines]
        ['t0 = ltorch.mul(a0, 2)  # float32[3]', 't1 = ltorch.sin(t0)  # float32[3]']
    """
    target = Path(path) if path is not None else None
    if target is not None and target.suffix not in (".html", ".json"):
        raise ValueError(f"a report ends in .html or .json, and this does not: {target}")
    given = bool(args or kwargs)
    compiled = fn if isinstance(fn, (CompiledFunction, ThunderModule)) else jit(fn)
    result = compiled(*args, **kwargs) if given or compiled is not fn else None
    found = Report(facts_of(compiled, measure=measure), result)
    if target is not None:
        target.write_text(found.html() if target.suffix == ".html" else found.json(), encoding="utf-8")
    return found


@collector_paused()
def compact(facts: Facts) -> dict[str, Any]:
    """Return the facts with each text and each line written once, and numbers in their places.

    Stages have most of their lines in common, so this grows with the program and not with the number of passes.
    """
    texts: dict[str, int] = {}
    lines: dict[tuple[int, ...], int] = {}
    numbers_by_line: dict[int, int] = {}

    def text(value: str) -> int:
        return texts.setdefault(value, len(texts))

    def number(line: Line) -> int:
        known = numbers_by_line.get(id(line))  # stages share lines, which the facts keep alive
        if known is None:
            key = (text(line.text), text(line.place), text(line.source), text(line.executor))
            known = numbers_by_line[id(line)] = lines.setdefault(key, len(lines))
        return known

    parts = []
    for part in facts.parts:
        stages = []
        for stage in part.stages:
            numbers = [number(line) for line in stage.lines]
            stages.append([stage.made_by, round(stage.milliseconds, 3), stage.head, numbers, stage.output])
        costs = [[None if c.seconds is None else round(c.seconds * 1e6, 2), c.bytes, c.operations] for c in part.costs]
        parts.append(
            {"name": part.name, "stages": stages, "held": part.memory.held, "given": part.memory.given, "costs": costs,
             "reason": part.not_measured, "roof": part.roof and [part.roof.operations, part.roof.bytes]}
        )  # fmt: skip
    rest = {
        "name": facts.name, "prologue": facts.prologue, "epilogue": facts.epilogue, "phases": facts.phases,
        "saved": facts.saved, "calls": facts.calls, "misses": facts.misses, "reasons": facts.reasons,
        "splits": facts.split_off,
    }  # fmt: skip
    return {"texts": list(texts), "lines": list(lines), "parts": parts, **rest}


def _saved(facts: Facts, most: int) -> Table:
    rows = [
        (s["name"], s["type"], f"{s['bytes']:,}", "saved" if s["saved"] else "computed again", s["operation"], s["why"])
        for s in facts.saved[:most]
    ]
    head = ("value", "type", "bytes", "what", "operation", "why")
    return table(head, rows, "saved for the backward program")


def _costliest(part: Part, most: int) -> Table:
    title = f"{part.name}: peak {part.memory.peak:,} bytes"
    if part.not_measured is not None:
        title += f"; not measured, {part.not_measured}"
    found = [row for row in zip(part.stages[-1].lines, part.costs, strict=True) if not row[0].text.startswith("del ")]
    found.sort(key=lambda row: (-(row[1].seconds or 0.0), -row[1].bytes))
    rows = []
    for line, cost in found[:most]:
        micros = "" if cost.seconds is None else f"{cost.seconds * 1e6:.1f}"
        share = part.roof.share(cost) if part.roof is not None else None
        near = "" if share is None else f"{share:.0%}"
        rows.append((micros, near, f"{cost.bytes:,}", line.executor, line.text, line.source))
    return table(("µs", "of roof", "bytes", "executor", "line", "from"), rows, title)
