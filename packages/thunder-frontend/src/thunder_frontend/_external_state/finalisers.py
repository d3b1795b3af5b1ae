"""What runs when an object dies: refused for objects of the program's own, which die while it is acquired."""

from __future__ import annotations

import types
import weakref
from collections.abc import Sequence
from typing import Any

from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import held_by_class
from thunder_interpreter import does_nothing

OF_THE_LIBRARY = frozenset({"weakref", "_weakrefset"})
"""Modules whose weak references call something that keeps their own containers in order."""

OF_CLASSES_IN_C = (types.WrapperDescriptorType, types.MethodDescriptorType)
"""What the finalisers of files and generators are."""


def refuse_finaliser(cls: type) -> None:
    """Refuse objects of a class with a ``__del__`` that does something, which no later call would do.

    Raises:
        AcquisitionError: the class has one.
    """
    finaliser = held_by_class(cls, "__del__")
    if finaliser is not None and not isinstance(finaliser, OF_CLASSES_IN_C) and _does_something(finaliser):
        raise AcquisitionError(
            f"the program makes a {cls.__qualname__}, whose __del__ runs when it is gone: once, while the program is "
            "compiled, and not on later calls; make it outside of the program, or call what __del__ does by name"
        )


def _does_something(finaliser: object) -> bool:
    return not isinstance(finaliser, types.FunctionType) or not does_nothing(finaliser.__code__)


def refuse_callback(fn: object, args: Sequence[Any]) -> None:
    """Refuse a weak reference that calls a function of the user's when its object dies.

    Args:
        fn: what is called.
        args: with what.

    Raises:
        AcquisitionError: it makes such a reference.
    """
    if isinstance(fn, type) and issubclass(fn, weakref.ref) and len(args) > 1 and args[1] is not None:
        callback = args[1]
        if getattr(callback, "__module__", None) not in OF_THE_LIBRARY:
            raise AcquisitionError(
                f"the program makes a weak reference that calls {getattr(callback, '__qualname__', callback)}() when "
                "its object is gone: while the program is compiled, and not on later calls; make it outside"
            )
