"""The table of opcode handlers: which function runs which opcode on which versions of Python."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from thunder_interpreter._decode import Instruction
    from thunder_interpreter._frame import AnyFrame

Version: TypeAlias = tuple[int, int]
Handler: TypeAlias = "Callable[[AnyFrame, list[Any], Any], Any]"
Decoder: TypeAlias = "Callable[[Instruction], Any]"

SUPPORTED: tuple[Version, ...] = ((3, 11), (3, 12), (3, 13), (3, 14))
RUNNING: Version = sys.version_info[:2]
FREE_THREADED = "free-threading build" in sys.version


class UnsupportedPython(RuntimeError):
    """This version of Python has bytecode that the interpreter does not know."""


class UnsupportedOpcode(RuntimeError):
    """A code object holds an instruction that no handler is registered for."""


@dataclass(frozen=True)
class Entry:
    """One handler of one opcode.

    Args:
        handler: called as ``handler(frame, stack, argument)``.
        decode: makes the handler's argument out of the raw instruction, once per code object.
        watch: names of the callbacks that this handler reports to; it is used only when one of them is overridden.
        resumable: whether it is the one for generators and coroutines.
    """

    handler: Handler
    decode: Decoder
    watch: frozenset[str]
    resumable: bool = False


class Registry:
    """Handlers by opcode name, for the running version of Python."""

    def __init__(self, version: Version) -> None:
        self.version = version
        self._plain: dict[str, Entry] = {}
        self._watched: dict[str, list[Entry]] = {}
        self._resumable: dict[str, Entry] = {}
        self.dropped: set[str] = set()
        self.renamed: dict[tuple[str, int], str] = {}

    def add(self, name: str, entry: Entry) -> None:
        """Register ``entry`` for the opcode ``name``; a second plain handler is refused."""
        if entry.resumable:
            self._resumable[name] = entry
        elif entry.watch:
            self._watched.setdefault(name, []).append(entry)
        elif name in self._plain:
            raise ValueError(f"opcode {name} has two handlers on Python {self.version}")
        else:
            self._plain[name] = entry

    def entry(self, name: str, watched: frozenset[str], resumable: bool) -> Entry | None:
        """The handler of ``name`` when the callbacks ``watched`` are overridden, in a generator if ``resumable``."""
        if resumable and name in self._resumable:
            return self._resumable[name]
        for entry in self._watched.get(name, ()):
            if entry.watch & watched:
                return entry
        return self._plain.get(name)

    def names(self) -> set[str]:
        """Every opcode that can be run."""
        return set(self._plain) | self.dropped | {"KW_NAMES"}


registry = Registry(RUNNING)


def raw(instruction: "Instruction") -> Any:
    """The oparg as it is."""
    return instruction.arg


def serves(since: Version, until: Version | None) -> bool:
    """Whether the running Python lies in ``since <= version < until``."""
    return since <= RUNNING and (until is None or until > RUNNING)


def opcode(
    name: str,
    *,
    since: Version = (3, 11),
    until: Version | None = None,
    decode: Decoder = raw,
    watch: Iterable[str] = (),
    resumable: bool = False,
) -> Callable[[Handler], Handler]:
    """Register a handler for the opcode ``name`` (CPython's name).

    The handler is called as ``handler(frame, stack, argument)``. What it returns is what happens next: ``None``
    goes on, an ``int`` jumps to that step, a frame is entered, ``Leave(value)`` ends the run of the entry frame.

    Args:
        name: the opcode's name in :mod:`dis`.
        since: first version of Python that is served.
        until: first version that is no longer served.
        decode: makes ``argument`` from the instruction, when a code object is first seen.
        watch: the callbacks this handler serves; without them it is the plain handler.
        resumable: it serves generators and coroutines only, in place of the plain one.

    Returns:
        a decorator, which returns the handler itself.
    """

    def register(handler: Handler) -> Handler:
        if serves(since, until):
            registry.add(name, Entry(handler, decode, frozenset(watch), resumable))
        return handler

    return register


def drop(*names: str, since: Version = (3, 11), until: Version | None = None) -> None:
    """Say that the opcodes ``names`` do nothing here and need no step at all."""
    if serves(since, until):
        registry.dropped.update(names)


def rename(name: str, arg: int, meant: str, *, since: Version) -> None:
    """Say that the opcode ``name`` with the oparg ``arg`` is what the handler of ``meant`` does."""
    if serves(since, None):
        registry.renamed[name, arg] = meant
