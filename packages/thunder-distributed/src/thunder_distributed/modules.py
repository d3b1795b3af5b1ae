"""Modules whose parameters are more than what is in this process: classes derived from theirs, with properties.

A property makes the parameter's stand-in of what the module holds, in programs; everywhere else it is what is held, so
that optimizers, state dicts and users see plain parameters under their own names.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist

from thunder_distributed.axes import Axis
from thunder_distributed.parameters import (
    Home,
    Part,
    Replicated,
    Sharded,
    of_program,
    parameter_alone,
    replicated_parameter,
    sharded_parameter,
    sharded_parameter_again,
)
from thunder_distributed.unused import leave_unsynchronised


@dataclass(frozen=True)
class CutTwice:
    """A parameter that is cut for tensor parallelism, and whose part is sharded once more.

    Args:
        part: how it is cut first.
        shard: how the part, padding included, is cut again.
    """

    part: Part
    shard: Sharded

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """The shape of the parameter as the model had it."""
        return self.part.whole_shape

    @property
    def cut_over(self) -> tuple[Axis, ...]:
        """The axes over which no two processes have the same."""
        return (self.shard.axis, self.part.axis)


class Parallel:
    """What all modules of a model that is trained in parallel share.

    Args:
        kind: ``"ddp"`` or ``"fsdp"``, for messages.

    ``synchronises`` says whether gradients are synchronised; programs are compiled for either.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.synchronises = True
        self.unsharded = False
        self.hows: dict[str, Replicated | Sharded] = {}
        """How each parameter is treated, by its name in the model; of a tied one, by its first."""

    @property
    def homes(self) -> list[Home]:
        """Where the parameters are."""
        return [how.home for how in self.hows.values() if how.home is not None]


PARTS = "_thunder_parts"
"""Where a module keeps how its own parameters are cut for tensor parallelism, by their names."""

HOWS, PARALLEL = "_thunder_parameters", "_thunder_parallel"


def _property(name: str, stand_in: Callable[[Any, Any, bool], Any]) -> property:
    def get(self: Any) -> Any:
        return stand_in(self._parameters[name], self._thunder_parameters[name], self._thunder_parallel.synchronises)

    def set_(self: Any, value: Any) -> None:
        self.register_parameter(name, value)

    return property(get, set_)


@functools.cache
def _class_for(cls: Any, kinds: tuple[tuple[str, str], ...], is_root: bool) -> type:
    """Return the class derived from a module's, with properties for parameters of some kinds."""
    names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    body: dict[str, Any] = {**names, "_thunder_derived_from": cls}
    stand_ins: dict[str, Callable[[Any, Any, bool], Any]] = {
        "replicated": replicated_parameter, "sharded": sharded_parameter, "sharded again": sharded_parameter_again,
        "alone": parameter_alone,
    }  # fmt: skip
    body |= {name: _property(name, stand_ins[kind]) for name, kind in kinds}
    if is_root:
        body |= {"forward": _only_compiled(cls), "no_sync": no_sync}
    return types.new_class(cls.__name__, (cls,), exec_body=lambda space: space.update(body))


def _only_compiled(cls: type) -> Callable[..., Any]:
    forward: Callable[..., Any] = cls.forward  # type: ignore[attr-defined]

    @functools.wraps(forward)
    def only_compiled(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not of_program():
            raise RuntimeError(
                f"this {cls.__name__} is trained in parallel by {self._thunder_parallel.kind}(), and communicates in "
                f"compiled programs only: call what {self._thunder_parallel.kind}() returned, and not within "
                "torch.func's transforms or torch.jit.trace. If that was done, thunder.jit(..., fallback='error') says "
                "why no program can be made of it"
            )
        if self._thunder_parallel.unsharded:
            raise RuntimeError("the model was called within unshard_params(), while its parameters are whole")
        return forward(self, *args, **kwargs)

    return only_compiled


@contextmanager
def no_sync(self: Any) -> Iterator[None]:
    """Leave gradients as they are in each process; the next synchronised backward synchronises their sum.

    What counts is where the model is called, as with ``DistributedDataParallel``. That backward need not use all
    parameters that were used within.
    """
    parallel: Parallel = self._thunder_parallel
    before, parallel.synchronises = parallel.synchronises, False
    frozen = leave_unsynchronised(parallel.homes)
    try:
        yield
    finally:
        parallel.synchronises = before
        leave_unsynchronised(frozen)


def _kind(how: Replicated | Sharded | Part) -> str:
    if isinstance(how, Part):
        return "alone"
    return "replicated" if isinstance(how, Replicated) else "sharded again" if how.again else "sharded"


def install(model: torch.nn.Module, parallel: Parallel, hows: dict[str, dict[str, Any]]) -> None:
    """Let the modules of a model have stand-ins for parameters.

    Args:
        model: changed in place: its modules' classes are derived ones afterwards.
        parallel: shared by all modules.
        hows: for each module's name how its own parameters are treated, by their names.
    """
    for name, module in model.named_modules():
        own = hows.get(name, {})
        is_root = module is model
        if not own and not is_root:
            continue
        kinds = tuple([(parameter, _kind(how)) for parameter, how in own.items()])
        cls: Any = type(module)
        module.__class__ = _class_for(cls, kinds, is_root)
        module.__dict__[HOWS] = own
        module.__dict__[PARALLEL] = parallel
    if parallel.kind == "fsdp":  # DistributedDataParallel would make the parts of all processes equal
        model.__dict__["_ddp_params_and_buffers_to_ignore"] = [
            f"{name}.{key}" if name else key for name, own in hows.items() for key in own
        ]


def parallel_of(model: torch.nn.Module) -> dict[str, Any]:
    """Return how the parameters of a model are treated, by their first names; nothing of one process's."""
    found: dict[str, Any] = {}
    parallel = model.__dict__.get(PARALLEL)
    if parallel is not None:
        found.update(parallel.hows)
    for name, module in model.named_modules():
        for key, part in module.__dict__.get(PARTS, {}).items():
            full = f"{name}.{key}" if name else key
            before = found.get(full)
            found[full] = CutTwice(part, before) if isinstance(before, Sharded) else part
    return found


def part_alone(name: str, module: torch.nn.Module, key: str, axis: Axis) -> Part | None:
    """Return how a parameter is cut, if no other process of an axis has this part; ``None`` if all have it.

    Args:
        name: of the parameter in the model, for messages.
        module: whose it is.
        key: its name there.
        axis: over which batches differ.

    Raises:
        ValueError: processes that have the same batch share it.
    """
    part = module.__dict__.get(PARTS, {}).get(key)
    if part is None or axis.size == 1:
        return None
    mine, others = (set(dist.get_process_group_ranks(a.process_group)) for a in (axis, part.axis))
    if len(mine & others) == 1:
        return None
    if not part.batches_differ or mine != others:
        raise ValueError(
            f"{name} is cut over axis {part.axis.name!r}, and some processes of axis {axis.name!r} share it: pass "
            "another dimension of the mesh"
        )
    return part  # type: ignore[no-any-return]


__all__ = [
    "HOWS",
    "PARALLEL",
    "PARTS",
    "CutTwice",
    "Parallel",
    "install",
    "no_sync",
    "parallel_of",
    "part_alone",
]
