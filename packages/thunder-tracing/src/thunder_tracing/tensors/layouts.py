"""How the tensors of a program will be laid out, found by running what leads to them on fake tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensor

from thunder_guards.program import Input
from thunder_ir import BoundSymbol, NumberProxy, OpTags, Proxy, TensorProxy, flat_proxies, map_values, value_of
from thunder_torch import viewed
from thunder_torch.convert import fake_mode, fake_of, proxy_of, to_torch_device, to_torch_dtype
from thunder_torch.fake_modes import faked, meta_under, unlogged
from thunder_torch.meta_tensors import told_on_meta
from thunder_torch.metadata import metadata_of, spec_of
from thunder_torch.only_views import fake_views, is_only_view
from thunder_torch.places import at_first_place
from thunder_torch.plain_sizes import answered_plainly
from thunder_torch.specs import TensorSpec, map_tensors, storage_key, tensors_of
from thunder_torch.traits import Trait, has_trait
from thunder_torch.unknown_sizes import has_unknown_sizes, rests_on_unknown
from thunder_torch.views import view_argument
from thunder_tracing.tensors.producers import Producers
from thunder_tracing.tensors.shadows import is_followed
from thunder_tracing.tensors.storage import View
from thunder_tracing.tensors.traced_tensor import TracedTensor

P = ParamSpec("P")
R = TypeVar("R")


def outside_inference_mode(method: Callable[P, R]) -> Callable[P, R]:
    """Run a method outside of inference mode, in which PyTorch does not take operations on fake tensors apart."""

    @functools.wraps(method)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not torch.is_inference_mode_enabled():
            return method(*args, **kwargs)
        with torch.inference_mode(False):
            return method(*args, **kwargs)

    return run


class Layouts:
    """Fake tensors, with the strides and the sharing of memory that the program's tensors will have.

    Only what is asked for is computed, and each operation once.

    Args:
        producers: of the trace in the making.
        inputs: of the program in the making.
        symbolic: whether numbers among these are dynamic.
        ask: guards what PyTorch says of an input.
    """

    def __init__(
        self, producers: Producers, inputs: Sequence[Input], symbolic: bool, ask: Callable[..., object]
    ) -> None:
        self._producers, self._inputs = producers, inputs
        self._symbolic, self._ask = symbolic, ask
        self._made: dict[str, torch.Tensor] = {}
        self._alike: dict[str, str] = {}
        self._memories: dict[Any, torch.Tensor] = {}
        self._of_views: dict[int, tuple[TracedTensor, View, torch.Tensor]] = {}

    def strides(self, tensor: TracedTensor) -> tuple[int, ...]:
        """Return the strides that a tensor will have."""
        return self.fake(tensor).stride()

    def fake(self, tensor: TracedTensor) -> torch.Tensor:
        """Return a fake tensor, laid out as eager's would be: writes change no layout."""
        view = tensor._viewed_as
        if view is None:
            return self._of(tensor._first)
        known = self._of_views.get(id(tensor))
        if known is None or known[1] is not view:
            try:
                made = self._run(view.function, (self.fake(view.parent), *view.args), view.kwargs)
                made = made if view.index is None else made[view.index]
            except Exception:
                if not rests_on_unknown((view.parent._proxy, view.args, view.kwargs)):
                    raise
                made = fake_of(tensor._proxy)  # estimated sizes need not fit together
            known = self._of_views[id(tensor)] = (tensor, view, made)
        return known[2]

    def offset(self, tensor: TracedTensor) -> int:
        """Return where in its storage a tensor starts; the program is one for inputs that start where these do."""
        root = tensor._memory.root
        if root.source is not None:
            self._ask(root, "storage_offset", root._input.example.storage_offset(), call=True)
        return int(self.fake(tensor).storage_offset())

    @outside_inference_mode
    def assume(self, proxy: TensorProxy) -> None:
        """Let a value that nothing in the trace computes be laid out as its proxy says, else without gaps."""
        with torch._C.DisableTorchFunction():
            self._made[proxy.name] = fake_of(proxy)

    def alike(self, tensor: TracedTensor, other: TracedTensor) -> None:
        """Let a tensor be laid out as another one, what leads to which need not be run; each has memory of its own."""
        self._alike[tensor._first.name] = other._first.name

    def shared(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], parent: TracedTensor
    ) -> list[tuple[bool, bool]]:
        """Tell what the results of a call share with the tensor that they may be views of.

        Args:
            function, args, kwargs: the call, on proxies.
            parent: its first argument.

        Returns:
            for each result, whether it shares the memory of ``parent``, and whether it is ``parent``.
        """
        unwritten = not parent._memory.version and parent._proxy.strides is not None and not self._symbolic
        is_open = rests_on_unknown((args, kwargs))
        base = None if unwritten else self.fake(parent)
        if not is_open:
            given = (parent._proxy, *args[1:]), kwargs
            if base is not None:
                given = map_tensors(proxy_of, ((base, *self._found(args[1:])), self._found(kwargs)))
            with torch._C.DisableTorchFunction(), torch.no_grad():
                told = told_on_meta(function, *given, True)
            if told is not None:
                return [(s.viewed == 0, s.argument == 0) for s in _tensor_specs(told)]
        base = outside_inference_mode(fake_of)(parent._proxy) if base is None else base
        try:
            made = self._run(function, (base, *args[1:]), kwargs)
        except Exception:  # what the call returns is known: it reads values there, or estimated sizes do not fit
            if is_only_view(function, (base, *args[1:]), kwargs) and not is_open:
                raise  # the tensor is laid out otherwise, which its metadata do not tell where sizes are open
            return [(v is not None, False) for v in viewed(function, args, kwargs)]
        return [(storage_key(t) == storage_key(base), t is base) for t in _listed(made)]

    # --- fake tensors of values --------------------------------------------------------------------------------------

    @outside_inference_mode
    def _of(self, proxy: Proxy) -> torch.Tensor:
        """Return the fake tensor of ``proxy``."""
        if proxy.name not in self._made:
            self._take_inputs()
            if proxy.name not in self._made:
                self._compute(proxy.name)
        return self._made[proxy.name]

    def _take_inputs(self) -> None:
        for i in self._inputs:
            if i.proxy.name not in self._made:
                with torch._C.DisableTorchFunction():
                    fake = _in_other_memory if is_followed(i.example) else self._as_it_lies
                    self._made[i.proxy.name] = fake(i.example.detach())  # of one that changes, what is known goes stale

    def _as_it_lies(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a fake tensor that lies in a fake memory as another does in its own.

        PyTorch's way to make it of the tensor imports its compiler, which takes seconds.
        """
        is_plain = type(tensor) is torch.Tensor and not (tensor.is_conj() or tensor.is_neg() or tensor.is_quantized)
        if not is_plain or tensor.numel() and not tensor.untyped_storage().nbytes():  # it is freed, as that of shards
            return fake_mode().from_tensor(tensor)
        memory = tensor.untyped_storage()
        size, place = memory.nbytes() // tensor.element_size(), (memory._cdata, tensor.dtype)
        if place not in self._memories:
            self._memories[place] = torch.empty(size, dtype=tensor.dtype, device="meta")
        meta = self._memories[place].as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())
        return faked(meta, tensor.device, fake_mode())

    def _compute(self, name: str) -> None:
        todo, producers = [name], self._producers()
        while todo:
            other = self._alike.get(todo[-1])
            if other is not None:
                if other in self._made:
                    self._made[todo.pop()] = _in_other_memory(self._made[other])
                else:
                    todo.append(other)
                continue
            bound = producers[todo[-1]]
            missing = [p.name for p in bound.inputs if p.name not in self._made and not isinstance(p, NumberProxy)]
            if missing:
                todo += missing
                continue
            todo.pop()
            self._take_results(bound)

    @outside_inference_mode
    def _run(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a torch function on fake tensors, given themselves or by proxies."""
        args, kwargs = at_first_place(function, self._found(args)), self._found(kwargs)
        with torch._C.DisableTorchFunction(), torch.no_grad(), unlogged():
            return _call(function, args, kwargs)

    def _found(self, tree: object) -> Any:
        for proxy in flat_proxies(tree):
            if not isinstance(proxy, NumberProxy):
                self._of(proxy)
        return map_values(self._filled, tree)

    def _take_results(self, bound: BoundSymbol) -> None:
        args, kwargs = map_values(self._filled, bound.args), map_values(self._filled, bound.kwargs)
        outputs = [p for p in flat_proxies(bound.output) if isinstance(p, TensorProxy)]
        origin = bound.symbol.origin
        with torch._C.DisableTorchFunction(), torch.no_grad():
            if _makes_new_memory(bound) and all([p.strides is not None for p in outputs]):
                made = [fake_of(p) for p in outputs]
            elif origin is not None:
                made = self._called(bound, at_first_place(origin, args), kwargs, outputs)
            else:
                with fake_mode():
                    made = [_like(p, args) for p in outputs]
        self._made.update(zip([p.name for p in outputs], made, strict=False))

    def _called(self, bound: BoundSymbol, args: Any, kwargs: Any, outputs: list[TensorProxy]) -> list[torch.Tensor]:
        """Run a call; where sizes are known only when the program runs, estimated ones stand for those of results."""
        try:
            made = _in_new_memory(bound, args, kwargs)
            if made is None:
                with unlogged():
                    made = _listed(_call(bound.symbol.origin, args, kwargs))
        except (DataDependentOutputException, DynamicOutputShapeException):
            return _as_told(bound.symbol.origin, args, kwargs, outputs)
        except Exception:
            given = [p for p in bound.inputs if isinstance(p, TensorProxy)]
            if not (bound.has_tag(OpTags.MATMUL) or has_unknown_sizes([*given, *outputs])):
                return _as_told(bound.symbol.origin, args, kwargs, outputs)  # by trials, as before
            return [fake_of(p) for p in outputs]  # estimated sizes need not fit together, and kernels do more
        as_told = [tuple(v.shape) == _sizes(p) for v, p in zip(made, outputs, strict=False)]
        return made if all(as_told) or not has_unknown_sizes(outputs) else [fake_of(p) for p in outputs]

    def _filled(self, value: object) -> Any:
        """Return what stands for a value."""
        if isinstance(value, NumberProxy):
            return value.value
        return self._made[value.name] if isinstance(value, Proxy) else value


def _listed(output: Any) -> list[torch.Tensor]:
    """Return the tensors that a call returned."""
    return [v for v in ([output] if isinstance(output, torch.Tensor) else output) if isinstance(v, torch.Tensor)]


def _tensor_specs(told: Any) -> list[TensorSpec]:
    """Return the specifications of the tensors that a call returns."""
    return [s for s in ([told] if isinstance(told, TensorSpec) else told) if isinstance(s, TensorSpec)]


def _in_other_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Return a fake tensor, laid out as another."""
    with torch._C.DisableTorchFunction(), fake_mode():
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


def _call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a torch function on fake tensors."""
    if args and isinstance(args[0], FakeTensor):
        lays_out = has_trait(function, Trait.LAYS_OUT) and not tensors_of(args[1:], kwargs)
        if lays_out and meta_under(args[0]) is not None or is_only_view(function, args, kwargs):
            return fake_views(function, args, kwargs)
    with answered_plainly(), fake_mode():
        return function(*args, **kwargs)


def _in_new_memory(bound: BoundSymbol, args: Any, kwargs: Any) -> list[torch.Tensor] | None:
    """Return fake tensors for results that share no memory, as remembered of such calls; ``None`` if they may."""
    if not (_makes_new_memory(bound) or has_trait(bound.symbol.origin, Trait.SIZES_OF_FIRST)):
        return None
    specs = _tensor_specs(spec_of(bound.symbol.origin, map_tensors(proxy_of, args), map_tensors(proxy_of, kwargs)))
    if any([s.viewed is not None or s.has_unknown or s.strides is None for s in specs]):
        return None
    return [fake_of(TensorProxy(s.shape, s.dtype, s.device, s.requires_grad, s.strides)) for s in specs]


def _as_told(function: Any, args: Any, kwargs: Any, outputs: list[TensorProxy]) -> list[torch.Tensor]:
    """Return fake tensors for results whose sizes depend on values, laid out as for the sizes at hand."""
    if all([p.strides is not None for p in outputs]):
        return [fake_of(p) for p in outputs]
    told = metadata_of(function, map_tensors(proxy_of, args), map_tensors(proxy_of, kwargs))
    return [fake_of(t if _sizes(t) == _sizes(p) else p) for t, p in zip(tensors_of((told,), {}), outputs, strict=True)]


def _sizes(proxy: TensorProxy) -> tuple[Any, ...]:
    return tuple(map(value_of, proxy.shape))


def _makes_new_memory(bound: BoundSymbol) -> bool:
    """Whether the results of a call share no memory, so that their metadata say all of how they are laid out.

    Products need not be asked for: their kernels do more than PyTorch's metadata allow.
    """
    return bound.has_tag(OpTags.MATMUL) or (bound.symbol.origin is not None and view_argument(bound.symbol) is None)


def _like(proxy: Any, args: Sequence[Any]) -> Any:
    """A fake tensor for the result of a symbol unknown to PyTorch: laid out as the last argument of its shape."""
    for argument in reversed(args):
        if isinstance(argument, torch.Tensor) and tuple(argument.shape) == _sizes(proxy):
            return torch.empty_like(argument, dtype=to_torch_dtype(proxy.dtype))
    return torch.empty(_sizes(proxy), dtype=to_torch_dtype(proxy.dtype), device=to_torch_device(proxy.device))
