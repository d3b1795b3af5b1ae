"""Objects of the standard library whose state only code in C knows, such as locks, queues, hashes and connections.

What their methods answer is asked again before each call, where asking is cheap and changes nothing; other methods are
refused, for their effects would not be repeated. Locks that the program takes and gives back it takes from no one: it
runs nothing of the user's in between. So it has to give back all of them before it ends.
"""

from __future__ import annotations

from collections import Counter
from types import BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType
from typing import Any

from thunder_frontend._external_state.answers import Answers
from thunder_frontend._external_state.known import Known
from thunder_frontend._external_state.queries import refuse
from thunder_guards.errors import AcquisitionError

HASHES = "_hashlib _md5 _sha1 _sha2 _sha256 _sha512 _sha3 _blake2"
ASKED_OF: dict[str, frozenset[str]] = {
    "_thread": frozenset({"locked", "_is_owned", "_recursion_count"}),
    "_queue": frozenset({"qsize", "empty"}),
    "_multiprocessing": frozenset({"_count", "_get_value", "_is_mine", "_is_zero"}),
    "_asyncio": frozenset({"done", "cancelled", "result", "exception"}),
    "_socket": frozenset({"fileno", "gettimeout", "getblocking"}),
    "xml.etree.ElementTree": frozenset({"get"}),
    **{module: frozenset({"digest", "hexdigest"}) for module in HASHES.split()},
    **{module: frozenset() for module in ("zlib", "_bz2", "_lzma", "sqlite3", "select", "_ssl", "_csv")},
}
"""By the module of a class: which methods say something of the state of its objects, and do nothing else."""

TAKES = frozenset({"acquire", "acquire_lock", "__enter__"})
GIVES = frozenset({"release", "release_lock", "__exit__"})
METHODS = (BuiltinFunctionType, MethodDescriptorType, MethodWrapperType, WrapperDescriptorType)


class NativeState:
    """Guards what the methods of such objects answer.

    Args:
        known: tells which are outside.
        answers: takes the guards.
    """

    def __init__(self, known: Known, answers: Answers) -> None:
        self._known, self._answers = known, answers
        self._taken: Counter[int] = Counter()
        self._locks: dict[int, Any] = {}

    def called(self, fn: object, owner: object, given: int | None = None) -> None:
        """Guard what a call that is about to be made asks.

        Args:
            fn: what is called.
            owner: what it is a method of, or its first argument.
            given: how many arguments come behind that; ``None`` if code in C may make the call, which then gives back
                the locks that it takes.
        """
        asked = _asked_of(owner)
        if asked is None or not isinstance(fn, METHODS) or self._known.source_of(owner) is None:
            return
        name = fn.__name__
        if hasattr(owner, "acquire") and name in TAKES | GIVES:
            if given is not None:
                self._locked(owner, name, given)
        elif name not in asked:
            refuse(name)

    def _locked(self, lock: Any, name: str, given: int) -> None:
        """Note that a lock is about to be taken or given back, by a method that is given so many arguments."""
        taken = self._taken[id(lock)]
        if name in GIVES and not taken:
            refuse(name)
        if name in TAKES and given:
            if not taken:
                self._tried(lock, name)
            if not hasattr(lock, "_is_owned") and lock.locked():
                return  # it is not given
        self._taken[id(lock)] += 1 if name in TAKES else -1
        self._locks[id(lock)] = lock

    def holds_locks(self) -> bool:
        """Whether the program has taken a lock that it has not given back."""
        return any(self._taken.values())

    def give_back(self) -> bool:
        """Give back the locks that the program has taken and not given back; return whether there were any."""
        left = [self._locks[place] for place in self._taken.elements()]
        self._taken.clear()
        for lock in left:
            lock.release()
        return bool(left)

    def check(self) -> None:
        """Refuse a program that ends while it holds a lock.

        Raises:
            AcquisitionError: it does.
        """
        if self.give_back():
            raise AcquisitionError(
                "the program takes a lock and does not give it back before it ends; take it around the call, or use a "
                "with statement"
            )

    def _tried(self, lock: Any, name: str) -> None:
        """Guard whether user code has a lock that the program tries to get without waiting for ever."""
        if not hasattr(lock, "locked") or hasattr(lock, "_is_owned"):  # one that its owner gets again
            refuse(name)
        self._answers.result_of(lock.locked, (), lock.locked())

    def answers(self, fn: object, owner: object) -> bool:
        """Whether a call says something of the state of an external object that the program itself does not change."""
        asked = _asked_of(owner)
        return (
            asked is not None
            and isinstance(fn, METHODS)
            and fn.__name__ in asked
            and not self._taken[id(owner)]
            and self._known.source_of(owner) is not None
        )


def _asked_of(owner: object) -> frozenset[str] | None:
    for cls in type(owner).__mro__:
        if cls.__module__ in ASKED_OF:
            return ASKED_OF[cls.__module__] if cls.__name__ != "_local" else None
    return None
