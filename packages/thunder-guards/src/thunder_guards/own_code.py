"""Which modules are Thunder's own, by the package that they belong to: a user's may be called ``thunder_anything``."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

PACKAGES = frozenset({
    "thunder_autograd", "thunder_distributed", "thunder_examine", "thunder_executors", "thunder_executors_apex",
    "thunder_executors_cudnn", "thunder_executors_inductor", "thunder_executors_llvm", "thunder_executors_nvfuser",
    "thunder_executors_onednn", "thunder_executors_torch", "thunder_executors_transformer_engine",
    "thunder_executors_triton", "thunder_frontend", "thunder_functional", "thunder_fx", "thunder_guards",
    "thunder_interpreter", "thunder_ir", "thunder_lang", "thunder_loops", "thunder_native", "thunder_prims",
    "thunder_testing", "thunder_torch", "thunder_tracing", "thunder_vmap",
})  # fmt: skip
"""The layers of Thunder, installed or not: all but ``thunder``, which only names what is in the others, and the code of
``thunder_benchmarks`` and ``thunder_transforms``, of which programs are made as of a user's."""

OF_ACQUISITION = frozenset({"thunder_frontend", "thunder_guards", "thunder_tracing"})
"""Those that hold a user's program while it is acquired, and what calls it afterwards."""


def package_of(module: object) -> str:
    """Return the name of the package on top of a module, by its name; none if user code put something else there."""
    return module.partition(".")[0] if isinstance(module, str) else ""


def name_in(scope: Mapping[str, Any]) -> str:
    """Return what a module is called, by its globals: user code may have cleared them, or put there what is no name."""
    name = scope.get("__name__")
    return name if isinstance(name, str) else ""


OURS = PACKAGES | {"thunder"}
NOT_THE_USERS = PACKAGES | {"torch", "optree"}
"""Packages whose code a user calls: a line of it is not where the user looks for what went wrong."""


def package_of_callable(function: object) -> str:
    """Return the name of the package on top of the module in which something that is called was written."""
    module = name_in(function.__globals__) if type(function) is FunctionType else getattr(function, "__module__", None)
    return package_of(module)


def of_library(scope: Mapping[str, Any]) -> bool:
    """Whether the code with these globals is Thunder's or PyTorch's."""
    return package_of(name_in(scope)) in NOT_THE_USERS


__all__ = [
    "NOT_THE_USERS", "OF_ACQUISITION", "OURS", "PACKAGES", "name_in", "of_library", "package_of", "package_of_callable",
]  # fmt: skip
