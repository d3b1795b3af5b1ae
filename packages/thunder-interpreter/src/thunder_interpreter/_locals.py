"""The variables of a frame by name, as ``locals()`` and debuggers see them."""

import sys
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from types import CellType, FrameType
from typing import TYPE_CHECKING, Any, SupportsIndex

from thunder_interpreter._decode import CO_OPTIMIZED
from thunder_interpreter._null import NULL
from thunder_interpreter._pristine import keep_builtins

if TYPE_CHECKING:
    from thunder_interpreter._frame import Frame

keep_builtins(globals())


class FrameLocalsProxy(Mapping[str, Any]):
    """The variables of a function's frame, read and written through (as frames do since Python 3.13)."""

    __slots__ = ("_frame",)

    _frame: "Frame"

    def __init__(self, frame: "Frame", /) -> None:
        if not isinstance(frame, FrameType):
            raise TypeError(f"expect frame, not {type(frame).__name__}")
        self._frame = frame

    def _index(self, key: str) -> int | None:
        hash(key)
        names = self._frame.program.local_names
        return names.index(key) if key in names else None

    def _everything(self) -> dict[str, Any]:
        return {**bound_variables(self._frame), **self._frame.extra_locals}

    def __getitem__(self, key: str) -> Any:
        index = self._index(key)
        value = NULL if index is None else variable(self._frame, index)
        if value is NULL:
            if key in self._frame.extra_locals:
                return self._frame.extra_locals[key]
            raise KeyError(f"local variable '{key}' is not defined")
        return value

    def __setitem__(self, key: str, value: object) -> None:
        index = self._index(key)
        if index is None:
            self._frame.extra_locals = {**self._frame.extra_locals, key: value}
            return
        slot = self._frame.locals[index]
        if is_cell(self._frame, index) and type(slot) is CellType:
            slot.cell_contents = value
        else:
            self._frame.locals[index] = value

    def __delitem__(self, key: str) -> None:
        if self._index(key) is not None:
            raise ValueError("cannot remove local variables from FrameLocalsProxy")
        extra = {**self._frame.extra_locals}
        del extra[key]
        self._frame.extra_locals = extra

    def __iter__(self) -> Iterator[str]:
        return iter(self._everything())

    def __reversed__(self) -> list[str]:
        return self.keys()[::-1]

    def __len__(self) -> int:
        return len(self._everything())

    def __repr__(self) -> str:
        if id(self._frame) in SHOWING.get():
            return "{...}"
        token = SHOWING.set(SHOWING.get() | {id(self._frame)})
        try:
            return repr(self._everything())
        finally:
            SHOWING.reset(token)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        raise TypeError("cannot pickle 'FrameLocalsProxy' object")

    def keys(self) -> list[str]:  # type: ignore[override]
        """The names."""
        return [*self._everything()]

    def values(self) -> list[Any]:  # type: ignore[override]
        """The values."""
        return [*self._everything().values()]

    def items(self) -> list[tuple[str, Any]]:  # type: ignore[override]
        """The names with their values."""
        return [*self._everything().items()]

    def copy(self) -> dict[str, Any]:
        """A plain dictionary of the same."""
        return self._everything()

    def update(self, other: Any) -> None:
        """Set several."""
        if not hasattr(other, "keys"):
            raise TypeError("update() argument must be dict or another FrameLocalsProxy")
        for key in other.keys():  # noqa: SIM118 - it need not be a mapping
            self[key] = other[key]

    def pop(self, key: str, *default: Any) -> Any:
        """Remove a name that is no variable."""
        if self._index(key) is None and key not in self._frame.extra_locals and default:
            return default[0]
        value = self[key]
        del self[key]
        return value

    def setdefault(self, key: str, default: object = None) -> Any:
        """The value of a name, set first where it is not bound."""
        if key not in self:
            self[key] = default
        return self[key]

    def __or__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return self._everything() | dict(other)

    def __ror__(self, other: Mapping[str, Any]) -> dict[str, Any]:
        return dict(other) | self._everything()

    def __ior__(self, other: Mapping[str, Any]) -> "FrameLocalsProxy":
        self.update(other)
        return self


SHOWING: ContextVar[frozenset[int]] = ContextVar("SHOWING", default=frozenset())  # what is being made text of


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


THROUGH = sys.version_info >= (3, 13)  # variables are read and written through, and not copied


def inlined_variables(frame: "Frame") -> dict[str, Any]:
    """The bound variables of the comprehensions that are inlined in the body of a class or module."""
    own = frame.program.local_names[: frame.program.free]
    bound = bound_variables(frame)
    return {name: bound[name] for name in own if name in bound and not name.startswith("__")}


def local_mapping(frame: "Frame") -> Any:
    """What ``locals()`` returns in ``frame``: the namespace, or a dictionary of the bound variables."""
    if frame.namespace is not None or not frame.program.flags & CO_OPTIMIZED:
        names = frame.globals if frame.namespace is None else frame.namespace
        hidden = inlined_variables(frame) if frame.program.nlocals else None
        if hidden and THROUGH:
            return FrameLocalsProxy(frame)
        return {**names, **hidden} if hidden else names
    if THROUGH:
        return FrameLocalsProxy(frame)
    kept: dict[str, Any] = getattr(frame, "kept_locals", None) or {}
    bound = bound_variables(frame)
    for name in frame.program.local_names:
        kept.pop(name, None)
    kept.update(bound)
    frame.kept_locals = kept
    return kept
