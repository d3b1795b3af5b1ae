"""Which operations a program is made of, and how each is understood."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from thunder_frontend import jit, last_traces
from thunder_ir import BoundSymbol
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
class OperationsReport:
    """What :func:`examine` found.

    Args:
        operations: by falling count.
        problem: why the program could not be acquired; ``None`` if it could.
    """

    operations: tuple[Operation, ...]
    problem: str | None = None

    def print(self) -> None:
        """Print the operations as a table, or the problem."""
        console = Console()
        if self.problem is not None:
            console.print(f"The program cannot be acquired: {self.problem}")
            return
        table = Table("operation", "calls", "understood as")
        for operation in self.operations:
            table.add_row(operation.name, str(operation.count), "composed" if operation.composed else "opaque")
        console.print(table)


def examine(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> OperationsReport:
    """Say whether Thunder can compile a callable for these arguments, and what the program is made of.

    The callable is called once, without gradients.

    Args:
        fn: a function or module.
        args, kwargs: of the call.

    Example:
        >>> import torch
        >>> from thunder_examine import examine
        >>> [(o.name, o.count, o.composed) for o in examine(lambda x: (x * 2 + 1) * 3, torch.ones(2)).operations]
        [('ltorch.mul', 2, True), ('ltorch.add', 1, True)]
    """
    compiled = jit(fn, fallback="error")
    try:
        with torch.no_grad():
            compiled(*args, **kwargs)
    except Exception as error:  # whatever it is, it is the answer
        return OperationsReport((), f"{type(error).__name__}: {error}")
    known = set(SYMBOLS.values())
    bound = last_traces(compiled)[0].bound_symbols
    counts = Counter(b.symbol.id for b in bound)
    composed = {b.symbol.id: _is_composed(b, known) for b in bound}
    return OperationsReport(tuple(Operation(name, count, composed[name]) for name, count in counts.most_common()))


def _is_composed(bound: BoundSymbol, known: set[Any]) -> bool:
    return bound.symbol in known or bound.symbol.is_prim
