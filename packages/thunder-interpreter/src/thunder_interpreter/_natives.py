"""What is known of callables in C: one record for each that is listed, and one for all others.

A record says what the callable runs without being interpreted, and how it is run in a way of the interpreter's own.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from types import BuiltinFunctionType, MethodDescriptorType, MethodType, ModuleType
from typing import Any, TypeVar

from thunder_interpreter._machine import Special
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._types import descriptor_of

keep_builtins(globals())

S = TypeVar("S", bound=Special)


class Runs(Enum):
    """What a callable in C runs by itself: code that is not interpreted."""

    ANYTHING = auto()  # whatever it gets, and what that holds
    SPECIAL_METHODS = auto()  # those of what it gets
    KEYS = auto()  # what compares keys, of a dict or a set that it gets first
    REGISTERED = auto()  # also what was registered for it, which it does not get
    NOTHING = auto()  # nothing of what it gets, or nothing that would not be interpreted


ANYTHING, SPECIAL_METHODS, KEYS, REGISTERED, NOTHING = Runs


@dataclass(frozen=True, slots=True)
class Native:
    """What is known of a callable in C.

    Args:
        runs: what it runs by itself.
        special: how it is called; ``None`` if natively.
    """

    runs: Runs = ANYTHING
    special: Special | None = None


UNLISTED = Native()
NATIVES: dict[Any, Native] = {}
KINDS = frozenset({BuiltinFunctionType, MethodDescriptorType, type})
"""Types of callables that records are looked up for; no code of the user's runs when these are hashed."""
OWNERS = (list, tuple, dict, set, frozenset, str, bytes)
"""Classes whose methods have records."""
METHODS: dict[Any, Any] = {owner: vars(owner) for owner in OWNERS}


def native_of(fn: Any) -> Native:
    """What is known of a callable; of a bound method in C, what is known of its descriptor."""
    if type(fn) is BuiltinFunctionType:
        owner = fn.__self__
        methods = METHODS.get(type(owner))
        if methods is not None:
            return NATIVES.get(methods.get(fn.__name__), UNLISTED)
        if type(owner) is not ModuleType and isinstance(owner, OWNERS):
            fn = descriptor_of(owner, fn.__name__)
    return NATIVES.get(fn, UNLISTED) if type(fn) in KINDS else UNLISTED


def file(native: Native, *callables: Any) -> None:
    """Say what is known of callables in C.

    Raises:
        ValueError: something is said of one of them already.
    """
    for fn in callables:
        if fn in NATIVES:
            raise ValueError(f"of {fn!r} something is said already: {NATIVES[fn]}")
        NATIVES[fn] = native


def replaces(*natives: Any, runs: Runs = ANYTHING) -> Callable[[S], S]:
    """Say that the decorated function is what calls of callables in C do.

    Args:
        natives: the callables.
        runs: what they run where it has them called natively.

    Returns:
        a decorator, which returns the function itself.
    """

    def register(special: S) -> S:
        file(Native(runs, special), *natives)
        return special

    return register


file(
    Native(NOTHING),
    id, callable, functools.partial, MethodType, list.append, list.insert, list.clear, list.reverse, list.copy,
    dict.keys, dict.values, dict.items, dict.clear, set.clear, set.copy, frozenset.copy,
)  # fmt: skip
file(
    Native(SPECIAL_METHODS),
    bytes, complex, divmod, float, int, pow, print, range, round, slice,
)  # fmt: skip
file(
    Native(KEYS),
    dict.get, dict.pop, dict.__contains__, set.add, set.discard, set.pop, set.__contains__,
)  # fmt: skip
file(Native(REGISTERED), str.encode, bytes.decode)
