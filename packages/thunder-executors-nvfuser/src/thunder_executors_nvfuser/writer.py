"""Writes the definition of a fusion as a Python program, which is what defines it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from thunder_executors_nvfuser.types import HALVES, type_text
from thunder_ir import DType, NumberProxy, Proxy, TensorProxy, dtypes


@dataclass(slots=True)
class Writer:
    """Collects the lines of a definition.

    Args:
        lines: those so far.
        names: what values of the region are called there.
        open: for sizes that only a call tells, the expression that reads them.
        flags: numbers that are not 0 where an index leads out of its tensor.
    """

    lines: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    open: dict[str, str] = field(default_factory=dict)
    flags: list[str] = field(default_factory=list)
    count: int = 0

    def line(self, expression: str, outputs: int = 1) -> list[str]:
        """Add a line that defines values; return their names."""
        made = [f"T{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.lines.append(f"{', '.join(made)} = {expression}")
        return made

    def call(self, operation: str, *arguments: str) -> str:
        """Add a call of an operation; return the name of its result."""
        return self.line(f"fd.ops.{operation}({', '.join(arguments)})")[0]

    def operand(self, value: Any) -> str:
        """Return how the definition writes an argument: the name of a value, or a number."""
        if isinstance(value, Proxy):
            if isinstance(value, NumberProxy) and value.name not in self.names:
                return self.size(value)
            return self.names[value.name]
        return number_text(int(value) if isinstance(value, bool) else value)

    def size(self, value: Any) -> str:
        """Return how the definition writes a size."""
        if not isinstance(value, NumberProxy):
            return str(int(value))
        if value.name not in self.names:
            self.names[value.name] = self.line(self.open[value.name])[0]
        return self.names[value.name]

    def integer(self, value: Any) -> str:
        """Return the name of an integer as a value of the definition, which it is given where it is none."""
        if isinstance(value, Proxy):
            return self.operand(value)
        return self.line(f"fd.define_scalar({int(value)}, dtype=DataType.Int)")[0]

    def sizes(self, shape: Any) -> str:
        """Return how the definition writes a shape."""
        return f"[{', '.join([self.size(d) for d in shape])}]"

    def wide(self, value: TensorProxy) -> str:
        """Return an operand of a reduction: of half precision, it is cast first."""
        name = self.operand(value)
        return self.cast(name, dtypes.float32) if value.dtype in HALVES else name

    def cast(self, name: str, dtype: DType) -> str:
        """Add a cast; return the name of its result."""
        return self.call("cast", name, type_text(dtype))


def number_text(value: Any) -> str:
    """Return a number as Python writes it; what it has no literal for is read from its text.

    Example:
        >>> from thunder_executors_nvfuser.writer import number_text
        >>> number_text(-float("inf")), number_text(2)
        ('float("-inf")', '2')
    """
    if isinstance(value, float) and (value != value or value in (float("inf"), -float("inf"))):
        return f'float("{value}")'
    return repr(value)


__all__ = ["Writer", "number_text"]
