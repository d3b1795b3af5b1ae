"""Which modules are Thunder's own, by the package that they belong to: a user's may be called ``thunder_anything``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PACKAGES = frozenset({
    "thunder_autograd", "thunder_examine", "thunder_executors", "thunder_executors_torch", "thunder_frontend",
    "thunder_functional", "thunder_interpreter", "thunder_ir", "thunder_lang", "thunder_prims", "thunder_testing",
    "thunder_torch", "thunder_vmap",
})  # fmt: skip
"""All but ``thunder``, which only names what is in the others, and the programs of ``thunder_benchmarks``."""


def package_of(module: object) -> str:
    """Return the name of the package on top of a module, by its name; none if somebody has put something else there."""
    return module.partition(".")[0] if isinstance(module, str) else ""


def name_in(scope: Mapping[str, Any]) -> str:
    """Return what a module is called, by its globals: somebody may have cleared them, or put there what is no name."""
    name = scope.get("__name__")
    return name if isinstance(name, str) else ""


__all__ = ["PACKAGES", "name_in", "package_of"]
