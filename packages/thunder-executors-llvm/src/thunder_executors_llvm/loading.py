"""From the text of a module to the addresses of its functions: from disk where it is there, or compiled now."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from thunder_executors_llvm import objects
from thunder_executors_llvm.binding import PASSES, Machine, compile_object, load_object
from thunder_executors_llvm.compiler import compiler
from thunder_executors_llvm.disk import Disk, key_of


def in_memory(
    text: str,
    exports: Sequence[str],
    imports: Mapping[str, int],
    machine: Machine,
    disk: Disk | None,
    passes: Sequence[str] = PASSES,
) -> Mapping[str, int]:
    """Bring a module into memory, from disk or compiled now, and return the addresses of its exports.

    Args:
        text: of the module.
        exports: its functions that are wanted.
        imports: addresses of those that it calls.
        machine: what it runs on.
        disk: where its code may be, and is kept.
        passes: names of those that are done before instructions are chosen.
    """
    key = _key(text, machine, passes)
    image = disk.read(key) if disk is not None else None
    if image is None:
        image = compile_object(text, machine, passes)
        if disk is not None:
            disk.write(key, image)
    return _loaded(image, exports, imports)


@dataclass(frozen=True, slots=True)
class Function:
    """A function that is wanted.

    Args:
        text: what its code is known by, on disk, too.
        imports: addresses of those that it calls.
    """

    text: str
    imports: Mapping[str, int]


def functions_in_memory(
    functions: Sequence[Function],
    module: Callable[[Mapping[int, str]], str],
    machine: Machine,
    disk: Disk | None,
    address: Callable[[str], int | None],
    passes: Sequence[str] = PASSES,
) -> list[int]:
    """Bring functions into memory, from disk or compiled together now, and return where they are.

    What is compiled together is kept for each of them, so a later process finds it whatever else it wants.

    Args:
        functions: which.
        module: returns the text of a module with some of them, by their numbers, under names.
        machine: what they run on.
        disk: where their code may be, and is kept.
        address: finds the functions that others call, which were compiled together with one.
        passes: names of those that are done before instructions are chosen.
    """
    keys = [_key(f"function {f.text}", machine, passes) for f in functions]
    names = {number: f"function_{key}" for number, key in enumerate(keys)}
    found: dict[int, int] = {}
    for number, name in names.items():
        kept = _kept(disk, keys[number], functions[number].imports, address)
        if kept is not None:
            found[number] = _loaded(kept.image, [name], kept.imports)[name]
    new = {number: name for number, name in names.items() if number not in found}
    if new:
        together = {name: place for number in new for name, place in functions[number].imports.items()}
        made = Compiled(compile_object(module(new), machine, passes), together)
        if disk is not None:
            for number in new:
                disk.write(keys[number], made.bytes)
        loaded = _loaded(made.image, list(new.values()), together)
        found |= {number: loaded[name] for number, name in new.items()}
    return [found[number] for number in names]


@dataclass(frozen=True, slots=True)
class Compiled:
    """Functions that were compiled together.

    Args:
        image: their object code.
        imports: addresses of the functions that any of them calls.
    """

    image: bytes
    imports: Mapping[str, int]

    @property
    def bytes(self) -> bytes:
        """What is kept on disk: the names of what is called, which is elsewhere in each process, and the code."""
        return " ".join(self.imports).encode() + b"\n" + self.image


def _kept(
    disk: Disk | None, key: str, known: Mapping[str, int], address: Callable[[str], int | None]
) -> Compiled | None:
    """Return what is kept under a key; ``None`` where there is nothing, or something that it calls is not there."""
    kept = disk.read(key) if disk is not None else None
    if kept is None:
        return None
    called, _, image = kept.partition(b"\n")
    imports: dict[str, int] = {}
    for name in called.decode().split():
        place = known.get(name) or address(name)
        if place is None:
            return None
        imports[name] = place
    return Compiled(image, imports)


def _loaded(image: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> Mapping[str, int]:
    found = objects.load_object(image, exports, imports)
    return load_object(image, exports, imports) if found is None else found


def is_on_disk(text: str, machine: Machine, disk: Disk | None, passes: Sequence[str] = PASSES) -> bool:
    """Return whether a module needs no compiling to be brought into memory; see :func:`in_memory`."""
    return disk is not None and disk.has(_key(text, machine, passes))


def _key(text: str, machine: Machine, passes: Sequence[str]) -> str:
    return key_of(text, compiler().versions, *passes, machine.triple, machine.cpu, machine.features)


__all__ = ["Function", "functions_in_memory", "in_memory", "is_on_disk"]
