"""How a call is acquired: what one attempt at it goes by."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from thunder_frontend._external_state.dynamic_values import DynamicValues
from thunder_frontend._outcomes import Path
from thunder_frontend._splits import Splits
from thunder_ir import Symbol
from thunder_tracing.tensors.known_values import ValueSpecialisation


@dataclass(frozen=True, slots=True)
class Settings:
    """What one attempt to acquire a call goes by; another attempt is made with others.

    Args:
        sharp_edges: ``"allow"``, ``"warn"`` or ``"error"``: what to do about effects that a compiled program does not
            repeat; ``None`` allows them, but for values that would be another one on each call.
        log: whether to keep what the interpreter saw.
        dynamic: tells which dimensions and numbers are dynamic; ``None`` leaves none.
        replacements: which functions executors replace, by which operators.
        splits: knows before which calls the program ends; ``None`` if before none.
        written: storages to which the program writes and which several inputs share.
        allows_unknown: whether user code may get hold of numbers that only the run of the program tells.
        specialised_on: which values computed of integers among the inputs it may be specialised on; it guards those.
        tells: whether libraries that ask are told that something captures the program.
        interprets: functions of PyTorch that are interpreted, as they warn.
        of_the_run: numbers of the arrays of NumPy's, among those it computes, to which the program writes what only its
            run brings.
        weakly_held: objects that the program is not to keep alive.
        path: what Python is to see first of values that only the run tells, after which it sees those of the call at
            hand; ``None`` lets it see none.
    """

    sharp_edges: str | None = None
    log: bool = False
    dynamic: DynamicValues | None = None
    replacements: Mapping[Any, Symbol] = field(default_factory=dict)
    splits: Splits | None = None
    written: Collection[int] = ()
    allows_unknown: bool = False
    specialised_on: ValueSpecialisation = ValueSpecialisation.NONE
    tells: bool = False
    interprets: frozenset[Any] = frozenset()
    of_the_run: frozenset[int] = frozenset()
    weakly_held: Collection[Any] = ()
    path: Path | None = None
