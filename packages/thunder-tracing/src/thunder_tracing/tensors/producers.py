"""Which calls of a program in the making produce which values."""

from __future__ import annotations

from collections.abc import Sequence

from thunder_ir import BoundSymbol, Builder


class Producers:
    """Finds the call that produced a value; each call is looked at once, unless others are put in its place.

    Args:
        builder: of the trace in the making.
    """

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._found: dict[str, BoundSymbol] = {}
        self._end = 0
        self._last: BoundSymbol | None = None

    def __call__(self) -> dict[str, BoundSymbol]:
        """Return the calls by the names of the values."""
        recorded = self._builder.bound_symbols
        if self._end and (len(recorded) < self._end or recorded[self._end - 1] is not self._last):
            self._end = 0  # something was put between, or taken out
        for bound in recorded[self._end :]:
            self._found.update([(p.name, bound) for p in bound.outputs])
        self._end, self._last = len(recorded), recorded[-1] if recorded else None
        return self._found

    def rewritten(self) -> None:
        """Take note that calls were put in the place of others."""
        self._end = 0

    def keep(self, bound_symbols: Sequence[BoundSymbol]) -> None:
        """Find the values of calls that are taken out of the trace, too: layouts of others follow from theirs."""
        self._found.update([(p.name, bound) for bound in bound_symbols for p in bound.outputs])
