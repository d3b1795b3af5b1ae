"""Which modules are Thunder's own, by the package that they belong to: a user's may be called ``thunder_anything``."""

from __future__ import annotations

PACKAGES = frozenset({
    "thunder_autograd", "thunder_examine", "thunder_executors", "thunder_executors_torch", "thunder_frontend",
    "thunder_functional", "thunder_interpreter", "thunder_ir", "thunder_lang", "thunder_prims", "thunder_testing",
    "thunder_torch", "thunder_vmap",
})  # fmt: skip
"""All but ``thunder``, which only names what is in the others, and the programs of ``thunder_benchmarks``."""


def package_of(module: str) -> str:
    """Return the name of the package on top of a module."""
    return module.partition(".")[0]


__all__ = ["PACKAGES", "package_of"]
