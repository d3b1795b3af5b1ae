"""What the instructions of a function tell without running it."""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Iterator
from dataclasses import dataclass

from thunder_interpreter._decode import Instruction, instructions
from thunder_interpreter._registry import registry

PASSED_OVER = frozenset({"CACHE", "COPY_FREE_VARS", "EXTENDED_ARG", "MAKE_CELL", "NOP", "POP_TOP", "RESUME"})
ANSWERS = frozenset({"RETURN_CONST", "RETURN_VALUE"})
LOOKS_UP = ("LOAD_ATTR", "LOAD_COMMON_CONSTANT", "LOAD_CONST", "LOAD_FAST", "LOAD_GLOBAL", "LOAD_SMALL_INT")
"""What instructions begin with that put something on the stack which is there; ``LOAD_FAST_BORROW`` is one."""
CONTINUES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
ADDED_TO = frozenset("append extend insert pop remove clear sort reverse update setdefault popitem add discard".split())
LOOKING = frozenset({"getattr", "hasattr", "vars", "setattr"})
"""Builtins that take names of attributes as strings."""
KINDS = {
    **dict.fromkeys(("LOAD_GLOBAL", "LOAD_NAME"), "globals"),
    **dict.fromkeys(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "IMPORT_FROM"), "attributes"),
    **dict.fromkeys(("STORE_GLOBAL", "DELETE_GLOBAL"), "written_globals"),
    **dict.fromkeys(("STORE_ATTR", "DELETE_ATTR"), "written_attributes"),
    **dict.fromkeys(("STORE_DEREF", "DELETE_DEREF"), "written_variables"),
}
"""Which names instructions give, by field of :class:`CodeNames`."""


def is_comprehension(code: types.CodeType) -> bool:
    """Return whether code is of a comprehension or a generator expression: a function that only what is around calls.

    Args:
        code: of a function.

    Example:
        >>> from thunder_interpreter import is_comprehension
        >>> is_comprehension((n for n in ()).gi_code), is_comprehension((lambda n: n).__code__)
        (True, False)
    """
    return code.co_varnames[:1] == (".0",)  # a name that no other code has


def does_nothing(code: types.CodeType) -> bool:
    """Return whether code does no more than look up names and return, whichever Python compiled it.

    Args:
        code: of a function.

    Example:
        >>> from thunder_interpreter import does_nothing
        >>> def nothing(self):
        ...     self.name
        >>> does_nothing(nothing.__code__), does_nothing(does_nothing.__code__)
        (True, False)
    """
    return all([_has_no_effect(instruction.opname) for instruction in dis.get_instructions(code)])


def _has_no_effect(name: str) -> bool:
    return name in PASSED_OVER or name in ANSWERS or name.startswith(LOOKS_UP)


@dataclass(frozen=True)
class CodeNames:
    """What the code of a function names.

    Args:
        globals: that it reads.
        attributes: that it reads.
        written_globals: that it sets or deletes.
        written_attributes, written_variables: likewise; of the variables, those that functions share.
        changes_containers: whether it may change a container.
    """

    globals: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    written_globals: frozenset[str] = frozenset()
    written_attributes: frozenset[str] = frozenset()
    written_variables: frozenset[str] = frozenset()
    changes_containers: bool = False

    @property
    def writes(self) -> bool:
        """Whether the code may write anything."""
        written = self.written_globals | self.written_attributes | self.written_variables
        return bool(written) or self.changes_containers


@functools.lru_cache(maxsize=1024)
def names_of(code: types.CodeType) -> CodeNames:
    """Return what code names, that of the functions within it included.

    Example:
        >>> from thunder_interpreter import names_of
        >>> sorted(names_of((lambda a: print(a.b)).__code__).attributes)
        ['b']
    """
    found: dict[str, set[str]] = {kind: set() for kind in KINDS.values()}
    stores = False
    for inner in _codes(code):
        for instruction in dis.get_instructions(inner):
            kind = KINDS.get(instruction.opname)
            if kind is not None:
                found[kind].add(instruction.argval)
            stores |= instruction.opname in ("STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
        if LOOKING & found["globals"]:
            found["attributes"] |= {c for c in inner.co_consts if isinstance(c, str)}
    named = {kind: frozenset(names) for kind, names in found.items()}
    return CodeNames(**named, changes_containers=stores or bool(ADDED_TO & found["attributes"]))


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


@functools.lru_cache(maxsize=1024)
def paths_named(code: types.CodeType) -> tuple[tuple[str, ...], ...]:
    """Return the globals that code names, each with the attributes that it asks for on the way from there.

    Example:
        >>> from thunder_interpreter import paths_named
        >>> paths_named((lambda: torch.nn.functional.relu).__code__)
        (('torch', 'nn', 'functional', 'relu'),)
    """
    ways: dict[tuple[str, ...], None] = {}
    way: tuple[str, ...] = ()
    for instruction in instructions(code, code.co_code):  # many times as fast as those of dis
        if instruction.name == "LOAD_GLOBAL":
            way = (_name_given(instruction),)
        elif way and instruction.name in CONTINUES:
            way = (*way, _name_given(instruction))
        elif way and instruction.name != "PUSH_NULL":
            ways[way] = None
            way = ()
    return tuple(ways)


def _name_given(instruction: Instruction) -> str:
    """Return the name in an instruction, which its handler may get with a flag."""
    entry = registry.entry(instruction.name, frozenset(), False)
    given = entry.decode(instruction) if entry is not None else ""
    return given if isinstance(given, str) else str(given[0])
