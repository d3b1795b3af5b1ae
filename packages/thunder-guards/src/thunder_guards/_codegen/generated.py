"""Functions as text: lines in the making, and the text with the names that it uses."""

from __future__ import annotations

import itertools
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from thunder_guards._codegen.shared import shared_condition
from thunder_guards.program import OWN_NAMES, Program
from thunder_ir import Context, Names, flat_proxies

_NUMBERS = itertools.count()
INDENT = "    "


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """The text of a generated function.

    Args:
        text: its definition.
        context: the names that it uses.
        name: of the function.
    """

    text: str
    context: Context = field(repr=False)
    name: str = "prologue"

    def python(self) -> str:
        """Return the text."""
        return self.text

    def __str__(self) -> str:
        return self.text

    def compile(self, names: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the function; tracebacks through it show its lines."""
        filename = f"<thunder {self.name} {next(_NUMBERS)}>"
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(keepends=True), filename)
        scope = {**self.context.globals, **names, "__name__": "thunder.generated"}
        exec(compile(self.text, filename, "exec"), scope)
        return scope[self.name]  # type: ignore[no-any-return]


class Lines:
    """The lines of a function in the making, and the names that it uses.

    Args:
        program: what it is for: its values keep their names.
    """

    def __init__(self, program: Program) -> None:
        names = Names(
            [p.name for p in program.computation.inputs] + [p.name for p in flat_proxies(program.computation.output)]
        )
        names.reserve(OWN_NAMES)
        self.context = Context(names)
        self.lines: list[str] = []
        self.functions: list[str] = []
        """The definitions of functions that the lines call, and that other programs' may call, too."""

    def add(self, line: str, depth: int = 1) -> None:
        """Add a line, indented so many times."""
        self.lines.append(INDENT * depth + line)

    def asked(self, conditions: Callable[[Context], list[str]]) -> str:
        """Return an expression for whether conditions hold that read no argument of a call."""
        function, text = shared_condition(conditions)
        name = self.context.object(function, "as_found")
        self.functions.append(f"{name} = {text}")
        return f"{name}()"
