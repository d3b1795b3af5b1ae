"""Libraries that executors call, looked for without importing them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec


@dataclass(frozen=True)
class Library:
    """A Python library that an executor calls.

    Args:
        module: its top-level module.
        name: what it is called in messages; ``module`` if not given.
        least: the oldest release that serves, such as ``"1.8.1"``; any if not given.
        below: the first release that serves no more; none if not given.

    Example:
        >>> from thunder_executors import Library
        >>> Library("no_such_module", "The Library").missing()
        'The Library is not installed'
    """

    module: str
    name: str = ""
    least: str = ""
    below: str = ""

    def installed(self) -> bool:
        """Whether there is such a module; asked without importing it."""
        return _is_there(self.module)

    def version(self) -> str | None:
        """Return which version is installed, as its distribution says; ``None`` where none does."""
        return _version_of(self.module)

    def missing(self) -> str | None:
        """Return why it cannot be used, or ``None``; an unknown version is taken."""
        name = self.name or self.module
        if not self.installed():
            return f"{name} is not installed"
        found = self.version() if self.least or self.below else None
        if found is None:
            return None
        if self.least and release(found) < release(self.least):
            return f"{name} {found} is installed, and at least {self.least} is needed"
        if self.below and release(found) >= release(self.below):
            return f"{name} {found} is installed, and a version below {self.below} is needed"
        return None


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of a version up to what is neither number nor dot.

    Example:
        >>> from thunder_executors.library import release
        >>> release("0.2.36+git81c4b22")
        (0, 2, 36)
    """
    found = re.match(r"v?(\d+(?:\.\d+)*)", version)
    return tuple([int(part) for part in found.group(1).split(".")]) if found else ()


@cache
def _is_there(module: str) -> bool:
    return find_spec(module) is not None


@cache
def _version_of(module: str) -> str | None:
    names = packages_distributions().get(module, ())
    return version(names[0]) if names else None


__all__ = ["Library", "release"]
