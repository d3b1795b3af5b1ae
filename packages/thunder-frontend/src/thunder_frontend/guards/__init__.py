"""Guards: facts about the outside world that a program relies on, a module per kind of value."""

from thunder_frontend.guards.arguments import ArgumentsGuard
from thunder_frontend.guards.base import GONE, Guard
from thunder_frontend.guards.containers import (
    EmptyGuard,
    KeysGuard,
    LacksGuard,
    LengthGuard,
    MembershipGuard,
    SetGuard,
)
from thunder_frontend.guards.environment import AUTOCAST_DEVICES, Environment, EnvironmentGuard, environment
from thunder_frontend.guards.held import (
    FEW,
    GATHERED,
    DistinctObjectsGuard,
    HeldPartGuard,
    SameObjectGuard,
    SnapshotGuard,
    gathered,
)
from thunder_frontend.guards.tensors import (
    DistinctTensorsGuard,
    SameTensorGuard,
    TensorGuard,
    TensorMetadata,
    checker,
    metadata_of,
    python_checker,
)
from thunder_frontend.guards.values import (
    AttributeAbsentGuard,
    IdentityGuard,
    SameAsBeforeGuard,
    TypeGuard,
    ValueGuard,
    same_value,
)

__all__ = [
    "AUTOCAST_DEVICES", "FEW", "GATHERED", "GONE", "ArgumentsGuard", "AttributeAbsentGuard", "DistinctObjectsGuard",
    "DistinctTensorsGuard", "EmptyGuard", "Environment", "EnvironmentGuard", "Guard", "HeldPartGuard",
    "IdentityGuard", "KeysGuard", "LacksGuard", "LengthGuard", "MembershipGuard", "SameAsBeforeGuard",
    "SameObjectGuard", "SameTensorGuard", "SetGuard", "SnapshotGuard", "TensorGuard", "TensorMetadata", "TypeGuard",
    "ValueGuard", "checker", "environment", "gathered", "metadata_of", "python_checker", "same_value",
]  # fmt: skip
