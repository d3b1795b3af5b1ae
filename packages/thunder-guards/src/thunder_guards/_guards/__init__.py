"""Guards: facts about external state that a program relies on, a module per kind of value."""

from thunder_guards._guards.arguments import ArgumentsGuard
from thunder_guards._guards.base import GONE, Aspect, Guard, Told
from thunder_guards._guards.computed import ComputedValuesGuard, Step
from thunder_guards._guards.containers import (
    EmptyGuard,
    KeysGuard,
    LengthGuard,
    MembershipGuard,
    nth_key,
)
from thunder_guards._guards.environment import Environment, EnvironmentGuard, environment
from thunder_guards._guards.held import (
    FEW,
    GATHERED,
    DistinctObjectsGuard,
    NotHeldGuard,
    PartGuard,
    SameObjectGuard,
    SnapshotGuard,
    gathered,
)
from thunder_guards._guards.tensors import (
    ApartInMemoryGuard,
    SharedStorageGuard,
    TensorGuard,
    TensorMetadata,
    ToldGuard,
    checker,
    distinct,
    metadata_of,
    python_checker,
    tells_apart,
)
from thunder_guards._guards.values import (
    AttributeAbsentGuard,
    BoundsGuard,
    IdentityGuard,
    SameAsBeforeGuard,
    ValueGuard,
    is_looked_up,
    same_value,
)

__all__ = [
    "FEW", "GATHERED", "GONE", "ApartInMemoryGuard", "ArgumentsGuard", "Aspect", "AttributeAbsentGuard", "BoundsGuard",
    "ComputedValuesGuard", "DistinctObjectsGuard", "EmptyGuard", "Environment", "EnvironmentGuard", "Guard",
    "IdentityGuard", "KeysGuard", "LengthGuard", "MembershipGuard", "NotHeldGuard", "PartGuard", "SameAsBeforeGuard",
    "SameObjectGuard", "SharedStorageGuard", "SnapshotGuard", "Step", "TensorGuard", "TensorMetadata", "Told",
    "ToldGuard", "ValueGuard", "checker", "distinct", "environment", "gathered", "is_looked_up", "metadata_of",
    "nth_key", "python_checker", "same_value", "tells_apart",
]  # fmt: skip
