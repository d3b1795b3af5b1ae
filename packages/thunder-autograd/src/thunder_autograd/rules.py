"""The tables of derivative rules, and what a rule looks like."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from thunder_ir import RuleTable, Symbol


class Zero(Enum):
    """What a pullback returns for an argument whose gradient exists and is zero everywhere."""

    ZERO = "zero"


ZERO: Final = Zero.ZERO


@dataclass(frozen=True, slots=True)
class Through:
    """A pullback of an operation some of whose outputs have no derivative.

    Args:
        pullback: as :data:`Pullback`; the cotangents of these outputs are ``None``.
        outputs: for each tensor that the operation returns, and each ``None`` beside them, whether it has a derivative.
    """

    pullback: Callable[..., Any]
    outputs: tuple[bool, ...]

    def __call__(self, *cotangents: Any) -> Any:
        return self.pullback(*cotangents)


Pullback = Callable[..., Any]
"""From the cotangents of a symbol's output tensors, in order, to the gradients of its positional arguments, in order.

A single gradient needs no tuple; gradients of trailing arguments may be left out; ``None`` stands where there is none.
:data:`ZERO` stands for zeros, which nothing computes with: they are made where such a gradient is asked for.
The gradient of an argument that is a sequence of tensors is a tuple of that length. Where a symbol has several outputs,
the cotangent of an output that nothing depends on is ``None``, and so is that of an output that is ``None`` itself.
"""

VjpRule = Callable[..., tuple[Any, Pullback]]
"""Takes the symbol's arguments; returns its output and the pullback, a closure over what must be saved.

Tensors among the arguments have ``requires_grad`` where their gradient is wanted; others may be left out."""

JvpRule = Callable[..., tuple[Any, Any]]
"""Takes the symbol's positional arguments, then one tangent for each (``None`` where it is zero or has none), then its
keyword arguments; returns the output and its tangent (``None`` where zero), for several outputs a tuple of tangents."""

vjp_rule: RuleTable[Symbol, VjpRule] = RuleTable("vjp", "@vjp_rule")
jvp_rule: RuleTable[Symbol, JvpRule] = RuleTable("jvp", "@jvp_rule")
