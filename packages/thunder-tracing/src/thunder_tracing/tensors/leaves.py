"""Leaves that a program makes, of its own tensors and of its inputs: from then on autograd records.

What the user gets is a leaf whose ``grad`` fills when results are differentiated. So a leaf without contents is made
before the computation, which takes it as an input; values are revealed in its place, and it gets them in the end.
A tensor of the caller's becomes a second input, which requires grad while the computation runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards import ValueGuard, metadata_of
from thunder_guards.errors import AcquisitionError
from thunder_guards.program import Input
from thunder_guards.sources import Source, held
from thunder_ir import Builder, TensorProxy
from thunder_torch.convert import proxy_of, to_torch_device, to_torch_dtype
from thunder_tracing.tensors._metadata_writes import MetadataWrite
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.histories import base_of, has_parted_views, is_unconnected, was_recorded
from thunder_tracing.tensors.overwrites import record_overwritten
from thunder_tracing.tensors.storage import is_out_of_reach
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor


@dataclass(frozen=True, slots=True, eq=False)
class NewLeaf:
    """Makes a leaf that requires grad and has no contents yet.

    Args:
        shape, dtype, device: of the tensor.
        cls: ``torch.Tensor``, or a class of parameters.
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    cls: type

    def __call__(self) -> torch.Tensor:
        """Return the leaf."""
        with torch.inference_mode(False), torch.no_grad():
            made = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        return made.requires_grad_() if self.cls is torch.Tensor else torch.Tensor._make_subclass(self.cls, made, True)


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """What makes a traced tensor a leaf that requires grad.

    Args:
        input: the leaf: one without contents, or the caller's tensor, as what the program takes gradients of.
        is_view: whether autograd takes it for a view. Other views of what it views have no part in its history.
    """

    input: Input
    is_view: bool


class Leaves:
    """Tells which tensors are leaves, and makes some.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._begun: dict[int, tuple[TracedTensor, Leaf]] = {}
        self.retaining: list[TracedTensor] = []

    def begin(self, tensor: TracedTensor) -> None:
        """Make a tensor a leaf that requires grad."""
        if not tensor._proxy.dtype.is_inexact:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        if is_out_of_reach(tensor):
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        if has_parted_views(tensor):
            raise AcquisitionError(
                "a tensor is made to require grad of which another one was a view, before that was given other memory "
                "by .data, which is not supported: PyTorch takes it for a view still, which requires grad then, too"
            )
        builder = self._calls.builder
        leaf: Leaf | None = self._begun.get(id(tensor), (None, None))[1]
        is_view = base_of(tensor) is not tensor or self._calls.is_view(tensor)
        if tensor.source is not None:
            leaf = leaf or _leaf_outside(builder, tensor, is_view)
        if tensor.source is not None or is_view:
            self._calls.change(tensor, MetadataWrite(T.requires_grad_, (), {}, True), T.detach)
        value = self._calls.value(tensor)
        leaf = leaf or _make_leaf(builder, tensor, value, is_view)
        self._begun[id(tensor)] = (tensor, leaf)
        if all([i is not leaf.input for i in self._calls.inputs]):
            self._calls.inputs.append(leaf.input)
        tensor._leaf = leaf
        tensor._proxy = record_overwritten(builder, leaf.input.proxy, value, False)  # its gradient is the leaf's

    def end(self, tensor: TracedTensor) -> None:
        """Make a leaf that requires grad one that does not."""
        if tensor.source is not None:
            self._calls.change(tensor, MetadataWrite(T.requires_grad_, (False,), {}, True), T.detach)
        else:
            tensor._proxy = self._calls.on_values(T.detach, (self._calls.value(tensor),), {})
        tensor._leaf = None

    def is_leaf(self, tensor: TracedTensor) -> bool:
        """Whether eager would call the tensor a leaf."""
        if not self._calls.value(tensor).requires_grad or is_unconnected(tensor):
            return True
        if tensor._leaf is not None or tensor._variable and not tensor._memory.version:
            return True
        if was_recorded(tensor) or tensor.given is None:
            return False
        return bool(self._calls.ask(tensor, "is_leaf", tensor.given.is_leaf))

    def is_taken_for_leaf(self, tensor: TracedTensor) -> bool:
        """Whether autograd takes a view for a leaf since nothing read it after its base got a history."""
        return not tensor._has_node and (base_of(tensor) is not tensor or self._calls.is_view(tensor))

    def views_a_leaf(self, tensor: TracedTensor) -> bool:
        """Whether autograd takes an input for a view of a leaf."""
        given = tensor.given
        if given is None or not self._calls.is_view(tensor):
            return False
        base: Any = given._base
        viewed = Source(tensor.source, "attribute", "_base")
        for name in ("requires_grad", "is_leaf"):
            guard = ValueGuard(Source(viewed, "attribute", name), getattr(base, name))
            self._calls.external.require(guard, id(tensor.source), "_base", name)
        return bool(base.requires_grad and base.is_leaf)

    def possible(self) -> list[TracedTensor]:
        """Return the tensors that may be leaves which require grad."""
        outside = [t for t in self._calls.from_outside() if hasattr(t, "_input") and t._input.proxy.requires_grad]
        found = {id(t): t for t in (*outside, *[t for t, _ in self._begun.values()])}
        return [t for t in found.values() if self._calls.value(t).requires_grad]

    def retain(self, tensor: TracedTensor) -> None:
        """Let a tensor that the program computed keep the gradients that come to it."""
        if not tensor._retains:
            tensor._retains = True
            self.retaining.append(tensor)

    def gradient(self, tensor: TracedTensor) -> Any:
        """Return what the ``grad`` of a tensor is."""
        if "_gradient" not in tensor.__dict__:
            if tensor.given is None:
                return None
            tensor._gradient = self._calls.external.read(tensor.source, "attribute", "grad", tensor.given.grad)
        return tensor._gradient

    def set_gradient(self, tensor: TracedTensor, value: object) -> None:
        """Make ``value`` the ``grad`` of a tensor."""
        if tensor.source is None:
            tensor._gradient = value
            return
        before = self.gradient(tensor)
        self._calls.external.mutations.note("attribute", tensor, "_gradient", before)
        tensor._gradient = value


def _make_leaf(builder: Builder, tensor: TracedTensor, value: TensorProxy, is_view: bool) -> Leaf:
    """Return what makes ``tensor``, which holds ``value``, a leaf that requires grad.

    Raises:
        AcquisitionError: its sizes are symbolic, so that it cannot be made before the computation.
    """
    shape: Any = tuple(value.shape)
    if not all([isinstance(size, int) for size in shape]):
        raise AcquisitionError(
            f"the program makes a leaf of shape {shape}, and leaves are made before it runs, when their sizes have to "
            "be known; make it outside, or of a tensor whose sizes are the same in each call"
        )
    new = NewLeaf(shape, to_torch_dtype(value.dtype), to_torch_device(value.device), tensor._stands_for)
    return Leaf(_new_input(builder, new, "leaf", "new leaf"), is_view)


def unseen_leaf(builder: Builder) -> Input:
    """Return an unseen leaf: what gets the gradients of values that are connected to nothing."""
    return _new_input(builder, NewLeaf((), torch.float32, torch.device("cpu"), torch.Tensor), "unseen", "unseen leaf")


def _new_input(builder: Builder, new: NewLeaf, prefix: str, name: str) -> Input:
    with torch._C.DisableTorchFunction():
        example = new()
        source = Source(held(new, name), "call", ())
        return Input(proxy_of(example, builder.names.fresh(prefix)), source, None, metadata_of(example), example)


def _leaf_outside(builder: Builder, tensor: TracedTensor, is_view: bool) -> Leaf:
    """Return what makes ``tensor``, which stands for one of the caller's, a leaf that requires grad.

    Raises:
        AcquisitionError: the caller's tensor is none.
    """
    given: Input | None = tensor.__dict__.get("_input")
    example = tensor.given
    if example is None or not example.is_leaf:
        raise AcquisitionError(
            f"{tensor.source} is detached in place and then made to require grad, which is not supported; "
            "use detach() and another name"
        )
    if given is not None and given.proxy.requires_grad:
        return Leaf(given, is_view)
    with torch._C.DisableTorchFunction():
        name, slot, metadata = builder.names.fresh("leaf"), None, metadata_of(example)
        if given is None:
            proxy = proxy_of(example, name)
        else:  # of the same sizes, open ones too
            proxy, slot, metadata = given.proxy.renamed(name), given.slot, given.metadata
        proxy.requires_grad = True
        return Leaf(Input(proxy, tensor.source, slot, metadata, example, becomes_leaf=True), is_view)


def as_leaf(tensor: torch.Tensor) -> torch.Tensor:
    """Return a result that nothing is connected to, which requires grad as what it views does."""
    return tensor.requires_grad_()


@dataclass(frozen=True, slots=True, eq=False)
class AsClass:
    """Makes a tensor one of a subclass, such as ``torch.nn.Parameter``, of the same memory.

    Args:
        cls: the class.
    """

    cls: type

    def __call__(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the other tensor."""
        return tensor if type(tensor) is self.cls else tensor.as_subclass(self.cls)

    @property
    def __name__(self) -> str:
        return f"as_{self.cls.__name__}"
