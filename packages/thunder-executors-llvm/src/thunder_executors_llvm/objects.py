"""Brings object files into memory without LLVM, which is a hundred megabytes of code in each process that loads it.

What LLVM writes for kernels is code, constants beside it, and calls of functions elsewhere, in Linux's format (ELF) for
x86-64. Files that hold anything else are left to LLVM.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

HEADER, SECTION, SYMBOL, RELOCATION = "<4sB11xHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ", "<QIIq"
X86_64, RELATIVE, CALL = 62, 2, 4
CODE_OR_CONSTANTS, SYMBOLS, RELOCATIONS, UNWINDING = 1, 2, 4, 0x70000001
WRITABLE, IN_MEMORY = 1, 2
UNDEFINED, RESERVED = 0, 0xFF00
JUMP = b"\xff\x25\0\0\0\0"
"""``jmp`` to the address that is written behind it: what is called may be further away than a call reaches."""
STUB = 16
"""Bytes from one jump to the next."""
OF_COMPILERS = ("memcpy", "memmove", "memset")
"""Functions of the C library that compilers call for what is written without them."""
READ_WRITE, READ_EXECUTE, PRIVATE_ANONYMOUS = 3, 5, 0x22


class Unknown(Exception):
    """An object file has something that is left to LLVM."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of an object file; see the format's ``Elf64_Shdr``."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """Something that has a name; see the format's ``Elf64_Sym``."""

    name: bytes
    section: int
    value: int


def load_object(image: bytes, exports: Sequence[str], imports: Mapping[str, int]) -> Mapping[str, int] | None:
    """Bring an object file into memory, for good; return the addresses of the exports, or ``None`` if LLVM has to.

    Args:
        image: what ``binding.compile_object`` returned.
        exports: the functions that are wanted.
        imports: addresses of those that it calls.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        laid_out, places = _laid_out(image, imports)
    except Unknown:
        return None
    base = _in_memory(laid_out)
    return None if base is None else {name: base + places[name.encode()] for name in exports}


def _laid_out(image: bytes, imports: Mapping[str, int]) -> tuple[bytes, Mapping[bytes, int]]:
    """Return code with its constants, which may stand anywhere, and the offsets of what has a name."""
    sections = _sections(image)
    places, size = _places(sections)
    symbols = _symbols(image, sections)
    elsewhere = sorted({s.name for s in symbols if s.section == UNDEFINED and s.name})
    stubs = {name: _aligned(size, STUB) + STUB * i for i, name in enumerate(elsewhere)}
    laid_out = bytearray(max([size, *[at + STUB for at in stubs.values()]]))
    for number, at in places.items():
        section = sections[number]
        laid_out[at : at + section.size] = image[section.offset : section.offset + section.size]
    for name, at in stubs.items():
        laid_out[at : at + STUB] = JUMP + _address(name.decode(), imports).to_bytes(8, "little") + bytes(2)
    found = [stubs.get(s.name) if s.section == UNDEFINED else _offset(s, places) for s in symbols]
    for part, offset, kind, symbol, addend in _relocations(image, sections, places):
        target, at = found[symbol], places[part] + offset
        if kind not in (RELATIVE, CALL) or target is None:
            raise Unknown
        struct.pack_into("<i", laid_out, at, target + addend - at)
    return bytes(laid_out), {s.name: at for s, at in zip(symbols, found, strict=True) if s.name and at is not None}


def _address(name: str, imports: Mapping[str, int]) -> int:
    if name not in imports and name not in OF_COMPILERS:  # LLVM looks for it in the libraries of the process
        raise Unknown
    found = imports.get(name) or ctypes.cast(getattr(_libc(), name), ctypes.c_void_p).value
    assert found is not None
    return found


def _aligned(size: int, to: int) -> int:
    return -(-size // to) * to


def _sections(image: bytes) -> list[Section]:
    magic, bits, _, machine, _, _, _, at, _, _, _, _, size, count, _ = struct.unpack_from(HEADER, image)
    if (magic, bits, machine) != (b"\x7fELF", 2, X86_64):
        raise Unknown
    return [Section(*struct.unpack_from(SECTION, image, at + size * i)) for i in range(count)]


def _places(sections: Sequence[Section]) -> tuple[dict[int, int], int]:
    """Return where each section that is needed comes, and the size of all; nothing is thrown through kernels."""
    places, size = {}, 0
    for number, section in enumerate(sections):
        if not section.flags & IN_MEMORY or section.kind == UNWINDING:
            continue
        if section.kind != CODE_OR_CONSTANTS or section.flags & WRITABLE:
            raise Unknown
        places[number] = _aligned(size, max(section.alignment, 1))
        size = places[number] + section.size
    return places, size


def _symbols(image: bytes, sections: Sequence[Section]) -> list[Symbol]:
    found = []
    for table in sections:
        if table.kind != SYMBOLS:
            continue
        names = sections[table.link].offset
        for at in range(table.offset, table.offset + table.size, struct.calcsize(SYMBOL)):
            name, _, _, section, value, _ = struct.unpack_from(SYMBOL, image, at)
            start = names + name
            found.append(Symbol(image[start : image.index(b"\0", start)], section, value))
    return found


def _offset(symbol: Symbol, places: Mapping[int, int]) -> int | None:
    place = places.get(symbol.section) if symbol.section < RESERVED else None
    return None if place is None else place + symbol.value


def _relocations(
    image: bytes, sections: Sequence[Section], places: Mapping[int, int]
) -> Iterator[tuple[int, int, int, int, int]]:
    """Yield what is to be filled in: the section, the offset there, how, the symbol's number, and what is added."""
    for table in sections:
        if table.kind == RELOCATIONS and table.info in places:
            for at in range(table.offset, table.offset + table.size, struct.calcsize(RELOCATION)):
                offset, kind, symbol, addend = struct.unpack_from(RELOCATION, image, at)
                yield table.info, offset, kind, symbol, addend


@cache
def _libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
    libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    return libc


def _in_memory(code: bytes) -> int | None:
    """Return where code is that can be run, and no longer be written to; ``None`` where the system forbids it."""
    base: int | None = _libc().mmap(None, len(code), READ_WRITE, PRIVATE_ANONYMOUS, -1, 0)
    if base is None or base == ctypes.c_void_p(-1).value:
        return None
    ctypes.memmove(base, code, len(code))
    if _libc().mprotect(base, len(code), READ_EXECUTE):
        _libc().munmap(base, len(code))
        return None
    return base


__all__ = ["load_object"]
