"""Which of ``torch.func``'s transforms the program is inside of, and from where on the trace is recorded for each.

PyTorch wraps tensors for each level and gives every operation to the levels in turn. Here operations are recorded as
always, and a level does its work on the part of the trace that was recorded within it: see :mod:`batch_levels` and
:mod:`derivative_levels`. What PyTorch has in Python around its levels (checks of arguments, pytrees, chunks, the bases
of Jacobians) is interpreted as the user's code is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from thunder_guards.errors import AcquisitionError
from thunder_guards.program import Input
from thunder_ir import BoundSymbol, Builder, OpTags, Symbol, TensorProxy, flat_proxies
from thunder_tracing.tensors.traced_tensor import TracedTensor

MARK = Symbol("level", "functorch")
"""A call without arguments and results, which stands in the trace where a level begins."""


@dataclass(slots=True, eq=False)
class Level:
    """One transform that the program is inside of.

    Args:
        number: of levels, this one included.
        mark: the call that stands where it begins.
        tracked: whether autograd recorded what was done outside of it.
    """

    number: int
    mark: BoundSymbol
    tracked: bool
    levels: Levels

    def check_write(self, target: TracedTensor, held: TensorProxy, value: TensorProxy, by_operator: bool) -> None:
        """Refuse to write ``value`` to ``target``, which holds ``held``, within this level, if need be.

        Args:
            target, held, value: see above.
            by_operator: whether an operator does that by itself, to running statistics say.
        """

    def made(self, tensor: TracedTensor) -> bool:
        """Whether the memory of a tensor was made within this level."""
        name = tensor._memory.root._first.name
        return any([p.name == name for b in self.levels.recorded[self.levels.start(self) :] for p in b.outputs])

    def check_recorded(self, bound_symbols: Sequence[BoundSymbol]) -> None:
        """Refuse calls that were just recorded within this level, if need be."""


L = TypeVar("L", bound=Level)


class Levels:
    """The levels that the program is inside of, outermost first.

    Args:
        builder: of the trace in the making.
        inputs: of the program in the making.
        changed: told that a level begins, and that recorded calls were replaced by others.
    """

    def __init__(self, builder: Builder, inputs: Sequence[Input], changed: Callable[[], None]) -> None:
        self._builder, self._inputs, self._changed = builder, inputs, changed
        self.rewrites = 0
        self.stack: list[Any] = []
        self.gone: set[str] = set()
        """Names of values that only existed for one example of a batch."""

    @property
    def recorded(self) -> list[BoundSymbol]:
        """All calls of the program so far."""
        return self._builder.bound_symbols

    def enter(self, cls: type[L], **details: Any) -> L:
        """Begin a level."""
        self._changed()
        mark = BoundSymbol(MARK, (), {}, None)
        level = cls(len(self.stack) + 1, mark, torch.is_grad_enabled(), self, **details)
        self.stack.append(level)
        self.recorded.append(mark)
        return level

    def leave(self, level: Level) -> list[BoundSymbol]:
        """End a level and those within it; return the calls that were recorded within."""
        while self.stack and self.stack[-1] is not level:
            self.leave(self.stack[-1])
        start = self.start(level)
        inside = self.recorded[start:]
        self.rewrite(start - 1, inside)
        self.stack.pop()
        return inside

    def rewrite(self, start: int, bound_symbols: Sequence[BoundSymbol]) -> None:
        """Replace the calls recorded from an index on."""
        self.recorded[start:] = bound_symbols
        self.rewrites += 1
        self._changed()

    def requiring_grad(self, end: int | None = None) -> dict[str, bool]:
        """Return for the results of the calls so far, or up to an index, and all inputs whether they require grad.

        What rules are given in place of these says only whether the derivative in question goes through it.
        """
        found = {i.proxy.name: i.proxy.requires_grad for i in self._inputs}
        for bound in self.recorded[:end]:
            found.update([(p.name, p.requires_grad) for p in bound.outputs if isinstance(p, TensorProxy)])
        return found

    def start(self, level: Level) -> int:
        """Return the index of the first call recorded within a level."""
        recorded = self.recorded
        return next(i + 1 for i in range(len(recorded) - 1, -1, -1) if recorded[i] is level.mark)

    def innermost(self, cls: type[Level]) -> Any:
        """Return the innermost level of a kind, or ``None``."""
        return next((level for level in reversed(self.stack) if isinstance(level, cls)), None)

    def numbered(self, number: int) -> Any:
        """Return the level of a number.

        Raises:
            AcquisitionError: the program has left it.
        """
        if not 1 <= number <= len(self.stack):
            raise AcquisitionError("a tensor is used after the torch.func transform that it was made for has ended")
        return self.stack[number - 1]

    def check_write(self, target: TracedTensor, held: TensorProxy, value: TensorProxy, by_operator: bool) -> None:
        """Refuse to write ``value`` to ``target``, which holds ``held``, if need be."""
        for level in self.stack:
            level.check_write(target, held, value, by_operator)

    def check_recorded(self, bound_symbols: Sequence[BoundSymbol]) -> None:
        """Refuse calls that were just recorded, if need be."""
        for level in self.stack:
            level.check_recorded(bound_symbols)

    def check(self, tree: object) -> None:
        """Refuse values that only existed for one example of a batch.

        Raises:
            AcquisitionError: there is one.
        """
        if not self.gone.isdisjoint([p.name for p in flat_proxies(tree)]):
            raise AcquisitionError(
                "a tensor that torch.vmap made for one example left the function by another way than its results, or "
                "is a view that was written; return it, or a clone() of it"
            )


def settle_gradients(bound_symbols: Iterable[BoundSymbol], known: dict[str, bool], keep: bool = False) -> None:
    """Say of each result whether it requires grad, by what it is computed from.

    Args:
        bound_symbols: calls, in order.
        known: for what is computed before them whether it requires grad, by name; gets the results.
        keep: leave those that do not require grad as they are.
    """
    for bound in bound_symbols:
        flows = not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) and any(
            [known.get(p.name, p.requires_grad) for p in bound.inputs if isinstance(p, TensorProxy)]
        )
        for proxy in bound.outputs:
            if isinstance(proxy, TensorProxy):
                told = proxy.requires_grad or not keep
                proxy.requires_grad = known[proxy.name] = flows and told and proxy.dtype.is_inexact
