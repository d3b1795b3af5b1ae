"""The variables of a frame by name, as ``locals()`` and debuggers see them."""

import sys
from collections.abc import Iterator, Mapping, MutableMapping
from types import CellType
from typing import TYPE_CHECKING, Any

from thunder_interpreter._decode import CO_OPTIMIZED
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins

if TYPE_CHECKING:
    from thunder_interpreter._frame import Frame

keep_builtins(globals())


class LocalsView(MutableMapping[str, Any]):
    """The variables of a function's frame, read and written through (as frames do since Python 3.13)."""

    def __init__(self, frame: "Frame") -> None:
        self._frame = frame
        self._extra: dict[str, Any] = {}

    def _index(self, key: str) -> int | None:
        names = self._frame.program.local_names
        return names.index(key) if key in names else None

    def __getitem__(self, key: str) -> Any:
        index = self._index(key)
        if index is None:
            return self._extra[key]
        return bound_variables(self._frame)[key]

    def __setitem__(self, key: str, value: Any) -> None:
        index = self._index(key)
        if index is None:
            self._extra[key] = value
            return
        slot = self._frame.locals[index]
        if is_cell(self._frame, index) and type(slot) is CellType:
            slot.cell_contents = value
        else:
            self._frame.locals[index] = value

    def __delitem__(self, key: str) -> None:
        if self._index(key) is not None:
            raise ValueError("cannot remove local variables from FrameLocalsProxy")
        del self._extra[key]

    def __iter__(self) -> Iterator[str]:
        yield from bound_variables(self._frame)
        yield from self._extra

    def __len__(self) -> int:
        return len(bound_variables(self._frame)) + len(self._extra)

    def __repr__(self) -> str:
        return repr(dict(self))

    def copy(self) -> dict[str, Any]:
        """A plain dictionary of the same."""
        return dict(self)

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self) | dict(other)


def is_cell(frame: "Frame", index: int) -> bool:
    """Whether the variable at ``index`` lives in a cell."""
    program = frame.program
    return index >= program.nlocals or program.local_names[index] in program.cell_arguments


def variable(frame: "Frame", index: int) -> Any:
    """The value of a variable, looked up in its cell if it has one; ``NULL`` when unbound."""
    value = frame.locals[index]
    if type(value) is CellType and is_cell(frame, index):
        try:
            return value.cell_contents
        except ValueError:
            return NULL
    return value


def bound_variables(frame: "Frame") -> dict[str, Any]:
    """The bound variables of a function's frame, by name."""
    found = {}
    for index, name in enumerate(frame.program.local_names):
        if index < len(frame.locals):
            value = variable(frame, index)
            if value is not NULL and not name.startswith("."):
                found[name] = value
    return found


def local_mapping(frame: "Frame") -> Any:
    """What ``locals()`` returns in ``frame``: the namespace, or a dictionary of the bound variables."""
    if frame.namespace is not None or not frame.program.flags & CO_OPTIMIZED:
        names = frame.globals if frame.namespace is None else frame.namespace
        hidden = bound_variables(frame) if frame.program.nlocals else None
        return {**names, **hidden} if hidden else names  # hidden: variables of inlined comprehensions
    if sys.version_info >= (3, 13):
        return LocalsView(frame)
    kept: dict[str, Any] = getattr(frame, "kept_locals", None) or {}
    bound = bound_variables(frame)
    for name in frame.program.local_names:
        kept.pop(name, None)
    kept.update(bound)
    frame.kept_locals = kept
    return kept
