"""A log of what was interpreted and what was called natively, with source lines."""

import dis
import linecache
from types import CodeType, FunctionType
from typing import Any


class Log:
    """Entries in order; ``str(log)`` is the text.

    Attributes:
        entries: ``(depth, kind, what, file, line)``; ``kind`` is ``"interpreted"`` or ``"opaque"``, the place is where
            the call is.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[int, str, str, str, int]] = []
        self._ran: list[tuple[CodeType, int]] = []

    @property
    def instructions(self) -> list[dis.Instruction]:
        """Every instruction that was run, in order, as often as it was; those that do nothing are left out."""
        known: dict[CodeType, dict[int, dis.Instruction]] = {}
        for code, _ in self._ran:
            if code not in known:
                known[code] = {i.offset: i for i in dis.get_instructions(code)}
        return [known[code][offset] for code, offset in self._ran]

    def ran(self, code: CodeType, offset: int) -> None:
        """The instruction at an offset, in bytes, of some code is run."""
        self._ran.append((code, offset))

    def entered(self, frame: object, fn: FunctionType) -> None:
        """An interpreted function is entered from ``frame``."""
        self._add(frame, "interpreted", f"{fn.__module__}.{fn.__qualname__}")

    def called(self, frame: object, fn: object) -> None:
        """Something is called natively from ``frame``."""
        self._add(frame, "opaque", describe(fn))

    def _add(self, frame: Any, kind: str, what: str) -> None:
        depth = frame.depth
        while frame is not None and not hasattr(frame, "function"):
            frame = frame.back
        if frame is None:
            self.entries.append((depth, kind, what, "", 0))
        else:
            self.entries.append((depth, kind, what, frame.f_code.co_filename, frame.f_lineno or 0))

    def __str__(self) -> str:
        lines = []
        outermost = min([entry[0] for entry in self.entries], default=0)
        for depth, kind, what, filename, line in self.entries:
            source = linecache.getline(filename, line).strip()
            where = f"  # {filename}:{line}: {source}" if line else ""
            lines.append(f"{'  ' * (depth - outermost)}{kind} {what}{where}")
        return "\n".join(lines)


def describe(fn: object) -> str:
    """A readable name of a callable."""
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    module = getattr(fn, "__module__", None)
    return f"{module}.{name}" if isinstance(module, str) else str(name)
