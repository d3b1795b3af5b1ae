"""Guards of tensors: one call into PyTorch's own checks for all of a program's inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards._guards.base import Aspect, Guard, SeveralGuard
from thunder_guards._guards.values import is_looked_up
from thunder_guards.sources import Source
from thunder_ir import Context, quickly_made
from thunder_torch.specs import STORAGE_ID, storage_key

try:
    from torch._C._dynamo.guards import TensorGuards
except ImportError:  # a PyTorch without it: the Python check below serves
    TensorGuards = None  # type: ignore[assignment, misc]

ASKS_PYTORCH = TensorGuards is not None
"""Whether :func:`checker` returns PyTorch's check, which knows the thread's state of dispatch."""


@quickly_made
@dataclass(frozen=True, slots=True)
class TensorMetadata:
    """What a program relies on of an input tensor.

    Args:
        type: the Python type.
        shape, strides: in elements; ``None`` in place of a size or stride that may vary.
        dtype, device, layout: as PyTorch's.
        requires_grad: whether autograd records what is done with it.
        dispatch_keys: what else steers its operations: conjugate and negative views, functorch levels, inference.
    """

    type: type
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...]
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    dispatch_keys: int

    def problem(self, value: Any) -> str | None:
        """Say in which way ``value`` is another kind of tensor; ``None`` if it is not."""
        kind = type(value)
        if kind is not self.type:
            return f"is of type {kind.__qualname__}, compiled for {self.type.__qualname__}"
        if value.is_nested:
            return "is a nested tensor, compiled for another kind"
        if value.layout != self.layout:
            return f"has layout {value.layout}, compiled for {self.layout}"
        for name, now, then in (
            ("dtype", value.dtype, self.dtype),
            ("device", value.device, self.device),
            ("requires_grad", value.requires_grad, self.requires_grad),
        ):
            if now != then:
                return f"has {name} {now}, compiled for {then}"
        if not _agree(value.shape, self.shape):
            return f"has shape {tuple(value.shape)}, compiled for {self.shape}"
        if not _agree(value.stride(), self.strides):
            return f"has strides {value.stride()}, compiled for {self.strides}"
        if dispatch_keys(value) != self.dispatch_keys:
            return "differs in its dispatch keys (a conjugate, negative, batched or inference tensor?)"
        return None


def _agree(now: Sequence[int], then: tuple[int | None, ...]) -> bool:
    return len(now) == len(then) and all(t is None or n == t for n, t in zip(now, then, strict=True))


def dispatch_keys(tensor: torch.Tensor) -> int:
    """Return the raw set of dispatch keys of a tensor."""
    return torch._C._dispatch_keys(tensor).raw_repr()


def metadata_of(tensor: torch.Tensor, dynamic: frozenset[int] = frozenset()) -> TensorMetadata:
    """Return what programs rely on of ``tensor``; sizes of ``dynamic`` dimensions are dynamic, and so all strides."""
    shape: tuple[int | None, ...] = tuple(tensor.shape)
    strides: tuple[int | None, ...] = tensor.stride()
    if dynamic:
        shape = tuple([None if d in dynamic else s for d, s in enumerate(shape)])
        strides = (None,) * len(strides)
    return TensorMetadata(
        type(tensor),
        shape,
        strides,
        tensor.dtype,
        tensor.device,
        tensor.layout,
        tensor.requires_grad,
        dispatch_keys(tensor),
    )


class TensorGuard(Guard):
    """A tensor is of the kind that the program was compiled for."""

    __slots__ = ("metadata",)

    def __init__(self, source: Source, metadata: TensorMetadata, slot: tuple[Any, Any] | None = None) -> None:
        super().__init__(source, slot)
        self.metadata = metadata

    def condition(self, context: Context) -> str:
        return f"{context.object(self.metadata, 'metadata')}.problem({self.source.expression(context)}) is None"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        expected = self.metadata
        yield "type({})", expected.type
        for name in ("dtype", "device", "layout", "requires_grad"):
            yield f"{{}}.{name}", getattr(expected, name)
        if None not in expected.shape:
            yield "{}.shape", expected.shape
        if None not in expected.strides:
            yield "{}.stride()", expected.strides

    def problem(self, value: object) -> str | None:
        return self.metadata.problem(value)


def checker(examples: Sequence[torch.Tensor], metadata: Sequence[TensorMetadata]) -> Callable[..., bool]:
    """Return a function of that many tensors that says whether each is of its kind, in one call."""
    if TensorGuards is None:
        return python_checker(metadata)
    sizes: Any = [list(m.shape) for m in metadata]
    strides: Any = [list(m.strides) for m in metadata]
    return TensorGuards(*examples, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check


def python_checker(metadata: Sequence[TensorMetadata]) -> Callable[..., bool]:
    """Return what :func:`checker` returns, in Python alone."""

    def check(*tensors: Any) -> bool:
        return all(m.problem(t) is None for m, t in zip(metadata, tensors, strict=True))

    return check


class ToldGuard(Guard):
    """What a function says of a tensor is what it was.

    Args:
        source: the tensor.
        tell: the function.
        value: what it said.
    """

    __slots__ = ("tell", "value")

    def __init__(self, source: Source, tell: Callable[[Any], Any], value: object) -> None:
        super().__init__(source)
        self.tell, self.value = tell, value

    def condition(self, context: Context) -> str:
        told = f"{context.object(self.tell, self.tell.__name__)}({self.source.expression(context)})"
        return f"{told} == {context.object(self.value, 'told')}"

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        if is_looked_up(self.value):
            yield self.tell, self.value

    def problem(self, value: Any) -> str | None:
        now = self.tell(value)
        return None if now == self.value else f"has {self.tell.__name__}() {now}, compiled for {self.value}"


class SharedStorageGuard(SeveralGuard):
    """Two tensors share a storage, as they did."""

    __slots__ = ()

    def condition_of(self, values: Sequence[str], context: Context) -> str:
        key = context.object(storage_key, "storage_key")
        return " == ".join([f"{key}({value})" for value in values])

    def difference(self, *values: Any) -> str | None:
        return None if len(set(map(storage_key, values))) == 1 else f"{self.places} no longer share memory"


class ApartInMemoryGuard(SeveralGuard):
    """Tensors share no memory, as they did not: for programs that write to one of them."""

    __slots__ = ()

    def condition_of(self, values: Sequence[str], context: Context) -> str:
        return f"{context.object(apart_in_memory, 'apart_in_memory')}({', '.join(values)})"

    def difference(self, *values: Any) -> str | None:
        if not all([isinstance(t, torch.Tensor) for t in values]):
            return f"one of {self.places} is no tensor any more"
        return None if apart_in_memory(*values) else f"{self.places} share memory now; compiled for tensors apart"


def distinct(*tensors: torch.Tensor) -> bool:
    """Whether no tensor is given twice."""
    return len(set(map(id, tensors))) == len(tensors)


_TELL_APART: list[Callable[..., bool]] = []


def tells_apart(tell: Callable[..., bool]) -> Callable[..., bool]:
    """Let the decorated function tell quickly that no two tensors share a storage.

    Args:
        tell: takes the tensors; where it returns false, that is not known.
    """
    _TELL_APART.append(tell)
    return tell


def apart_in_memory(*tensors: torch.Tensor) -> bool:
    """Whether no two tensors share a storage."""
    if any([tell(*tensors) for tell in _TELL_APART]):
        return True
    try:
        return len(set(map(STORAGE_ID, tensors))) == len(tensors)
    except RuntimeError:  # one has no storage
        return len({storage_key(t) for t in tensors}) == len(tensors)
