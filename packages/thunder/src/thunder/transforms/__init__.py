"""What is done to compiled modules and programs: :mod:`thunder_transforms`, and :mod:`thunder.core.transforms`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from thunder.core.transforms import *  # noqa: F403
from thunder_transforms import (
    AroundEach,
    AutocastTransform,
    ConstantFolding,
    LORATransform,
    MaterializationTransform,
    PrunePrologueChecks,
    Quantise,
    load_original_state_dict,
    original_state_dict,
    transformed_state_dict,
)

if TYPE_CHECKING:
    from thunder_transforms import CUDAGraphTransform


def __getattr__(name: str) -> Any:
    """Bring what is imported when it is first asked for: only machines with a GPU need it."""
    if name != "CUDAGraphTransform":
        raise AttributeError(f"module 'thunder.transforms' has no attribute {name!r}")
    return import_module("thunder.transforms.cudagraph").CUDAGraphTransform


__all__ = [
    "AroundEach", "AutocastTransform", "CUDAGraphTransform", "ConstantFolding", "LORATransform",
    "MaterializationTransform", "PrunePrologueChecks", "Quantise", "load_original_state_dict", "original_state_dict",
    "transformed_state_dict",
]  # fmt: skip
