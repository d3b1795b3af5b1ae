"""What a compiled function keeps between its forward and its backward program."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

from thunder_autograd import Decision
from thunder_examine.tables import table
from thunder_frontend import compiled_function
from thunder_ir import TensorProxy, Trace


@dataclass(frozen=True, slots=True)
class SavedReport:
    """The values that a backward program needs, and what becomes of each.

    Args:
        decisions: one per value: saved or computed again, its bytes, and why.
    """

    decisions: tuple[Decision, ...]

    @property
    def saved_bytes(self) -> int:
        """Bytes kept beyond inputs and outputs."""
        return sum(d.bytes for d in self.decisions if d.saved)

    @property
    def recomputed_bytes(self) -> int:
        """Bytes that are not kept because their values are computed again."""
        return sum(d.bytes for d in self.decisions if not d.saved)

    def table(self, most: int | None = None) -> Table:
        """Return the decisions as a table, the largest first.

        Args:
            most: how many rows at most.
        """
        title = f"{self.saved_bytes:,} bytes saved, {self.recomputed_bytes:,} bytes computed again"
        rows = [
            (d.name, d.type_string, f"{d.bytes:,}", "saved" if d.saved else "recomputed", d.operation, d.why)
            for d in sorted(self.decisions, key=lambda d: (-d.bytes, d.name))[:most]
        ]
        return table(("value", "type", "bytes", "what", "operation", "why"), rows, title)

    def print(self, most: int | None = None) -> None:
        """Print the table."""
        Console().print(self.table(most))

    def __str__(self) -> str:
        text = io.StringIO()
        Console(file=text, width=160).print(self.table())
        return text.getvalue()


def get_saved_for_backward_tensors(trace: Trace) -> tuple[TensorProxy, ...]:
    """Return the tensors that a forward program keeps for its backward program.

    Args:
        trace: a stage of a forward program, such as ``last_traces(fn)[-1]`` of a call with gradients.

    Returns:
        in the order in which the backward program takes them, inputs of the program among them.

    Raises:
        ValueError: it is no forward program.

    Example:
        >>> import torch
        >>> from thunder_examine import get_saved_for_backward_tensors
        >>> from thunder_frontend import jit, last_traces
        >>> compiled = jit(lambda x: x.sin())
        >>> _ = compiled(torch.ones(2, requires_grad=True))
        >>> get_saved_for_backward_tensors(last_traces(compiled)[-1])
        (<TensorProxy a0: float32[2]>,)
    """
    if not trace.name.endswith("_forward"):
        raise ValueError(f"{trace.name} is no forward program: there is one for calls whose results require gradients")
    _, saved = trace.output
    return tuple([p for p in saved if isinstance(p, TensorProxy)])


def saved_for_backward(fn: Callable[..., Any]) -> SavedReport:
    """Return what the specialisation that a compiled function compiled last saves for its backward program.

    Args:
        fn: what ``thunder.jit`` returned, after a call with gradients.

    Raises:
        TypeError: ``fn`` was not compiled.
        RuntimeError: it was not called yet, or not with gradients.

    Example:
        >>> import torch
        >>> from thunder_examine import saved_for_backward
        >>> from thunder_frontend import jit
        >>> compiled = jit(lambda x: x.sin().exp())
        >>> _ = compiled(torch.ones(8, requires_grad=True))
        >>> {d.type_string for d in saved_for_backward(compiled).decisions}
        {'float32[8]'}
    """
    compiled = compiled_function(fn).compiled
    if not compiled:
        raise RuntimeError("the function was not called yet, so nothing is compiled")
    if compiled[-1].computation.split is None:
        raise RuntimeError("the last specialisation has no backward program: call it with something that requires grad")
    return SavedReport(compiled[-1].computation.split.decisions)
