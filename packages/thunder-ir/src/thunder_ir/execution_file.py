"""A file that each program is written to and read from before it runs, so that a person can change it by hand."""

from __future__ import annotations

import ast
import sys
from contextvars import ContextVar
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from thunder_ir.codegen import Source

_FILE: ContextVar[Path | None] = ContextVar("execution_file", default=None)


def set_execution_callback_file(path: str | PathLike[str] | None) -> None:
    """Write the text of each program to a file before it is compiled, and compile what the file then holds.

    Where standard input is a terminal, compilation waits for the Enter key, so that the file can be edited: a line
    that prints a value, another operation, a breakpoint. Elsewhere the file is read back at once. A function that has
    gradients compiles two programs, one after the other: ``computation_forward`` and ``computation_backward``.

    What the text calls but does not import stands for what the comments at its top say. Programs that were compiled
    before stay as they are. It holds for the calling thread.

    Args:
        path: of the file, which is overwritten; ``None`` ends it.

    Raises:
        SyntaxError: when a program is compiled: the file holds no Python.
        NameError: when a program is compiled: the file no longer defines the function.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from thunder_ir import IntegerProxy, record, set_execution_callback_file
        >>> path = Path(tempfile.mkdtemp()) / "program.py"
        >>> set_execution_callback_file(path)
        >>> identity = record(lambda a: a, [IntegerProxy(7, "a")]).python_callable()
        >>> set_execution_callback_file(None)
        >>> print(path.read_text().strip())
        def program(a: "int"):
            return a
    """
    _FILE.set(None if path is None else Path(path))


def is_edited() -> bool:
    """Whether programs are written to a file before they are compiled, for a person to change."""
    return _FILE.get() is not None


def as_edited(source: Source) -> Source:
    """Return a program as its reader leaves it in the file that :func:`set_execution_callback_file` names, if any."""
    path = _FILE.get()
    if path is None:
        return source
    path.write_text("\n".join([*source.import_lines, "", source.text]).lstrip("\n"), encoding="utf-8")
    if sys.stdin is not None and sys.stdin.isatty():
        input(f"{path.resolve()} holds the program {source.name!r}. Edit it if you like; Enter compiles it: ")
    text = path.read_text(encoding="utf-8")
    defined = [node.name for node in ast.parse(text, str(path)).body if isinstance(node, ast.FunctionDef)]
    if source.name not in defined:
        raise NameError(f"{path} must define the function {source.name!r}, and defines {', '.join(defined) or 'none'}")
    return replace(source, text=text)
