"""What sweeps over many cases share: rows of what became of each, kept from run to run, and pages with tables."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Generic, TypeVar

R = TypeVar("R")


class Rows(Generic[R]):
    """Rows in a file, one a line, which is added to as cases end: a sweep that was cut off goes on where it was.

    Args:
        kind: the dataclass that rows are of.
        key: what tells rows apart; of several with one key the last counts.
        path: of the file, which need not be there; ``None`` keeps the rows in memory alone.

    Example:
        >>> from dataclasses import dataclass
        >>> from thunder_testing.sweeps import Rows
        >>> @dataclass
        ... class Row:
        ...     name: str
        ...     right: bool
        >>> rows = Rows(Row, lambda row: row.name)
        >>> rows.add(Row("tanh", True))
        >>> "tanh" in rows.found, rows.found["tanh"].right
        (True, True)
    """

    def __init__(self, kind: type[R], key: Callable[[R], Any], path: Path | None = None) -> None:
        self._key, self._path = key, path
        texts = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        self.found: dict[Any, R] = {key(row): row for row in [kind(**json.loads(text)) for text in texts]}

    def add(self, row: R) -> None:
        """Add a row."""
        self.found[self._key(row)] = row
        if self._path is not None:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(row)) + "\n")  # type: ignore[call-overload]


def cell(text: str, length: int = 120) -> str:
    """Return a text such that it fits into one cell of a table.

    Example:
        >>> from thunder_testing.sweeps import cell
        >>> print(cell("a | b, and more", 5))
        a \\| b
    """
    return " ".join(text.split())[:length].replace("|", "\\|").replace("<", "&lt;").replace("[", "\\[")


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Return the lines of a table in Markdown; what is in cells is to be fit for that, see :func:`cell`.

    Example:
        >>> from thunder_testing.sweeps import table
        >>> table(["case", "right"], [("tanh", 2)])
        ['| case | right |', '|---|---|', '| tanh | 2 |']
    """
    return [f"| {' | '.join(header)} |", "|---" * len(header) + "|", *[f"| {' | '.join(map(str, r))} |" for r in rows]]


def section(page: str, heading: str) -> str:
    """Return the part of a page in Markdown from a heading of the second level to the next one, ``""`` if it has none.

    Example:
        >>> from thunder_testing.sweeps import section
        >>> section("# Page\\n\\n## One\\n\\nFirst.\\n\\n## Two\\n", "One")
        '## One\\n\\nFirst.\\n\\n'
    """
    _, found, after = page.partition(f"## {heading}\n")
    following = after.find("\n## ")
    return found + (after if following < 0 else after[: following + 1])


def command(script: str, arguments: Sequence[str] | None, *files: tuple[str, object]) -> str:
    """Return the command that a page says it was made by, without the files that it writes.

    Args:
        script: ``"tools/modules_sweep.py"``, say.
        arguments: of the command line; those of this process if ``None``.
        files: pairs of an option and what it was given.
    """
    left_out = {str(part) for pair in files for part in pair}
    given = sys.argv[1:] if arguments is None else arguments
    return " ".join(["python", script, *[word for word in given if word not in left_out]])


__all__ = ["Rows", "cell", "command", "section", "table"]
