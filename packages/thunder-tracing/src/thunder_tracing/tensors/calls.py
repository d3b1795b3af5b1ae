"""What records torch functions called on traced tensors, as the parts of a tracer are handed it.

A call is recorded on values, unless something else does it. What parts ask of one another by this is declared here, and
put together in :class:`thunder_tracing.Tracer`.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol

import torch
from torch.utils._pytree import tree_leaves

from thunder_guards import ValueGuard
from thunder_guards.errors import AcquisitionError, DataDependentError, UnknownTensorError, UnsupportedOperationError
from thunder_guards.kinds import NumPyScalar, is_array
from thunder_guards.memory import part_of
from thunder_guards.program import Effect, Input, UnseenWrites
from thunder_guards.sources import Source
from thunder_guards.symbolic import NumberInput
from thunder_ir import (
    BoundSymbol,
    Builder,
    OpTags,
    Proxy,
    Symbol,
    TensorProxy,
    ThunderError,
    UnknownNumberError,
)
from thunder_torch import (
    DataDependentShapeError,
    Mutation,
    UnknownMetadataError,
    UnsupportedMutationError,
    call,
    functionalise,
    view_argument,
    viewed,
)
from thunder_torch.metadata import MetaOf
from thunder_torch.names import in_own_names, name_of, tensors_by_position
from thunder_torch.traits import Trait, has_trait
from thunder_tracing.external_state import ExternalState
from thunder_tracing.tensors._handlers import HANDLERS
from thunder_tracing.tensors._masks import Places, selected_by_places
from thunder_tracing.tensors._metadata_writes import MetadataWrite, Stages
from thunder_tracing.tensors.array_calls import Array
from thunder_tracing.tensors.histories import check_reads, is_unconnected
from thunder_tracing.tensors.known_values import KnownValues, ValueSpecialisation
from thunder_tracing.tensors.layouts import Layouts
from thunder_tracing.tensors.levels import Levels
from thunder_tracing.tensors.producers import Producers
from thunder_tracing.tensors.shadows import Shadows
from thunder_tracing.tensors.sizes import SymbolicSize
from thunder_tracing.tensors.storage import (
    Recorder,
    View,
    current_value,
    own_storage,
    share_storage,
)
from thunder_tracing.tensors.symbolic_numbers import NumbersMet, at_hand, with_numbers
from thunder_tracing.tensors.tensor_classes import is_handed_on, keeps_classes
from thunder_tracing.tensors.traced_tensor import TracedTensor, symbolic_traced_tensor

T = torch.Tensor


class LeavesOfAutograd(Protocol):
    """Which tensors are leaves: see :class:`thunder_tracing.tensors.leaves.Leaves`."""

    def begin(self, tensor: TracedTensor) -> None:
        """Make a tensor a leaf that requires grad."""


class ArraysOfNumPy(Protocol):
    """What shares memory with arrays: see :class:`thunder_tracing.tensors.constants.Arrays`."""

    def as_index(self, key: object) -> Any:
        """Return an index with tensors in the place of arrays."""

    def sharing(self, array: object, tensor: torch.Tensor) -> TracedTensor:
        """Return what stands for a tensor that shares the memory of an array."""

    def written(self) -> list[tuple[object, TracedTensor]]:
        """Return the program's own arrays whose memory it wrote to by tensors, each with the tensor."""

    def may_change(self, array: Array) -> bool:
        """Whether what is in an array may be other than while the program is acquired: others hold it, or a tensor."""

    def views(self) -> list[tuple[object, object, Callable[..., Any]]]:
        """Return views that the program made of arrays, each with the array and how it is made again."""

    def is_of_the_run(self, array: object) -> None:
        """Begin again where the program writes what only its run brings to an array that it has computed, or a view."""


class Calls(Recorder):
    """Records torch functions called on traced tensors, and knows what stands for which tensor.

    Args:
        builder: of the trace being recorded.
        replacements: which functions executors replace, by which operators.
    """

    builder: Builder
    external: ExternalState
    later: list[Effect]
    layouts: Layouts
    leaves: LeavesOfAutograd
    levels: Levels
    arrays: ArraysOfNumPy
    stages: Stages
    changes: int
    regions: int
    """How many parts of custom functions this is in the midst of recording."""
    hooks: dict[str, list[Callable[..., Any]]]
    rules: dict[Symbol, Callable[..., Any]]
    """Derivatives that the program brings along."""
    spent: set[str]
    reached: set[int]
    symbolic = False
    allows_unknown = False
    any_class = False
    """Whether there are tensors of classes that PyTorch hands on to results."""
    specialised_on = ValueSpecialisation.NONE
    known: KnownValues | None = None
    shadows: Shadows
    refusal: ThunderError | None = None
    """Why there is no program, where those who were told so may not hand it on."""

    def __init__(self, builder: Builder, replacements: Mapping[Any, Symbol] = MappingProxyType({})) -> None:
        self.builder = builder
        self.replacements = replacements
        self._symbolic_traced = symbolic_traced_tensor()
        self.inputs: list[Input] = []
        self.numbers: list[NumberInput] = []
        self._tensors: dict[int, TracedTensor] = {}
        self.met_numbers = False
        self.changes = self.regions = 0
        self.hooks: dict[str, list[Callable[..., Any]]] = {}
        self.stages = Stages()
        self.reached: set[int] = set()
        self.unseen = UnseenWrites()
        self.producers = Producers(builder)
        self.places = Places(self.producers, lambda mask: self.on_values(torch.where, (mask,), {}))

    # --- the way in ------------------------------------------------------------------------------------------------

    def __call__(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what ``function`` does: answer from metadata, write, or record."""
        try:
            return self._do(function, args, kwargs)
        except AcquisitionError as error:
            if error.operation is None:
                error.operation = name_of(function)
            raise
        except (UnknownNumberError, DataDependentShapeError) as error:
            found = DataDependentError(str(error)).with_traceback(error.__traceback__)
            found.operation = name_of(function)
            raise found from None
        except (UnknownMetadataError, UnsupportedMutationError) as error:
            unsupported = UnsupportedOperationError(
                f"{error}. Compute it outside of the compiled function and pass it in, or compile the parts before and "
                "after it on their own"
            )
            unsupported.operation = name_of(function)
            raise unsupported from error

    def _do(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args, kwargs = tensors_by_position(function, args, in_own_names(function, kwargs))
        handler = HANDLERS.get(function)
        if handler is not None:
            result = handler(self, *args, **kwargs)
        else:
            result = self.write_or_record(function, args, kwargs)
        return self._of_classes(function, (args, kwargs), result) if self.any_class else result

    def _of_classes(self, function: Any, given: Any, result: Any) -> Any:
        """Return the result of a call as of the class that PyTorch makes it of, for what it is given."""
        tensors = [leaf for leaf in tree_leaves(given) if isinstance(leaf, TracedTensor)]
        cls = next((t._stands_for for t in tensors if is_handed_on(t._stands_for)), None)
        if cls is not None and not keeps_classes(function) and isinstance(result, (torch.Tensor, tuple, list)):
            for made in tree_leaves(result):
                if isinstance(made, TracedTensor) and not any([made is t for t in tensors]):
                    made._stands_for = cls
        return result

    def write_or_record(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a torch function does that nothing answers: write if it writes, else record it."""
        with torch._C.DisableTorchFunctionSubclass():
            mutation = functionalise(function, args, kwargs)
            if mutation is not None:
                with torch.set_grad_enabled(self.records and mutation.tracked):
                    return self.write_call(mutation)
            return self.record(function, args, kwargs)

    def record(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], fixed: str | None = None) -> Any:
        """Record a call that writes nothing; return traced tensors for its results.

        Args:
            function, args, kwargs: the call.
            fixed: why autograd cannot write the history of the view again that it makes.
        """
        args, kwargs = with_numbers(function, args, kwargs, self.number_of)
        read = (*args, *kwargs.values())
        if kwargs.get("requires_grad") is True and function not in HANDLERS:  # what makes tensors makes a leaf
            made = self.record(function, args, {**kwargs, "requires_grad": False})
            self.leaves.begin(made)
            return made
        values, named = self.values(args), self.values(kwargs)
        if not named:
            function, values = selected_by_places(function, values, self.places)
        output = self.on_values(function, values, named)
        index = view_argument(function) if function is not part_of else 0
        if index is None or index >= len(args) or not isinstance(args[index], torch.Tensor):
            if not has_trait(function, Trait.SHAPE_ONLY):
                check_reads(function, output, read)
            # of some sizes it computes nothing, and yet returns another tensor
            if values and output is values[0] and isinstance(output, TensorProxy):
                output = self.on_values(torch.clone, (output,), {})
            return self.wrapped(output, args)
        parent = self.traced(args[index])
        known_layout = parent._proxy.strides is not None and function is not part_of
        if output is values[index] or parent._memory.version or not known_layout:
            layouts = self.layouts.shared(function, values, named, parent)
            if isinstance(output, TensorProxy) and layouts[0][1]:
                return parent
            shares = [shared for shared, _ in layouts]
        else:
            known = (at_hand(values), at_hand(named)) if self.symbolic else (values, named)
            shares = [v is not None for v in viewed(function, *known)]
        check_reads(function, output, read)
        view = View(parent, function, values[1:], named, None, torch.is_grad_enabled(), fixed=fixed)
        return self._wrap_views(output, shares, parent, view)

    def on_values(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a call on proxies and return its output proxies."""
        if self.levels.gone:
            self.levels.check((args, kwargs))
        bound = self.builder.bound_symbols
        count = len(bound)
        output = self.settled(lambda: call(self.under_settings(self.replacement_of(function)), args, kwargs))
        self.shadows.note(function, args, kwargs, output)
        if self.known is not None and not self.levels.stack:
            self.known.note(function, args, kwargs, output, bound[count:])
            return (
                self.known.written_out(output, self.on_values)
                if self.specialised_on is ValueSpecialisation.ALL
                else output
            )
        return output

    @property
    def records(self) -> bool:
        """Whether autograd records what is called: in inference mode, only within levels of ``torch.func``."""
        return torch.is_grad_enabled() and (bool(self.levels.stack) or not torch.is_inference_mode_enabled())

    def settled(self, record: Callable[[], Any]) -> Any:
        """Return what ``record`` does, once it is said of what it recorded whether autograd would record it."""
        bound = self.builder.bound_symbols
        count = len(bound)
        output = record()
        if len(bound) > count:
            _settle_requires_grad(bound[count:], self.records)
            if self.levels.stack:
                self.levels.check_recorded(bound[count:])
        return output

    def number_of(self, tensor: torch.Tensor) -> Any:
        """Return a tensor of one integer as a number, where PyTorch takes it for one."""
        known = self.known_value(tensor)
        if known is not None:
            return known.item()
        self.hand_out_number()
        return self.on_values(T.item, (self.value(tensor),), {})

    def known_value(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return what a tensor holds, for Python to compute with; ``None`` if only the run of the program tells."""
        return self.known_truth(tensor) if self.specialised_on is ValueSpecialisation.ALL else None

    def known_truth(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return what a tensor holds, for Python to branch on; ``None`` if only the run of the program tells."""
        return self.known_of_inputs(tensor)

    def known_of_inputs(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return what a tensor holds that is computed of integers among the inputs, if the program is one for these."""
        known = None if self.known is None else self.known.ask(self.value(tensor))
        if known is not None:
            self.changes += 1  # other modules called in the same way may be told otherwise
        return known

    def truth(self, tensor: torch.Tensor) -> bool | None:
        """Return whether a tensor is true, for Python to branch on; ``None`` if only the run of the program tells."""
        known = self.known_truth(tensor)
        return None if known is None else bool(known)

    def replacement_of(self, function: object) -> Any:
        """Return what an executor wants to be called in place of ``function``, or ``function``."""
        return self.replacements.get(function, function) if self.replacements else function

    def enter_checkpoint(self) -> frozenset[Any]:
        """Begin a region that the backward program computes again; return the tags of before."""
        before = self.builder.tags
        self.builder.tags = before | {OpTags.RECOMPUTE}
        return before

    def leave_checkpoint(self, before: frozenset[Any]) -> None:
        """End the region."""
        self.builder.tags = before

    # --- values and traced tensors ---------------------------------------------------------------------------------

    def values(self, tree: Any) -> Any:
        """Return ``tree`` with each tensor replaced by the proxy of what it holds now."""
        if isinstance(tree, torch.Tensor):
            return self.value(tree)
        cls = tree.__class__
        if cls is tuple or cls is list:
            return cls([self.values(item) for item in tree])
        if cls is SymbolicSize:
            return tuple(tree)
        if cls is torch.Generator:
            self.check_generator(tree)
        if cls is dict:
            return {key: self.values(item) for key, item in tree.items()}
        if isinstance(tree, tuple) and hasattr(tree, "_make"):
            return tree._make([self.values(item) for item in tree])
        if cls.__module__ == "numpy" and isinstance(tree, NumPyScalar):
            return _as_pytorch_takes(tree)
        if is_array(tree):
            raise AcquisitionError("an array of NumPy is no tensor; make one of it (torch.from_numpy, torch.as_tensor)")
        if cls is slice:
            ends = (tree.start, tree.stop, tree.step)
            return slice(*[self.number_of(end) if isinstance(end, torch.Tensor) else end for end in ends])
        if cls in (int, bool) or isinstance(tree, (Proxy, torch._C.ScriptObject)):
            return tree
        if hasattr(cls, "__index__"):
            return operator.index(tree)  # as PyTorch took it, and was watched to take it, before it asked for this
        return tree

    def value(self, tensor: torch.Tensor) -> TensorProxy:
        """Return the proxy of what a tensor holds now."""
        traced = self.traced(tensor)
        held = current_value(traced, self)
        if torch.is_grad_enabled() and is_unconnected(traced):
            held = traced._shown = self.unconnected(held)
        if self.levels.gone:
            self.levels.check(held)
        return held

    def requires_grad(self, tensor: TracedTensor) -> bool:
        """Whether eager would say that a tensor requires grad."""
        return current_value(tensor, self).requires_grad or is_unconnected(tensor)

    def under_settings(self, function: object) -> Any:
        """Return ``function`` such that it runs as the program has set PyTorch here."""
        return function

    def traced(self, tensor: torch.Tensor) -> TracedTensor:
        """Return the traced tensor that user code should have got in place of ``tensor``."""
        if isinstance(tensor, TracedTensor):
            return tensor
        found = self.met(tensor)
        if found is None:
            raise UnknownTensorError(
                f"a {type(tensor).__name__} of shape {tuple(tensor.shape)} reached an operation by a way that cannot "
                f"be guarded; {_way_out(tensor)}"
            )
        return found

    def met(self, tensor: torch.Tensor) -> TracedTensor | None:
        """Return what stands for a tensor that user code got hold of; ``None`` if it reached it unseen."""
        return self.known_input(tensor)

    def wrap(self, proxy: TensorProxy) -> TracedTensor:
        """Return a traced tensor, with memory of its own, for a proxy that the trace defines."""
        tensor = self.new_traced(proxy)
        own_storage(tensor)
        return tensor

    def new_traced(self, proxy: TensorProxy, stands_for: type = torch.Tensor) -> TracedTensor:
        """Return a traced tensor that belongs to no storage yet."""
        shadow = self.shadows.of(proxy)
        if shadow is not None:
            stands_for = type(shadow)
        elif stands_for is not T and is_handed_on(stands_for):
            self.any_class = True
        if self.allows_unknown:
            tensor: TracedTensor = self._symbolic_traced(proxy, stands_for)
            tensor.__dict__["_calls"] = self
        else:
            tensor = TracedTensor(proxy, stands_for)
        if shadow is not None:
            tensor._shadow = shadow
        return tensor

    def wrapped(self, output: object, args: tuple[Any, ...]) -> Any:
        """Wrap tensors that have memory of their own; an argument that came back is the very same tensor."""
        if isinstance(output, TensorProxy):
            for a in args:
                if isinstance(a, TracedTensor) and (a._proxy is output or a._shown is output):
                    return a
            return self.wrap(output)
        return _map_items(output, lambda item, index: self.wrapped(item, args))

    def _wrap_views(self, output: Any, shares: list[bool], parent: TracedTensor, view: View) -> Any:
        if isinstance(output, TensorProxy):
            if not shares[0]:
                # eager copies what has another layout than the value here
                copied = output is parent._proxy or output is parent._shown
                layout = {"memory_format": _memory_format(view)}
                return self.wrap(self.on_values(torch.clone, (output,), layout) if copied else output)
            if output.requires_grad and not view.tracked:  # of some sizes it computes nothing
                output = self.on_values(T.detach, (output,), {})
            tensor = self.new_traced(output)
            share_storage(tensor, view)
            return tensor

        def wrap(item: object, index: int) -> Any:
            return self._wrap_views(item, shares[index:], parent, replace(view, index=index))

        return _map_items(output, wrap)

    def check_generator(self, generator: torch.Generator) -> None:
        """Refuse a generator of random numbers that the program made: the next call would go on with it."""

    # --- what is outside ---------------------------------------------------------------------------------------------

    def known_input(self, tensor: torch.Tensor) -> TracedTensor | None:
        """Return what stands for an external tensor, if that was read before."""
        return self._tensors.get(id(tensor))

    def take_in(self, tensor: torch.Tensor, traced: TracedTensor) -> None:
        """Let ``traced`` stand for an external tensor."""
        self._tensors[id(tensor)] = traced
        traced.__dict__.update(tensor.__dict__)

    def within(self, given: Input, whole: Input) -> Input:
        """Say of an input that it is a part of the memory that another covers."""
        made = replace(given, memory=whole.proxy)
        self.inputs[:] = [made if i is given else i for i in self.inputs]
        return made

    def ask(self, tensor: TracedTensor, name: str, value: object, call: bool = False) -> Any:
        """Guard what PyTorch says of an external tensor, and return it."""
        source = tensor.source
        if source is not None:
            said = Source(source, "attribute", name)
            self.external.require(ValueGuard(Source(said, "call", ()) if call else said, value), id(source), name)
        return value

    def is_view(self, tensor: TracedTensor) -> bool:
        """Whether autograd takes an external tensor for a view."""
        given = tensor.given
        return given is not None and bool(self.ask(tensor, "_is_view", given._is_view(), call=True))

    def hand_out_number(self) -> None:
        """Prepare for user code that holds a number which only the run of the program tells: begin again, if need be.

        Raises:
            NumbersMet: what user code does with such numbers is not looked after in this attempt.
        """
        if not self.allows_unknown:
            self.met_numbers = True
            raise NumbersMet

    def interpreted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` such that what it does is seen when it is called from here."""
        return function

    # --- what its parts ask of one another ---------------------------------------------------------------------------

    @abstractmethod
    def write_call(self, mutation: Mutation) -> Any:
        """Do what a function that writes does."""

    @abstractmethod
    def change(
        self,
        target: TracedTensor,
        write: MetadataWrite,
        view: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Make a tensor a view of what it was."""

    @abstractmethod
    def root(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        """Make an external tensor an input, with memory of its own."""

    @abstractmethod
    def from_outside(self) -> list[TracedTensor]:
        """Return what stands for external tensors."""

    @abstractmethod
    def inner_gradients(self, *args: Any, is_grads_batched: bool = False, **kwargs: Any) -> tuple[Any, ...]:
        """Record gradients, asked for as of ``torch.autograd.grad``."""

    @abstractmethod
    def inner_backward(self, *args: Any, **kwargs: Any) -> None:
        """Do what ``torch.autograd.backward`` does."""


def _way_out(tensor: torch.Tensor) -> str:
    if type(tensor).__name__ == "DTensor":  # by name, as importing it takes long
        return (
            "import thunder_distributed, which lets programs hold what DTensor.from_local() makes, as the hooks of "
            "parallelize_module do, or distribute tensors before the call"
        )
    return "pass it as an argument, or keep it in an attribute, a closure, a global or a container of these"


def _as_pytorch_takes(scalar: Any) -> Any:
    """Return a scalar of NumPy's as the number that PyTorch's functions take it for: those of truth are floats, too."""
    if isinstance(scalar, complex):
        return complex(scalar)
    kind = scalar.dtype.kind
    return operator.index(scalar) if kind in "iu" else float(scalar) if kind in "bfc" else scalar.item()


def _memory_format(view: View) -> torch.memory_format:
    """Return how a call that may return its argument lays out a copy."""
    given = [v for v in (*view.args, *view.kwargs.values()) if isinstance(v, torch.memory_format)]
    return given[0] if given else torch.contiguous_format if view.function is T.contiguous else torch.preserve_format


def _map_items(output: object, wrap: Callable[[Any, int], Any]) -> Any:
    """Wrap the items of a tuple, list or dict of results; anything else is no tensor."""
    if isinstance(output, (tuple, list)):
        items = [wrap(item, index) for index, item in enumerate(output)]
        return output._make(items) if hasattr(output, "_make") else type(output)(items)
    if isinstance(output, dict):
        return {key: wrap(item, index) for index, (key, item) in enumerate(output.items())}
    return output


def _settle_requires_grad(bounds: list[BoundSymbol], tracked: bool) -> None:
    """Say of each output whether autograd would record it."""
    for bound in bounds:
        wanted = (
            tracked
            and not bound.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE)
            and not has_trait(bound.symbol, Trait.SHAPE_ONLY)
            and any(p.requires_grad for p in bound.inputs if isinstance(p, TensorProxy))
        )
        for proxy in bound.outputs:
            if isinstance(proxy, TensorProxy):
                told = proxy.requires_grad or not isinstance(bound.symbol.meta, MetaOf)
                proxy.requires_grad = wanted and proxy.dtype.is_inexact and told
