"""How operations are written in LLVM: a row per operation and family of dtypes; the first that fits wins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from thunder_executors_llvm.emitter import Emitter, Value
from thunder_executors_llvm.target import Target
from thunder_ir import DType, dtypes

Write = Callable[..., Value]
"""From the emitter and the operands to the result."""


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Dtypes that a row is for."""

    name: str
    dtypes: frozenset[DType]


def _family(name: str, *members: DType) -> Family:
    return Family(name, frozenset(members))


BOOL = _family("bool", dtypes.bool8)
UNSIGNED = _family("unsigned", dtypes.uint8)
SIGNED = _family("signed", dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
INTEGER = _family("integer", *UNSIGNED.dtypes, *SIGNED.dtypes)
EXACT = _family("exact", *BOOL.dtypes, *INTEGER.dtypes)
SINGLE = _family("single", dtypes.float32)
BRIEF = _family("brief", dtypes.bfloat16)
FLOATING = _family("floating", dtypes.float32, dtypes.float64)
ANY = _family("any", *EXACT.dtypes, *FLOATING.dtypes, dtypes.float16, dtypes.bfloat16)


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """How an operation is written.

    Args:
        family: the dtypes of its last operand that it is for; :data:`BRIEF` of operands and a result in ``float32``
            that were ``bfloat16`` and will be it.
        write: what writes it.
        missing: why it cannot be written for a target, or ``None``.
    """

    family: Family
    write: Write
    missing: Callable[[Target, DType], str | None] | None = None


class Rows:
    """The table, filled by ``lowering``."""

    def __init__(self) -> None:
        self._rows: dict[str, list[Row]] = {}

    def add(self, operation: str, row: Row) -> None:
        """File a row behind those of the same operation."""
        self._rows.setdefault(operation, []).append(row)

    def find(self, operation: str, dtype: DType, target: Target) -> Row | str:
        """Return the first row for an operation on a dtype, or why there is none."""
        reasons = []
        for row in self._rows.get(operation, ()):
            if dtype in row.family.dtypes:
                reason = row.missing(target, dtype) if row.missing is not None else None
                if reason is None:
                    return row
                reasons.append(reason)
        known = sorted({r.family.name for r in self._rows.get(operation, ())})
        return "; ".join(reasons) or f"{operation} of {dtype} is not written; it is of {', '.join(known) or 'no dtype'}"


ROWS = Rows()


def lowering(
    operation: str, family: Family, missing: Callable[[Target, DType], str | None] | None = None
) -> Callable[[Write], Write]:
    """File the decorated function as what writes an operation for a family of dtypes."""

    def register(write: Write) -> Write:
        ROWS.add(operation, Row(family, write, missing))
        return write

    return register


def instruction(name: str) -> Write:
    """Return what writes one instruction of two operands."""
    return lambda emit, a, b: emit.binary(name, a, b)


def predicate(name: str) -> Write:
    """Return what writes one comparison."""
    return lambda emit, a, b: emit.compare(name, a, b)


def intrinsic(name: str) -> Write:
    """Return what writes one call of an intrinsic function."""
    return lambda emit, *operands: emit.intrinsic(name, *operands)


def unchanged(emit: Emitter, a: Value) -> Value:
    """Write nothing."""
    return a
