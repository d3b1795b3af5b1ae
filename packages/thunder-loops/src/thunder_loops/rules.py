"""The table of how prims become statements. One row, or one small function, per prim; nothing else knows a prim."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from thunder_ir import BoundSymbol, Symbol, TensorProxy
from thunder_ir.rules import RuleTable
from thunder_loops.index import Index

Place = tuple[Index, ...]
"""An index per dimension of a tensor."""

Request = tuple[TensorProxy, Place] | tuple[TensorProxy, Place, str]
"""What a rule asks for: the element of a tensor at a place, and the condition under which the tensor has that place.

Where the condition is left out, it is the one under which the rule itself is asked.
"""

Elements = Generator[Request, str, str]
"""What a rule returns: it yields requests, is sent the names of values, and returns the name of its own."""

Rule = Callable[..., Elements]
"""Takes the builder of statements, the call, the output that is wanted and the place in it."""

lowering: RuleTable[Symbol, Rule] = RuleTable("lowering", "@lowering")
"""From prims to the rules that write their elements as statements."""


class CannotLower(Exception):
    """Raised by a rule for a call that no loop nest stands for; the message says why."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a rule is asked for.

    Args:
        bound: the call.
        output: which of its outputs.
        place: where in it.
    """

    bound: BoundSymbol
    output: TensorProxy
    place: Place

    @property
    def args(self) -> tuple[Any, ...]:
        """The arguments of the call."""
        return self.bound.args
