"""What there is to compile with, and for what: as LLVM said, which is asked once for a library and a processor.

So a process whose kernels are all on disk never loads LLVM.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from thunder_executors_llvm import binding
from thunder_executors_llvm.binding import Machine
from thunder_executors_llvm.disk import Disk, default_disk, key_of

PROCESSOR = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags")
"""What Linux says of a processor, from which LLVM's answers follow."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """What LLVM says of itself, and of this machine.

    Args:
        versions: what compiled code depends on besides its text and the machine.
        machine: this one.
    """

    versions: str
    machine: Machine

    @property
    def text(self) -> str:
        """What is kept on disk."""
        return "\n".join((self.versions, self.machine.triple, self.machine.cpu, self.machine.features))


def _asked() -> Compiler:
    return Compiler(binding.versions(), binding.host())


def identity(library: Path, processors: Path = Path("/proc/cpuinfo")) -> str | None:
    """Return what tells LLVM's library and this processor from all others; ``None`` if that cannot be told.

    Args:
        library: its file.
        processors: where Linux describes them.
    """
    try:
        status = library.stat()
        described = processors.read_text(encoding="utf-8")
    except OSError:
        return None
    pairs = [line.partition(":") for line in described.partition("\n\n")[0].splitlines()]
    facts = {name.strip(): value for name, _, value in pairs if name.strip() in PROCESSOR}
    if "flags" not in facts:
        return None
    return key_of("compiler", str(library), str(status.st_size), str(status.st_mtime_ns), *facts, *facts.values())


def remembered(disk: Disk | None, key: str | None) -> Compiler | None:
    """Return what LLVM said to an earlier process; ``None`` if it has to be asked."""
    text = disk.read(key) if disk is not None and key is not None else None
    if text is None:
        return None
    versions, triple, cpu, features = text.decode().split("\n")
    return Compiler(versions, Machine(triple, cpu, features))


@cache
def _key() -> str | None:
    spec = importlib.util.find_spec("llvmlite")
    if spec is None or spec.origin is None:
        return None
    return identity(Path(spec.origin).parent / "binding" / "libllvmlite.so")


@cache
def _remembered() -> Compiler | None:
    return remembered(default_disk(), _key())


@cache
def compiler() -> Compiler:
    """Return what there is to compile with, and remember it."""
    found = _remembered()
    if found is None:
        found, disk, key = _asked(), default_disk(), _key()
        if disk is not None and key is not None:
            disk.write(key, found.text.encode())
    return found


def is_remembered() -> bool:
    """Return whether LLVM told an earlier process all that is asked of it, so that it is not loaded to say so."""
    return _remembered() is not None


def load_error() -> str | None:
    """Return why LLVM does not load, or ``None``; a library that loaded before is not loaded to say so."""
    return None if is_remembered() else binding.load_error()


def host() -> Machine:
    """Return the machine that this process runs on."""
    return compiler().machine


__all__ = ["Compiler", "compiler", "host", "identity", "is_remembered", "load_error", "remembered"]
