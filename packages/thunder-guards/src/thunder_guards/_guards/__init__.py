"""Guards: facts about external state that a program relies on, a module per kind of value."""

from thunder_guards._guards.arguments import ArgumentsGuard
from thunder_guards._guards.base import GONE, Aspect, Guard, Told
from thunder_guards._guards.computed import ComputedValuesGuard, Step
from thunder_guards._guards.containers import (
    EmptyGuard,
    KeysGuard,
    LacksGuard,
    LengthGuard,
    MembershipGuard,
    SetGuard,
    nth_key,
)
from thunder_guards._guards.environment import Environment, EnvironmentGuard, environment
from thunder_guards._guards.held import (
    FEW,
    GATHERED,
    DistinctObjectsGuard,
    HeldPartGuard,
    NotHeldGuard,
    SameObjectGuard,
    SnapshotGuard,
    gathered,
)
from thunder_guards._guards.storages import PlaceInStorageGuard, SharedStorageGuard
from thunder_guards._guards.tensors import (
    DistinctTensorsGuard,
    SameTensorGuard,
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
    TypeGuard,
    ValueGuard,
    is_looked_up,
    same_value,
)

__all__ = [
    "FEW", "GATHERED", "GONE", "ArgumentsGuard", "Aspect", "AttributeAbsentGuard", "BoundsGuard", "ComputedValuesGuard",
    "DistinctObjectsGuard", "DistinctTensorsGuard", "EmptyGuard", "Environment", "EnvironmentGuard", "Guard",
    "HeldPartGuard", "IdentityGuard", "KeysGuard", "LacksGuard", "LengthGuard", "MembershipGuard",
    "NotHeldGuard", "PlaceInStorageGuard", "SameAsBeforeGuard", "SameObjectGuard", "SameTensorGuard", "SetGuard",
    "SharedStorageGuard", "SnapshotGuard", "Step", "TensorGuard", "TensorMetadata", "Told", "ToldGuard", "TypeGuard",
    "ValueGuard", "checker", "distinct", "environment", "gathered", "is_looked_up", "metadata_of", "nth_key",
    "python_checker", "same_value", "tells_apart",
]  # fmt: skip
