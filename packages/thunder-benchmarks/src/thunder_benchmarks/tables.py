"""Tables of what was measured: on the terminal and in Markdown, on pages, and as files of rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table

R = TypeVar("R")


def show(rows: Sequence[Sequence[str]], width: int | None = None) -> None:
    """Print rows as a table; the first one is its head."""
    table = Table(*rows[0])
    for row in rows[1:]:
        table.add_row(*row)
    Console(width=width).print(table)


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table of Markdown; the first one is its head.

    Example:
        >>> from thunder_benchmarks.tables import markdown
        >>> print(markdown([["case", "ms"], ["tanh", "2"]]), end="")
        | case | ms |
        |---|---|
        | tanh | 2 |
    """
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:], ""])


def write_between(page: Path, marks: tuple[str, str], text: str) -> None:
    """Write a text between two marks of a page."""
    before, _, rest = page.read_text(encoding="utf-8").partition(marks[0])
    page.write_text(f"{before}{marks[0]}{text}{marks[1]}{rest.partition(marks[1])[2]}", encoding="utf-8")


def marks_of(module: str) -> tuple[str, str]:
    """Return what stands on a page around the tables that a module writes."""
    return f"<!-- made by python -m {module} -->\n", "<!-- end -->\n"


def read_rows(kind: type[R], path: Path | None) -> list[R]:
    """Return the rows of a file, one a line; none where there is no file."""
    if path is None or not path.exists():
        return []
    return [kind(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def add_rows(path: Path | None, rows: Sequence[Any]) -> None:
    """Add rows, which are dataclasses, to a file; nothing without one."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.writelines([json.dumps(asdict(row)) + "\n" for row in rows])
