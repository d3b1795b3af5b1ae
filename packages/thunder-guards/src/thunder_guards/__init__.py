"""Guards: where values come from, what a program relies on of them, and the code that finds and checks a program."""

import thunder_guards._internals_needed  # noqa: F401  (first, so that what PyTorch lacks fails no other import)
from thunder_guards._codegen.dispatch import MISSED, Dispatcher, missed
from thunder_guards._codegen.held_facts import HeldFacts, tells_facts
from thunder_guards._codegen.prologue import ordered
from thunder_guards._codegen.result_views import result_views
from thunder_guards._codegen.shared import Row, shared_row
from thunder_guards._codegen.specialise import Specialisation, specialise
from thunder_guards._codegen.tensor_checks import snapshots
from thunder_guards._guards import (
    ArgumentsGuard,
    AttributeAbsentGuard,
    BoundsGuard,
    ComputedValuesGuard,
    DistinctObjectsGuard,
    DistinctTensorsGuard,
    EmptyGuard,
    Environment,
    EnvironmentGuard,
    Guard,
    HeldPartGuard,
    IdentityGuard,
    KeysGuard,
    LacksGuard,
    LengthGuard,
    MembershipGuard,
    NotHeldGuard,
    PlaceInStorageGuard,
    SameAsBeforeGuard,
    SameObjectGuard,
    SameTensorGuard,
    SetGuard,
    SharedStorageGuard,
    SnapshotGuard,
    Step,
    TensorGuard,
    TensorMetadata,
    ToldGuard,
    TypeGuard,
    ValueGuard,
    environment,
    metadata_of,
    nth_key,
    same_value,
    tells_apart,
)
from thunder_guards._version import __version__
from thunder_guards.mutations import MutationLog
from thunder_guards.program import Effect, Input, Program
from thunder_guards.sources import Source, held
from thunder_guards.templates import Built, External

__all__ = [
    "ArgumentsGuard", "AttributeAbsentGuard", "BoundsGuard", "Built", "ComputedValuesGuard", "Dispatcher",
    "DistinctObjectsGuard", "DistinctTensorsGuard", "Effect", "EmptyGuard", "Environment", "EnvironmentGuard",
    "External", "Guard", "HeldFacts", "HeldPartGuard", "IdentityGuard", "Input", "KeysGuard", "LacksGuard",
    "LengthGuard", "MISSED", "MembershipGuard", "MutationLog", "NotHeldGuard", "PlaceInStorageGuard", "Program",
    "Row", "SameAsBeforeGuard",
    "SameObjectGuard", "SameTensorGuard", "SetGuard", "SharedStorageGuard", "SnapshotGuard", "Source",
    "Specialisation", "Step", "TensorGuard", "TensorMetadata", "ToldGuard", "TypeGuard", "ValueGuard", "__version__",
    "environment", "held", "metadata_of", "missed", "nth_key", "ordered", "result_views", "same_value", "shared_row",
    "snapshots", "specialise", "tells_apart", "tells_facts",
]  # fmt: skip
