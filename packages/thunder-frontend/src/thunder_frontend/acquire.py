"""Acquisition: from a Python callable and one call's arguments to a program."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from thunder_interpreter import interpret
from thunder_ir import Builder, TensorProxy, Trace, flat_proxies, recording
from thunder_torch import torch_language
from thunder_torch.convert import proxy_of

from thunder_frontend.errors import SharpEdgeError, SharpEdgeWarning
from thunder_frontend.examples import Examples
from thunder_frontend.guards import EnvironmentGuard, SameTensorGuard, TensorMetadata, metadata_of
from thunder_frontend.journal import MISSING, Write
from thunder_frontend.lookasides import lookasides, runs_natively
from thunder_frontend.outputs import Outside, template
from thunder_frontend.program import Effect, Input, Program
from thunder_frontend.sources import Source, held
from thunder_frontend.storage import current_value, own_storage
from thunder_frontend.torch_calls import TorchCalls
from thunder_frontend.traced_tensor import AcquisitionMode, TracedTensor
from thunder_frontend.watch import Watch
from thunder_frontend.world import World

ARGS = Source(None, "root", "args")
KWARGS = Source(None, "root", "kwargs")


class Acquisition(TorchCalls):
    """Everything that is known while one call is acquired.

    Args:
        sharp_edges: ``"allow"``, ``"warn"`` or ``"error"``: what to do about effects that a compiled program does not repeat.
    """

    def __init__(self, sharp_edges: str = "allow") -> None:
        self.world = World(self.input)
        super().__init__(Builder(language=torch_language), self._input_of)
        self.inputs: list[Input] = []
        self._tensors: dict[int, TracedTensor] = {}
        self._sharp_edges = sharp_edges
        self._examples = Examples(self.builder, self.inputs)
        self._interpretation: Any = None

    # --- tensors ---------------------------------------------------------------------------------------------------

    def input(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        """Take in a tensor of the outside world."""
        known = self._tensors.get(id(tensor))
        if known is not None:
            self._require_same(known, source)
            return known
        with torch._C.DisableTorchFunction():
            return self._new_input(tensor, source, slot)

    def _new_input(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        if isinstance(tensor, TracedTensor):
            return tensor
        proxy = proxy_of(tensor, self.builder.names.take(_input_name(source)))
        traced = TracedTensor(proxy, type(tensor))
        traced._is_leaf_outside = tensor.is_leaf
        own_storage(traced, outside=True)
        traced._input = Input(proxy, source, slot, metadata_of(tensor), tensor)
        self.inputs.append(traced._input)
        self._tensors[id(tensor)] = traced
        return traced

    def _require_same(self, known: TracedTensor, source: Source) -> None:
        first = known._input.source
        if str(first) != str(source):
            self.world.require(SameTensorGuard(source, first), str(source), str(first), "same tensor")

    def _input_of(self, tensor: torch.Tensor) -> TracedTensor | None:
        return self._tensors.get(id(tensor))

    def is_leaf(self, tensor: TracedTensor) -> bool:
        """Whether eager would call the tensor a leaf."""
        if not self.value(tensor).requires_grad:
            return True
        outside = getattr(tensor, "_input", None)
        return outside is not None and tensor._memory.version == 0 and outside.example.is_leaf

    def strides(self, tensor: TracedTensor) -> tuple[int, ...]:
        """Return the strides that the tensor will have."""
        return self._examples.of(self.value(tensor)).stride()

    def example(self, tensor: TracedTensor) -> torch.Tensor:
        """Return a tensor without data, laid out as this one will be."""
        return self._examples.of(self.value(tensor))

    # --- running ---------------------------------------------------------------------------------------------------

    def sharp(self, what: str) -> None:
        """Deal with an effect that the compiled program will not repeat."""
        message = f"the program has a sharp edge: {what}, which happens while it is compiled and not on later calls"
        if self._sharp_edges == "error":
            raise SharpEdgeError(message)
        if self._sharp_edges == "warn":
            warnings.warn(message, SharpEdgeWarning, stacklevel=2)

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Program:
        """Interpret a call and return it as a program. The outside world is left as it was."""
        now = EnvironmentGuard()
        self.world.hold(function, getattr(function, "__name__", "function"))
        traced_args = tuple(self.world.argument(a, Source(ARGS, "item", i)) for i, a in enumerate(args))
        traced_kwargs = {k: self.world.argument(a, Source(KWARGS, "item", k)) for k, a in kwargs.items()}
        run = interpret(
            function,
            lookasides=lookasides(self),
            callbacks=Watch(self.world, self.sharp),
            opaque=runs_natively,
        )
        self.builder.locate = run.location
        with ExitStack() as stack:
            stack.callback(self.world.journal.undo)
            stack.enter_context(recording(self.builder))
            stack.enter_context(AcquisitionMode(self))
            result = run(*traced_args, **traced_kwargs)
            with torch._C.DisableTorchFunction():
                return self._program(now, result)

    # --- what came out ---------------------------------------------------------------------------------------------

    def _program(self, now: Any, result: Any) -> Program:
        effects = self._tensor_effects()
        mutated = {e.target.name for e in effects}

        def tensor(value: torch.Tensor) -> Any:
            traced = self.traced(value)
            outside = getattr(traced, "_input", None)
            if outside is not None and (traced._memory.version == 0 or outside.proxy.name in mutated):
                return outside.proxy
            return current_value(traced, self.on_values)

        shaped = template(result, tensor, self.world)
        for write in self.world.journal.writes():
            effects += self._object_effect(write, tensor)
        needed = _unique(flat_proxies(_proxies_of(shaped)) + [p for e in effects for p in flat_proxies(_proxies_of(e.value))])
        inputs = {i.proxy.name for i in self.inputs}
        outputs = tuple(p for p in needed if p.name not in inputs)
        computation = Trace(
            "computation",
            tuple(i.proxy for i in self.inputs),
            tuple(self.builder.bound_symbols),
            outputs,
            tuple(self.builder.constraints),
        )
        return Program(tuple(self.inputs), tuple(self.world.guards), now, computation, shaped, tuple(effects))

    def _tensor_effects(self) -> list[Effect]:
        effects = []
        for traced in self._tensors.values():
            if traced._memory.version and traced._viewed_as is None:
                value = current_value(traced, self.on_values)
                effects.append(Effect("tensor", traced._input.proxy, None, value))
        return effects

    def _object_effect(self, write: Write, tensor: Callable[[torch.Tensor], Any]) -> list[Effect]:
        source = self.world.source_of(write.target) or held(write.target, type(write.target).__name__)
        target = Outside(source)
        now = self.world.journal.now(write)
        if write.kind == "container":
            return [Effect("refill", target, None, template(_copied(now), tensor, self.world))]
        if now is MISSING:
            return [Effect("delete", target, (write.kind, write.key), None)]
        if now is write.before:
            return []
        return [Effect(write.kind, target, write.key, template(now, tensor, self.world))]


def _copied(container: Any) -> Any:
    """The contents of a container as a plain one, which the world does not know."""
    if isinstance(container, dict):
        return dict(container)
    return list(container)


def _proxies_of(tree: Any) -> Any:
    """The parts of a template that can hold proxies, in plain containers."""
    if hasattr(tree, "parts"):
        return [_proxies_of(p) for p in tree.parts]
    if isinstance(tree, Outside):
        return None
    if isinstance(tree, (tuple, list)):
        return [_proxies_of(p) for p in tree]
    if isinstance(tree, dict):
        return [_proxies_of(p) for p in tree.values()]
    return tree if isinstance(tree, TensorProxy) or flat_proxies(tree) else None


def _unique(proxies: list[Any]) -> list[Any]:
    return list({p.name: p for p in proxies}.values())


def _input_name(source: Source) -> str:
    steps = []
    here: Source | None = source
    while here is not None and here.base is not None:
        if here.key not in ("_parameters", "_buffers", "_modules", "__dict__"):
            steps.append(str(here.key))
        here = here.base
    if here is ARGS and len(steps) == 1:
        return f"a{steps[0]}"
    return "_".join(reversed(steps)) or str(source.key)


__all__ = ["Acquisition", "TensorMetadata"]
