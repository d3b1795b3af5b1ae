"""From the text of a module to the addresses of its functions: from disk where it is there, or compiled now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    found = objects.load_object(image, exports, imports)
    return load_object(image, exports, imports) if found is None else found


def is_on_disk(text: str, machine: Machine, disk: Disk | None, passes: Sequence[str] = PASSES) -> bool:
    """Return whether a module needs no compiling to be brought into memory; see :func:`in_memory`."""
    return disk is not None and disk.has(_key(text, machine, passes))


def _key(text: str, machine: Machine, passes: Sequence[str]) -> str:
    return key_of(text, compiler().versions, *passes, machine.triple, machine.cpu, machine.features)


__all__ = ["in_memory", "is_on_disk"]
