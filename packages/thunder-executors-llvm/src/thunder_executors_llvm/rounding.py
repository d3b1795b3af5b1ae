"""What is known of values before they are written: how their NaNs look, and what is rounded to ``bfloat16`` at once."""

from __future__ import annotations

from collections.abc import Sequence

from thunder_ir import DType, dtypes
from thunder_loops import Compute, Constant, Load, Position, Reduce, Scan, Statement, Store, reads

PASSES_ON = frozenset({
    "abs", "add", "ceil", "copysign", "div", "floor", "maximum", "minimum", "mul", "neg", "reciprocal", "round", "rsqrt",
    "sqrt", "sub", "to", "trunc", "where",
})  # fmt: skip
"""Operations whose NaN is that of an operand, quiet, or the one that the machine makes itself."""


def with_short_nans(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the values none of whose NaNs has a bit among the lowest 16 of ``float32``.

    Rounding one to ``bfloat16`` by adding to its bits leaves it a NaN, so nothing has to look for it. Those that are read
    from memory as ``float32`` may have any bits, and so may those that functions return.
    """
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, Store):
            continue
        if isinstance(statement, Load):
            short = not _is_wide(statement.dtype)
        elif isinstance(statement, Constant):
            short = statement.value == statement.value
        elif isinstance(statement, Compute):
            short = not _is_wide(statement.dtype) or (
                statement.operation in PASSES_ON and found.issuperset(statement.operands)
            )
        else:
            assert isinstance(statement, (Position, Reduce, Scan)), statement
            short = found.issuperset(reads(statement))
        if short:
            found.add(statement.name)
    return frozenset(found)


def _is_wide(dtype: DType) -> bool:
    """Whether a NaN of a dtype can have bits that ``bfloat16`` has no room for."""
    return dtype.is_floating and dtype is not dtypes.bfloat16


def rounded_at_once(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the values computed from ``bfloat16`` that are rounded to it before anything else reads them."""
    named = {s.name: s for s in statements if not isinstance(s, Store)}
    readers: dict[str, list[Statement]] = {}
    for statement in statements:
        for name in reads(statement):
            readers.setdefault(name, []).append(statement)

    def widens(name: str) -> bool:
        made = named[name]
        return isinstance(made, Compute) and made.operation == "to" and _is_narrow(named[made.operands[0]])

    def rounds(reader: Statement) -> bool:
        return isinstance(reader, Compute) and reader.operation == "to" and _is_narrow(reader)

    return frozenset([
        s.name
        for s in statements
        if isinstance(s, Compute) and all(map(widens, s.operands)) and all(map(rounds, readers.get(s.name, ())))
    ])  # fmt: skip


def _is_narrow(statement: Statement) -> bool:
    return not isinstance(statement, Store) and statement.dtype is dtypes.bfloat16
