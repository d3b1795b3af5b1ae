"""Object code on disk, for processes to come: in a folder of the user's alone, checked before it is used.

Who can write to the folder can run code in the process; so it must belong to the user, and nobody else may write there.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = "THUNDER_LLVM_CACHE"
"""Names the folder; empty: nothing is kept on disk."""

MOST_BYTES = 256 * 2**20
"""What the folder holds at most; beyond, what was used longest ago goes."""

DIGEST = 32
"""Bytes of the checksum in front of the code."""

SUFFIX = ".object"


def default_folder() -> Path | None:
    """Return the folder that the environment names, or one of the user's; ``None`` if it says not to keep any."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        return Path(named) if named else None
    cache = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(cache) if cache else Path.home() / ".cache") / "thunder" / "llvm"
    except RuntimeError:  # there is no home
        return None


@dataclass(frozen=True, slots=True)
class Disk:
    """Object code in a folder.

    Args:
        folder: where; made if it is not there.
        most_bytes: what it holds at most.
    """

    folder: Path
    most_bytes: int = MOST_BYTES
    _held: list[int] = field(default_factory=list, repr=False, compare=False)  # bytes, if that is known

    def read(self, key: str) -> bytes | None:
        """Return the code that was kept under a key; ``None`` if there is none, or if it is not what was written."""
        path = self.folder / f"{key}{SUFFIX}"
        if not self.is_private():
            return None
        try:
            found = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        code = found[DIGEST:]
        return code if found[:DIGEST] == hashlib.sha256(key.encode() + code).digest() else None

    def has(self, key: str) -> bool:
        """Return whether something is kept under a key; whether it is what was written shows when it is read."""
        return (self.folder / f"{key}{SUFFIX}").is_file()

    def write(self, key: str, code: bytes) -> None:
        """Keep code under a key; a disk that is full or cannot be written to keeps nothing."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.is_private():
                return
            handle, name = tempfile.mkstemp(dir=self.folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(hashlib.sha256(key.encode() + code).digest() + code)
                os.replace(name, self.folder / f"{key}{SUFFIX}")  # others see all of it or nothing
            except OSError:
                os.unlink(name)
                raise
            self._count(DIGEST + len(code))
        except OSError:
            return

    def _count(self, size: int) -> None:
        """Shrink the folder where it may hold too much, by what it held when it was last looked at, and came since."""
        if not self._held or self._held[0] + size > self.most_bytes:
            self._held[:] = [self.shrink()]
        else:
            self._held[0] += size

    def is_private(self) -> bool:
        """Whether the folder is the user's own, and nobody else can write to it."""
        try:
            status = os.lstat(self.folder)
        except OSError:
            return False
        owned = not hasattr(os, "getuid") or status.st_uid == os.getuid()
        return stat.S_ISDIR(status.st_mode) and owned and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

    def shrink(self) -> int:
        """Delete what was used longest ago until the folder holds no more than it may; return how much it holds."""
        files = []
        for entry in os.scandir(self.folder):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:  # another process has deleted it
                continue
            files.append((status.st_mtime, status.st_size, entry.path))
        held = sum([size for _, size, _ in files])
        for _, size, path in sorted(files):
            if held <= self.most_bytes:
                break
            held -= size
            try:
                os.unlink(path)
            except OSError:
                continue
        return held


def default_disk() -> Disk | None:
    """Return what keeps object code where :func:`default_folder` says."""
    folder = default_folder()
    return None if folder is None else Disk(folder)


def key_of(*parts: str) -> str:
    """Return the key of code that is made of these texts."""
    digest = hashlib.sha256()
    for part in parts:
        text = part.encode()
        digest.update(len(text).to_bytes(8, "little") + text)
    return digest.hexdigest()
