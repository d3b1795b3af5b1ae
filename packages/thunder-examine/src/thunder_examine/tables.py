"""Tables of plain text for the terminal: what stands in brackets is shown, and no markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text


def table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> Table:
    """Return a table.

    Args:
        head: a title for each column.
        rows: texts.
        title: of the table.
    """
    made = Table(*head, title=None if title is None else Text(title, style="table.title"))
    for row in rows:
        made.add_row(*[Text(cell) for cell in row])
    return made
