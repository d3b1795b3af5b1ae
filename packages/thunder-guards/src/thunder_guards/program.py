"""A program: what acquisition yields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from thunder_guards._guards.arguments import ArgumentsGuard
from thunder_guards._guards.base import GONE, Guard
from thunder_guards._guards.environment import EnvironmentGuard
from thunder_guards._guards.tensors import TensorGuard, TensorMetadata
from thunder_guards.sources import Place, Source
from thunder_ir import Symbol, TensorProxy, Trace, quickly_made

OWN_NAMES = (
    "args", "kwargs", "miss", "computation", "held", "hold", "holds",
    "all", "any", "bytes", "getattr", "hasattr", "id", "int", "len", "map", "setattr", "str", "tuple", "type",
    *[error.__name__ for error in GONE],
)  # fmt: skip
"""What generated functions use as they are, so that no input can have the name."""


@quickly_made
@dataclass(frozen=True, slots=True, eq=False)
class Input:
    """An external tensor that a program reads.

    Args:
        proxy: what stands for it in the computation.
        source: how the prologue gets at it.
        slot: the container and key where it is kept, if the compiled function holds the container.
        metadata: the kind of tensor that the program was compiled for.
        example: the tensor of the call that is being compiled; ``None`` when that is done, as it is the caller's.
        memory: what covers the memory that it shares with other inputs, if the program writes to that.
        becomes_leaf: whether it requires grad while the computation runs, as the program makes it require grad.
    """

    proxy: TensorProxy
    source: Source
    slot: tuple[Any, Any] | None
    metadata: TensorMetadata
    example: Any
    memory: TensorProxy | None = None
    becomes_leaf: bool = False

    @property
    def guard(self) -> TensorGuard:
        """The guard that it is of that kind."""
        return TensorGuard(self.source, self.metadata, self.slot)


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """One write to external state, made by the epilogue.

    Args:
        kind: ``"tensor"`` (copy into a tensor, in the way that ``key`` says), ``"metadata"`` (call the method
            ``key`` on a tensor), ``"memory"`` (give a tensor the memory of another, the first part of the value),
            ``"leaf"`` (give a new leaf its contents), ``"delete"``, ``"setting"``, ``"warning"`` (calls the target),
            ``"print"`` (to the file ``target``), or that of a place, by its name in
            :data:`~thunder_guards.places.WRITTEN`.
        target: template of the object written to.
        key: name, key, or ``None``.
        value: template of what is written.
    """

    kind: str
    target: Any
    key: Any
    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class UnseenWrites:
    """What was written behind autograd's back while a program was acquired.

    Args:
        memory: names of values in whose memory others were written later. Views of them lie there, too.
        tensors: names of values whose tensors were given other memory later. Views of them kept theirs.
    """

    memory: set[str] = field(default_factory=set)
    tensors: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A callable, acquired for one call and valid for all calls for which its guards hold.

    Args:
        inputs: the tensors that it reads, in the order of the computation's inputs.
        guards: facts about external state, but for tensors' metadata.
        environment: PyTorch's state.
        arguments: how the call was written.
        computation: from input tensors to every tensor that the result or an effect needs.
        result: template of what is returned; its proxies are outputs of the computation, or inputs.
        effects: writes to make after the computation, in order.
        rules: derivatives that the program brings along: of custom functions.
        numbers: the symbolic numbers that it reads, after the tensors.
        log: what the interpreter saw, if asked for.
        raises: what it ends with, where that is an exception: its result is that one's state.
        path: what Python saw in it of values that only the run tells, in order.
        unseen: what it writes behind autograd's back.
        exchanges: where it puts another number, or another object of the type, than it finds.
        views: templates of values of the computation that are views of others of its values, by name, where something
            else is computed of them, too, that has a gradient.
        tried: whether Python might catch an exception of one of its operations.
    """

    inputs: tuple[Input, ...]
    guards: tuple[Guard, ...]
    environment: EnvironmentGuard
    arguments: ArgumentsGuard
    computation: Trace
    result: Any
    effects: tuple[Effect, ...]
    rules: Mapping[Symbol, Callable[..., Any]] = field(default_factory=dict)
    numbers: tuple[Any, ...] = ()
    log: Any = None
    raises: BaseException | None = None
    unseen: UnseenWrites = field(default_factory=UnseenWrites)
    path: tuple[Any, ...] = ()
    exchanges: Mapping[Place, type] = field(default_factory=dict)
    views: Mapping[str, Any] = field(default_factory=dict)
    tried: bool = False


def written_inputs(program: Program) -> dict[str, TensorProxy]:
    """Return the inputs that the effects of a program write to, by their names."""
    targets = [e.target for e in program.effects if e.kind in ("tensor", "memory")]
    if any([e.kind == "metadata" for e in program.effects]):  # autograd takes it for a write to all that share memory
        targets += [i.proxy for i in program.inputs]
    names = {t.name for t in targets if isinstance(t, TensorProxy)}
    targets += [i.proxy for i in program.inputs if i.memory is not None and i.memory.name in names]
    return {t.name: t for t in targets if isinstance(t, TensorProxy)}


def new_values(program: Program) -> dict[str, str]:
    """Return the names of tensors that are copied into inputs as a whole, by the names of these."""
    effects = [e for e in program.effects if e.kind == "tensor"]
    pairs = [(e.target, e.value) for e in effects]
    return {t.name: v.name for t, v in pairs if isinstance(t, TensorProxy) and isinstance(v, TensorProxy)}
