"""What is done to compiled modules and programs: :mod:`thunder_transforms`, and :mod:`thunder.core.transforms`."""

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

__all__ = [
    "AroundEach", "AutocastTransform", "ConstantFolding", "LORATransform",
    "MaterializationTransform", "PrunePrologueChecks", "Quantise", "load_original_state_dict", "original_state_dict",
    "transformed_state_dict",
]  # fmt: skip
