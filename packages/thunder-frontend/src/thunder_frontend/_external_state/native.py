"""What is known of callables written in C: one record for each that is listed, and one for all others."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from thunder_ir import DuplicateRuleError


class Answer(Enum):
    """What the answer of a call depends on, besides its arguments."""

    UNKNOWN = auto()
    PURE = auto()  # nothing
    SETTLED = auto()  # what every program guards, or what programs do not depend on
    ASKED_AGAIN = auto()  # what other code may change: it is asked again before each call of the program
    OF_PROCESS = auto()  # what a process as a whole is set to: a sharp edge, which is not guarded
    VARIES = auto()  # it is another one on each call
    REFUSED = auto()  # what no guard could tell before a call, or what the compiler itself has a part in


@dataclass(frozen=True, slots=True)
class Native:
    """What is known of a callable written in C.

    Args:
        answer: what its answer depends on.
        fewest: with fewer arguments than that its answer is another one on each call.
        before: guards what it reads, before it runs.
        reads: guards what it read of an external container, once it has run; nothing else of that is guarded.
        calls: the special methods that it calls of objects in containers that it gets; ``None`` if it looks at none.
        searches: whether it need not look at all that a dict or a set holds.
        asks_objects: whether it is asked again of objects of other kinds than containers.
        writes: whether it changes the container that it is called for.
    """

    answer: Answer = Answer.UNKNOWN
    fewest: int = 0
    before: Callable[..., None] | None = None
    reads: Callable[..., None] | None = None
    calls: tuple[str, ...] | None = None
    searches: bool = False
    asks_objects: bool = False
    writes: bool = False


UNLISTED = Native()
_NATIVE: dict[Any, Native] = {}


def file(native: Native, *functions: Any) -> None:
    """Say what is known of functions: of callables, or of pairs of a module, which need not be there, and a name.

    Raises:
        DuplicateRuleError: something is said of one of them already.
    """
    for function in functions:
        if function in _NATIVE:
            raise DuplicateRuleError(f"of {function} something is said already: {_NATIVE[function]}")
        _NATIVE[function] = native


def file_named(native: Native, module: str, names: str) -> None:
    """Say what is known of functions of a module, which need not be there, by their names."""
    file(native, *[(module, name) for name in names.split()])


def hashable(fn: object) -> bool:
    """Whether a callable can be looked up in a table."""
    return type(fn).__hash__ is not None and not isinstance(fn, weakref.ref)  # which has the hash of what it refers to


def native_of(fn: object) -> Native:
    """Return what is known of a callable."""
    if not hashable(fn):
        return UNLISTED
    found = _NATIVE.get(fn)
    if found is not None:
        return found
    module, name = getattr(fn, "__module__", None), getattr(fn, "__name__", None)
    return _NATIVE.get((module, name), UNLISTED) if isinstance(module, str) and isinstance(name, str) else UNLISTED
