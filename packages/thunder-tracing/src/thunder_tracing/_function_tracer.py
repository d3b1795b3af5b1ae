"""The tracer of a function that CPython runs: what it read, returned and wrote, as inputs and outputs of a trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError, DataDependentError, in_users_code
from thunder_guards.own_code import of_library
from thunder_guards.program import Effect
from thunder_guards.sources import Source, held
from thunder_ir import (
    Location,
    Proxy,
    TensorProxy,
    Trace,
    UnknownNumberError,
    flat_proxies,
    recording,
    substitute,
)
from thunder_ir.passes import dead_code_elimination
from thunder_prims import tidy
from thunder_tracing._arguments import Arguments
from thunder_tracing._seen import SEEN
from thunder_tracing.derivatives.written_out import computes_gradients, with_gradients_written_out
from thunder_tracing.outcome import Outcome
from thunder_tracing.tensors.foreach import of_lists
from thunder_tracing.tensors.storage import ViewStep, current_value
from thunder_tracing.tensors.symbolic_numbers import NumbersMet
from thunder_tracing.tensors.traced_tensor import AcquisitionMode, TracedTensor, is_acquiring
from thunder_tracing.tracer import ARGS, Tracer

T = torch.Tensor
HOLDS_MORE = {
    "metadata": "changes the shape, the history or the memory of an input itself",
    "memory": "gives an input other memory",
    "leaf": "makes a leaf",
    "attribute": "sets an attribute of an input, such as its gradient",
}
"""What a function may do that a trace cannot hold, by the kind of the effect."""


@dataclass(frozen=True, slots=True, eq=False)
class TracedInput:
    """One input of the trace of a function.

    Args:
        proxy: what stands for it in the trace.
        argument: which of the leaves of the arguments it is, as ``torch.utils._pytree`` counts them; ``None`` for a
            tensor that the function holds itself, such as a parameter of its module.
        tensor: that tensor; ``None`` for an argument.
    """

    proxy: TensorProxy
    argument: int | None
    tensor: torch.Tensor | None


@dataclass(frozen=True, slots=True, eq=False)
class TracedOutput:
    """One leaf of what a function returns.

    Args:
        value: its proxy in the trace, or the leaf itself if it is no tensor.
        input: index of the input whose memory it shares: the caller sees it change when that is written to. ``None``
            for a tensor with memory of its own.
        steps: how it is made of that input; none for the input itself.
        apart: whether it has a history of its own in autograd, and not that of the input.
    """

    value: Any
    input: int | None = None
    steps: tuple[ViewStep, ...] = ()
    apart: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class TracedWrite:
    """One input that a function writes to.

    Args:
        input: its index.
        value: what it holds afterwards, a proxy of the trace.
        tracked: whether autograd saw a write of what requires grad.
    """

    input: int
    value: TensorProxy
    tracked: bool


@dataclass(frozen=True, slots=True)
class SymbolicNumbers:
    """Which numbers among the leaves of a function's arguments a trace makes dynamic.

    Args:
        sizes: for a leaf that is a tensor, its symbolic dimensions.
        numbers: the leaves that are symbolic integers.
    """

    sizes: Mapping[int, frozenset[int]] = field(default_factory=dict)
    numbers: frozenset[int] = frozenset()


class FunctionTracer(Tracer):
    """Records a function that CPython runs. Tensors that are no arguments become inputs when they are met.

    Args:
        function: a module among these names its parameters and buffers.
        symbolic_numbers: the numbers that are dynamic; ``None`` for none.
        written: storages to which the function writes and which several inputs share.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        symbolic_numbers: SymbolicNumbers | None = None,
        written: Collection[int] = (),
    ) -> None:
        self.state = Arguments()
        self.symbolic_numbers = symbolic_numbers or SymbolicNumbers()
        super().__init__(self.state, written, symbolic=symbolic_numbers is not None)
        self.builder.locate = location
        self._held: list[torch.Tensor] = []
        self._names = dict(_named_tensors(function))

    def __call__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a torch function does."""
        if torch._C._are_functorch_transforms_active():
            raise AcquisitionError(
                "torch.func transforms a function inside of one that is traced without an interpreter; trace what is "
                "transformed, and transform the trace"
            )
        if function is torch.autograd.grad:
            return self.autograd_grad(*args, **kwargs)
        one_by_one = of_lists(self, function)
        return one_by_one(*args, **kwargs) if one_by_one is not None else super().__call__(function, args, kwargs)

    def argument(self, leaf: object, index: int) -> Any:
        """Return what the function gets in the place of a leaf of its arguments."""
        source = Source(ARGS, "item", index)
        if isinstance(leaf, T):
            return self.input(leaf, source, None)
        return self.number(leaf, source) if index in self.symbolic_numbers.numbers else leaf

    def symbolic_dimensions(self, tensor: torch.Tensor, source: Source) -> frozenset[int]:
        """Return the dimensions of an argument that are dynamic."""
        return self.symbolic_numbers.sizes.get(source.key, frozenset()) if source.base is ARGS else frozenset()

    def met(self, tensor: torch.Tensor) -> TracedTensor | None:
        """Return what stands for a tensor; one that the function holds itself becomes an input."""
        known = self.known_input(tensor)
        if known is not None:
            return known
        self._held.append(tensor)
        return self.input(tensor, held(tensor, self._names.get(id(tensor), "held")), None)

    @contextmanager
    def recorded(self, call: Callable[[list[Any]], Any], leaves: Sequence[Any]) -> Iterator[Any]:
        """Record what a function does with these leaves of its arguments, and go on with what it returns.

        Raises:
            AcquisitionError: the function does what no program holds, or is called where another one is traced.
        """
        if is_acquiring():
            raise AcquisitionError("a function is traced inside of one that is traced; trace it outside")
        try:
            with refusals_in_users_code():
                with torch._C.DisableTorchFunction(), recording(self.builder):
                    given = [self.argument(leaf, i) for i, leaf in enumerate(leaves)]
                seen = SEEN.by(self.custom_functions.apply, self.inner_backward)  # what of PyTorch tells no mode
                with recording(self.builder), seen, AcquisitionMode(self):
                    result = call(given)
                with torch._C.DisableTorchFunction(), recording(self.builder):
                    self.arrays.check()
                    self.shared.require_apart()
                    yield result
        finally:
            self.let_go()

    def traced_outputs(self, results: Sequence[Any]) -> tuple[Trace, tuple[TracedOutput, ...], tuple[TracedWrite, ...]]:
        """Return the trace, its outputs, and what the function wrote, when it has returned these leaves."""
        tensors = [self.traced(r) for r in results if isinstance(r, T)]
        if self.shared.written():
            raise AcquisitionError(
                "the function writes to an input that shares memory with another; pass a clone() of one of them"
            )
        outcome = Outcome(self, [])
        index = {i.proxy.name: k for k, i in enumerate(self.inputs)}
        writes = tuple([_write(effect, index) for effect in outcome.effects])
        outputs = iter([self._output(t, index) for t in tensors])
        made = tuple([next(outputs) if isinstance(r, T) else TracedOutput(r) for r in results])
        values = [o.value for o in made if isinstance(o.value, Proxy)]
        self.levels.check(values)
        trace = self.computation(()).replace(output=(*values, *[w.value for w in writes]))
        trace, renamed = self.without_gradients(trace)
        made = tuple([replace(o, value=substitute(o.value, renamed)) for o in made])
        writes = tuple([replace(w, value=substitute(w.value, renamed)) for w in writes])
        return dead_code_elimination(trace), made, writes

    def without_gradients(self, trace: Trace) -> tuple[Trace, dict[str, Any]]:
        """Return a trace with the calls of gradients written out, and what stands for values by their names."""
        if not computes_gradients(trace.bound_symbols):
            return trace, {}
        trace, renamed = with_gradients_written_out(trace, self.rules)
        return tidy(trace), renamed

    def traced_inputs(self, leaves: Sequence[Any]) -> tuple[TracedInput, ...]:
        """Return what the inputs of the trace are.

        Raises:
            AcquisitionError: the function made a leaf, which would be one.
        """
        places = {id(leaf): i for i, leaf in reversed(list(enumerate(leaves))) if isinstance(leaf, T)}
        of_the_function = {id(tensor) for tensor in self._held}
        made = []
        for i in self.inputs:
            if id(i.example) not in places and id(i.example) not in of_the_function:
                raise AcquisitionError(f"the function {HOLDS_MORE['leaf']}; make it outside, and pass it")
            place = places.get(id(i.example))
            made.append(TracedInput(i.proxy, place, i.example if place is None else None))
        return tuple(made)

    def _output(self, tensor: TracedTensor, index: Mapping[str, int]) -> TracedOutput:
        value = current_value(tensor, self)
        if not tensor._memory.outside:
            return TracedOutput(value)
        steps: list[ViewStep] = []
        apart = False
        while "_input" not in tensor.__dict__:
            view = tensor._viewed_as
            if flat_proxies((view.args, view.kwargs)):
                raise AcquisitionError(
                    f"the function returns a view of an input that {view.function} makes of values; return a clone()"
                )
            steps.append(view.step)
            apart |= view.detaches and value.requires_grad
            tensor = view.parent
        return TracedOutput(value, index[tensor._input.proxy.name], tuple(reversed(steps)), apart)


def _write(effect: Effect, index: Mapping[str, int]) -> TracedWrite:
    if effect.kind != "tensor" or not isinstance(effect.value, TensorProxy) or effect.target.name not in index:
        what = HOLDS_MORE.get(effect.kind, "changes more than values of tensors")
        raise AcquisitionError(f"the function {what}, for which a trace of tensors has no place; do that outside")
    return TracedWrite(index[effect.target.name], effect.value, effect.key == "seen")


@contextmanager
def refusals_in_users_code() -> Iterator[None]:
    """Tell what is refused inside as what the user's code does."""
    try:
        yield
    except NumbersMet:
        raise DataDependentError("the function uses a number that is known only when the program runs") from None
    except UnknownNumberError as error:
        raise DataDependentError(str(error)) from error
    except AcquisitionError as error:
        raise in_users_code(error) from error.__cause__


def _named_tensors(function: object) -> Iterator[tuple[int, str]]:
    """Yield names for the tensors of a module that is traced, by their identity."""
    owner = function if isinstance(function, torch.nn.Module) else getattr(function, "__self__", None)
    if isinstance(owner, torch.nn.Module):
        for name, tensor in (*owner.named_parameters(), *owner.named_buffers()):
            yield id(tensor), name.replace(".", "_")


def location() -> Location | None:
    """Return where the innermost frame of the user's code stands."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and of_library(frame.f_globals):
        frame = frame.f_back
    return None if frame is None else Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)
