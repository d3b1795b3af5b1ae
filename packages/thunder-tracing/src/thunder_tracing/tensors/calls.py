"""What the parts of a tracer may ask of it, and of one another through it: each is handed this, and no more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

import torch

from thunder_guards.program import Effect, Input
from thunder_guards.sources import Source
from thunder_guards.symbolic import NumberInput
from thunder_ir import Builder, Symbol, TensorProxy, ThunderError
from thunder_tracing.external_state import ExternalState
from thunder_tracing.tensors._metadata_writes import MetadataWrite, Stages
from thunder_tracing.tensors.layouts import Layouts
from thunder_tracing.tensors.levels import Levels
from thunder_tracing.tensors.storage import Recorder
from thunder_tracing.tensors.traced_tensor import TracedTensor


class LeavesOfAutograd(Protocol):
    """Which tensors are leaves: see :class:`thunder_tracing.tensors.leaves.Leaves`."""

    retaining: list[TracedTensor]

    def begin(self, tensor: TracedTensor) -> None:
        """Make a tensor a leaf that requires grad."""

    def end(self, tensor: TracedTensor) -> None:
        """Make a leaf that requires grad one that does not."""

    def is_leaf(self, tensor: TracedTensor) -> bool:
        """Whether eager would call the tensor a leaf."""

    def is_taken_for_leaf(self, tensor: TracedTensor) -> bool:
        """Whether autograd takes a view for a leaf since nothing read it after its base got a history."""

    def possible(self) -> list[TracedTensor]:
        """Return the tensors that may be leaves which require grad."""

    def retain(self, tensor: TracedTensor) -> None:
        """Let a tensor that the program computed keep the gradients that come to it."""

    def gradient(self, tensor: TracedTensor) -> Any:
        """Return what the ``grad`` of a tensor is."""

    def set_gradient(self, tensor: TracedTensor, value: object) -> None:
        """Make ``value`` the ``grad`` of a tensor."""


class ArraysOfNumPy(Protocol):
    """What shares memory with arrays: see :class:`thunder_tracing.tensors.constants.Arrays`."""

    def as_index(self, key: object) -> Any:
        """Return an index with tensors in the place of arrays."""

    def sharing(self, array: object, tensor: torch.Tensor) -> TracedTensor:
        """Return what stands for a tensor that shares the memory of an array."""

    def is_of_the_run(self, array: Any) -> None:
        """Begin again where the program writes what only its run brings to an array that it has computed, or a view."""


class Calls(Recorder, Protocol):
    """A tracer, as its parts see it: it records calls of torch functions, and knows what stands for which tensor."""

    builder: Builder
    external: ExternalState
    inputs: list[Input]
    numbers: list[NumberInput]
    later: list[Effect]
    layouts: Layouts
    leaves: LeavesOfAutograd
    levels: Levels
    arrays: ArraysOfNumPy
    stages: Stages
    changes: int
    hooks: dict[str, list[Callable[..., Any]]]
    rules: dict[Symbol, Callable[..., Any]]
    """Derivatives that the program brings along."""
    spent: set[str]
    reached: set[int]
    symbolic: bool
    allows_unknown: bool
    any_class: bool
    refusal: ThunderError | None
    """Why there is no program, where those who were told so may not hand it on."""

    def __call__(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a torch function does."""

    def write_or_record(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a torch function does that nothing answers: write if it writes, else record it."""

    def record(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any], fixed: str | None = None) -> Any:
        """Record a call that writes nothing; return traced tensors for its results."""

    def number_of(self, tensor: Any) -> Any:
        """Return a tensor of one integer as a number, where PyTorch takes it for one."""

    def value(self, tensor: torch.Tensor) -> TensorProxy:
        """Return the proxy of what a tensor holds now."""

    def values(self, tree: object) -> Any:
        """Return ``tree`` with each tensor replaced by the proxy of what it holds now."""

    def traced(self, tensor: torch.Tensor) -> TracedTensor:
        """Return the traced tensor that user code should have got in place of ``tensor``."""

    def wrap(self, proxy: TensorProxy) -> TracedTensor:
        """Return a traced tensor, with memory of its own, for a proxy that the trace defines."""

    def new_traced(self, proxy: TensorProxy, stands_for: type = torch.Tensor) -> TracedTensor:
        """Return a traced tensor that belongs to no storage yet."""

    def requires_grad(self, tensor: TracedTensor) -> bool:
        """Whether eager would say that a tensor requires grad."""

    def is_view(self, tensor: TracedTensor) -> bool:
        """Whether autograd takes an external tensor for a view."""

    def ask(self, tensor: TracedTensor, name: str, value: object, call: bool = False) -> Any:
        """Guard what PyTorch says of an external tensor, and return it."""

    def known_value(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return what a tensor holds, for Python to compute with; ``None`` if only the run of the program tells."""

    def known_truth(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return what a tensor holds, for Python to branch on; ``None`` if only the run of the program tells."""

    def truth(self, tensor: torch.Tensor) -> Any:
        """Return the truth of a tensor to go by; ``None`` if only the run of the program tells."""

    def hand_out_number(self) -> None:
        """Prepare for user code that holds a number which only the run of the program tells."""

    def assign(self, target: TracedTensor, value: TensorProxy, by_operator: bool = False) -> None:
        """Make ``value`` what ``target`` holds, converted to its dtype and shape as an in-place operation does."""

    def change(
        self,
        target: TracedTensor,
        write: MetadataWrite,
        view: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Make a tensor a view of what it was."""

    def metadata_write(
        self, method: object, view: object, target: TracedTensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TracedTensor:
        """Do what ``t_`` and its like do."""

    def exchange_memory(self, target: TracedTensor, other: TracedTensor) -> None:
        """Do what ``target.data = other`` does."""

    def as_class(self, cls: type, data: torch.Tensor, require_grad: bool = False) -> Any:
        """Do what ``torch.Tensor._make_subclass`` does."""

    def check_writable(self, target: TracedTensor, in_part: bool = False) -> None:
        """Refuse what autograd refuses."""

    def root(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        """Make an external tensor an input, with memory of its own."""

    def within(self, given: Input, whole: Input) -> Input:
        """Say of an input that it is a part of the memory that another covers."""

    def take_in(self, tensor: torch.Tensor, traced: TracedTensor) -> None:
        """Let ``traced`` stand for an external tensor."""

    def known_input(self, tensor: torch.Tensor) -> TracedTensor | None:
        """Return what stands for an external tensor, if that was read before."""

    def from_outside(self) -> list[TracedTensor]:
        """Return what stands for external tensors."""

    def interpreted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` such that what it does is seen when it is called from here."""

    def hook_tensor(self, tensor: TracedTensor, hook: Callable[..., Any]) -> Any:
        """Do what ``Tensor.register_hook`` does."""

    def inner_gradients(self, *args: Any, is_grads_batched: bool = False, **kwargs: Any) -> tuple[Any, ...]:
        """Record gradients, asked for as of ``torch.autograd.grad``."""

    def inner_backward(self, *args: Any, **kwargs: Any) -> None:
        """Do what ``torch.autograd.backward`` does."""
