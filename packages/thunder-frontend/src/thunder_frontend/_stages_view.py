"""What a terminal shows of a compilation: its stages, each with its seconds, by rich; loaded when there is a need."""

from __future__ import annotations

from typing import TextIO

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from thunder_frontend._progress import Stages

TURNING = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class View:
    """A table of stages at the bottom of a terminal.

    Nothing of ``sys`` is replaced meanwhile, as rich would do: the program that is compiled may look at it.

    Args:
        name: of what is compiled.
        stream: the terminal.
    """

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name, self._turns = name, 0
        self._live = Live(
            console=Console(file=stream, highlight=False), auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._live.start()
        self._live.console.show_cursor()  # a process that is killed meanwhile leaves it as it was

    def show(self, stages: Stages, seconds: float) -> None:
        """Show the stages as they are, and the seconds of all."""
        self._turns += 1
        self._live.update(self.table(stages, seconds), refresh=True)

    def table(self, stages: Stages, seconds: float) -> Table:
        """Return the stages as a table: those that are over, and the one that has begun last."""
        made = Table.grid("", "", "", padding=(0, 1))
        made.add_row("", f"thunder compiles [bold]{escape(self._name)}[/]", f"{seconds:.0f} s")
        for stage, took in stages.over():
            made.add_row("[green]✓[/]", f"[dim]{stage}[/]", f"[dim]{took:.1f} s[/]")
        stage, took = stages.now()
        made.add_row(f"[cyan]{TURNING[self._turns % len(TURNING)]}[/]", stage, f"{took:.1f} s")
        return made

    def end(self) -> None:
        """Take it away."""
        self._live.stop()
