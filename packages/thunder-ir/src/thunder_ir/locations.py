"""Where in the user's source something came from."""

from __future__ import annotations

import linecache
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Location:
    """A line of the user's program.

    Args:
        filename: as Python's code objects give it.
        line: counted from 1.
        function: the qualified name of the function around it.
    """

    filename: str
    line: int
    function: str = ""

    @property
    def text(self) -> str:
        """The source line without its indentation; empty where the source is not at hand."""
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"
