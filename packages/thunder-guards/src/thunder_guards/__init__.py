"""Guards: where values come from, what a program relies on of them, and the code that finds and checks a program."""

import thunder_guards._internals_needed  # noqa: F401  (first, so that what PyTorch lacks fails no other import)
from thunder_guards._codegen.dispatch import MISSED, Dispatcher, missed
from thunder_guards._codegen.held_facts import HeldFacts, tells_facts
from thunder_guards._codegen.prologue import ordered
from thunder_guards._codegen.result_views import result_views
from thunder_guards._codegen.shared import Row, shared_row
from thunder_guards._codegen.specialise import Specialisation, specialise
from thunder_guards._codegen.tensor_checks import snapshots
from thunder_guards._guards.arguments import ArgumentsGuard
from thunder_guards._guards.base import Guard
from thunder_guards._guards.computed import ComputedValuesGuard, Step
from thunder_guards._guards.containers import EmptyGuard, KeysGuard, LengthGuard, MembershipGuard, nth_key
from thunder_guards._guards.environment import Environment, EnvironmentGuard, environment, only_choose_devices
from thunder_guards._guards.held import DistinctObjectsGuard, NotHeldGuard, PartGuard, SameObjectGuard, SnapshotGuard
from thunder_guards._guards.tensors import (
    ApartInMemoryGuard,
    SharedStorageGuard,
    TensorGuard,
    TensorMetadata,
    ToldGuard,
    metadata_of,
    tells_apart,
)
from thunder_guards._guards.values import (
    AttributeAbsentGuard,
    BoundsGuard,
    IdentityGuard,
    SameAsBeforeGuard,
    ValueGuard,
    same_value,
)
from thunder_guards._version import __version__
from thunder_guards.mutations import MutationLog
from thunder_guards.program import Effect, Input, Program
from thunder_guards.sources import Source, held
from thunder_guards.templates import Built, External

__all__ = [
    "ApartInMemoryGuard", "ArgumentsGuard", "AttributeAbsentGuard", "BoundsGuard", "Built", "ComputedValuesGuard",
    "Dispatcher", "DistinctObjectsGuard", "Effect", "EmptyGuard", "Environment", "EnvironmentGuard", "External",
    "Guard", "HeldFacts", "IdentityGuard", "Input", "KeysGuard", "LengthGuard", "MISSED", "MembershipGuard",
    "MutationLog", "NotHeldGuard", "PartGuard", "Program", "Row", "SameAsBeforeGuard", "SameObjectGuard",
    "SharedStorageGuard", "SnapshotGuard", "Source", "Specialisation", "Step", "TensorGuard", "TensorMetadata",
    "ToldGuard", "ValueGuard", "__version__", "environment", "held", "metadata_of", "missed", "nth_key",
    "only_choose_devices", "ordered", "result_views", "same_value", "shared_row", "snapshots", "specialise",
    "tells_apart", "tells_facts",
]  # fmt: skip
