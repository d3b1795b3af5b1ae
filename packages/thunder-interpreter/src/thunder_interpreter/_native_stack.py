"""The native stack below interpreted frames, and which of its frames are the interpreter's own."""

import sys
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any

from thunder_interpreter._pristine import keep_builtins

if TYPE_CHECKING:
    from thunder_interpreter._frame import BaseFrame

keep_builtins(globals())


def native_depth() -> int:
    """How deep the native stack is, as the recursion limit counts."""
    depth = 0
    native: FrameType | None = sys._getframe()
    while native is not None:
        depth += 1
        native = native.f_back
    return depth


ENTRY_CODES: set[CodeType] = set()


def native_frames(base: "BaseFrame") -> Iterator[Any]:
    """The native frames outside this package through which the interpreter was entered, innermost first."""
    native: FrameType | None = base.native
    while native is not None:
        native = native.f_back
        if native is not None and native.f_code in ENTRY_CODES and base.back is not None:
            return
        if native is not None and not own(native):
            yield native


def own(native: Any) -> bool:
    """Whether a native frame belongs to the interpreter itself."""
    return str(native.f_globals.get("__name__", "")).startswith("thunder_interpreter")


def strip(traceback: TracebackType | None) -> TracebackType | None:
    """Drop the interpreter's own entries from the head of a traceback."""
    while traceback is not None and own(traceback.tb_frame):
        traceback = traceback.tb_next
    return traceback
