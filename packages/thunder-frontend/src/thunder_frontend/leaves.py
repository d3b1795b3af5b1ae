"""Leaves that a program makes, of its own tensors and of its inputs: from then on autograd records.

What the user gets is a leaf whose ``grad`` fills when results are differentiated. So a leaf without contents is made
before the computation, which takes it as an input; values are revealed in its place, and it gets them in the end.
A tensor of the caller's becomes a second input, which requires grad while the computation runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from thunder_frontend.errors import AcquisitionError
from thunder_frontend.guards import metadata_of
from thunder_frontend.overwrites import record_overwritten
from thunder_frontend.program import Input
from thunder_frontend.sources import Source, held
from thunder_frontend.traced_tensor import TracedTensor
from thunder_ir import Builder, TensorProxy
from thunder_torch.convert import proxy_of, to_torch_device, to_torch_dtype


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
        builder: of the trace being recorded.
    """

    input: Input
    builder: Builder

    def revealed(self, value: TensorProxy) -> TensorProxy:
        """Return ``value`` such that its gradient is the leaf's."""
        return record_overwritten(self.builder, self.input.proxy, value, False)


def make_leaf(builder: Builder, tensor: TracedTensor, value: TensorProxy) -> Leaf:
    """Return what makes ``tensor``, which holds ``value``, a leaf that requires grad."""
    new = NewLeaf(tuple(value.shape), to_torch_dtype(value.dtype), to_torch_device(value.device), tensor._stands_for)
    with torch._C.DisableTorchFunction():
        example = new()
        proxy = proxy_of(example, builder.names.fresh("leaf"))
        return Leaf(
            Input(proxy, Source(held(new, "new leaf"), "call", ()), None, metadata_of(example), example), builder
        )


def leaf_for_nobody(builder: Builder) -> Input:
    """Return a leaf that nobody sees: what gets the gradients of values that are connected to nothing."""
    new = NewLeaf((), torch.float32, torch.device("cpu"), torch.Tensor)
    with torch._C.DisableTorchFunction():
        example = new()
        source = Source(held(new, "unseen leaf"), "call", ())
        return Input(proxy_of(example, builder.names.fresh("unseen")), source, None, metadata_of(example), example)


def leaf_outside(builder: Builder, tensor: TracedTensor) -> Leaf:
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
        return Leaf(given, builder)
    with torch._C.DisableTorchFunction():
        proxy = proxy_of(example, builder.names.fresh("leaf"))
        proxy.requires_grad = True
        slot = given.slot if given is not None else None
        return Leaf(Input(proxy, tensor.source, slot, metadata_of(example), example, becomes_leaf=True), builder)


def fill(tensor: torch.Tensor, contents: torch.Tensor) -> None:
    """Give a tensor the memory of ``contents``."""
    tensor.data = contents


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
        return torch.Tensor._make_subclass(self.cls, tensor, False)

    @property
    def __name__(self) -> str:
        return f"as_{self.cls.__name__}"


__all__ = ["AsClass", "Leaf", "NewLeaf", "as_leaf", "fill", "leaf_for_nobody", "leaf_outside", "make_leaf"]
