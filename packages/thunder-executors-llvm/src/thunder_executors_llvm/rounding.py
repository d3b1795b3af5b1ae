"""What is known of values before they are written: how their NaNs look, and what is rounded to ``bfloat16`` at once."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from thunder_executors_llvm.emitter import bfloat16_bits, literal
from thunder_ir import DType, dtypes
from thunder_loops import Compute, Constant, Load, Position, Reduce, Scan, Statement, Store, reads

PASSES_ON = frozenset({
    "abs", "add", "ceil", "copysign", "div", "floor", "maximum", "minimum", "mul", "neg", "reciprocal", "round",
    "rsqrt", "sqrt", "sub", "to", "trunc", "where",
})  # fmt: skip
"""Operations whose NaN is that of an operand, quiet, or the one that the machine makes itself."""

CHOOSING = frozenset({"abs", "ceil", "copysign", "floor", "maximum", "minimum", "neg", "round", "trunc", "where"})
"""Operations of ``bfloat16`` whose result it has."""


def with_short_nans(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the values none of whose NaNs has a bit among the lowest 16 of ``float32``.

    Rounding one to ``bfloat16`` by adding to its bits leaves it a NaN, so nothing has to look for it. Those that are
    read from memory as ``float32`` may have any bits, and so may those that functions return.
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


def exact(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the values of ``float32`` that ``bfloat16`` has: those of it, and what is chosen among them."""
    found: set[str] = set()
    narrow: set[str] = set()
    for statement in statements:
        if isinstance(statement, Store):
            continue
        if statement.dtype is dtypes.bfloat16:
            narrow.add(statement.name)
        if isinstance(statement, Constant):
            known = literal(statement.value, dtypes.float32) == literal(_rounded(statement.value), dtypes.float32)
        elif isinstance(statement, Compute) and statement.operation == "to":
            known = statement.operands[0] in narrow
        elif isinstance(statement, Compute):
            chosen = statement.operands[1:] if statement.operation == "where" else statement.operands
            known = statement.operation in CHOOSING and found.issuperset(chosen)
        else:
            extremum = isinstance(statement, Reduce) and statement.operation in ("max", "min")
            known = extremum and found.issuperset(reads(statement))
        if known and statement.dtype is dtypes.float32:
            found.add(statement.name)
    return frozenset(found)


def rounded_at_once(statements: Sequence[Statement]) -> frozenset[str]:
    """Return the values computed from ``bfloat16`` that are rounded to it before anything else reads them.

    So is a factor of what it is computed from: ``x * sigmoid(x)`` is a function of one ``bfloat16`` as well.
    """
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

    def scales(made: Compute, reader: Statement) -> bool:
        if not isinstance(reader, Compute) or reader.operation != "mul" or len(made.operands) != 1:
            return False
        return {*reader.operands} == {made.name, *made.operands} and all(map(rounds, readers.get(reader.name, ())))

    def is_brief(made: Statement) -> bool:
        if not isinstance(made, Compute) or not all(map(widens, made.operands)):
            return False
        return all([rounds(reader) or scales(made, reader) for reader in readers.get(made.name, ())])

    return frozenset([s.name for s in statements if isinstance(s, Compute) and is_brief(s)])


def _is_narrow(statement: Statement) -> bool:
    return not isinstance(statement, Store) and statement.dtype is dtypes.bfloat16


def _rounded(number: float) -> float:
    """Return the ``bfloat16`` nearest to a number."""
    (found,) = struct.unpack("f", struct.pack("I", bfloat16_bits(number) << 16))
    return float(found)
