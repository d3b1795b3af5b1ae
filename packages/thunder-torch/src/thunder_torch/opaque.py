"""Any operation of PyTorch as an operation of a program: called as it is, differentiated and batched by PyTorch.

There is one prim, :data:`opaque_call`. Its first argument is what runs, a :class:`Call`: a callable together with the
arguments that are no tensors. Its rules make further calls (:class:`Pullback`, :class:`Pushforward`, :class:`Batched`),
which are callables of tensors themselves, so that the rules apply to them again: derivatives of any order follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_autograd import Through, jvp_rule, tensor_slots, vjp_rule
from thunder_ir import OpTags, Proxy, Symbol, TensorProxy, current_builder, map_values
from thunder_lang.language import core
from thunder_torch.around import Around
from thunder_torch.communication import communication_tags
from thunder_torch.metadata import MetaOf, connected_to, metadata_of
from thunder_torch.names import LTORCH, name_of, path_of
from thunder_torch.plain_sizes import answered_plainly
from thunder_torch.randomness import Drawn, Replayed, is_random
from thunder_torch.running import run
from thunder_torch.sized import TorchSymbol, refuse_unknown_sizes
from thunder_torch.specs import map_tensors, tensors_of
from thunder_torch.traits import Trait, has_trait, is_pytorchs
from thunder_torch.views import is_view
from thunder_torch.watched_draws import drew
from thunder_vmap import batching_rule


@dataclass(frozen=True)
class Hole:
    """Where an argument of a call goes.

    Args:
        index: which of the values that are passed when it runs.
    """

    index: int


@dataclass(frozen=True, eq=False)
class Call:
    """A callable of tensors and numbers: another one with some of its arguments filled in.

    Args:
        function: takes the arguments.
        args, kwargs: what it is given, with a :class:`Hole` for each value that is passed when it runs.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    @property
    def __name__(self) -> str:
        return name_of(self.function)

    def __call__(self, *values: Any) -> Any:
        return self.function(*_filled(self.args, values), **_filled(self.kwargs, values))

    def metadata(self, values: tuple[Any, ...]) -> Any:
        """Return proxies for what it returns."""
        return metadata_of(self.function, _filled(self.args, values), _filled(self.kwargs, values))

    def connected(self, values: tuple[Any, ...]) -> tuple[set[str], tuple[bool, ...]]:
        """Return the names of the values from which PyTorch's graph leads to outputs; and to which outputs it does."""
        args, kwargs = _filled(self.args, values), _filled(self.kwargs, values)
        tensors = tensors_of(args, kwargs)
        inputs, outputs = connected_to(self.function, args, kwargs)
        return {getattr(tensors[i], "name", "") for i in inputs}, outputs


def _filled(template: Any, values: tuple[Any, ...]) -> Any:
    """Return ``template`` with values for its holes."""
    return map_values(lambda part: values[part.index] if part.__class__ is Hole else part, template)


def call_of(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Call, list[Any]]:
    """Take the proxies and tensors out of a call's arguments.

    Returns:
        The call with holes, and the values that belong into them, in order.
    """
    values: list[Any] = []

    def emptied(value: Any) -> Any:
        if isinstance(value, (Proxy, torch.Tensor)):
            values.append(value)
            return Hole(len(values) - 1)
        return value

    template = Call(function, map_values(emptied, args), map_values(emptied, kwargs))
    return template, values


def _opaque_call_meta(call: Any, *values: Any) -> Any:
    return call.metadata(values)


opaque_call = Symbol(
    "opaque_call",
    LTORCH,
    meta=_opaque_call_meta,
    origin=run,
    language=core,
    doc="Run a call that only PyTorch knows: a callable of tensors with a method ``metadata``, and its values.",
)


def failing(function: Any) -> frozenset[OpTags]:
    """Return the tag of functions that raise for some values of their arguments, if that is one."""
    if isinstance(function, Around):
        return failing(function.function)
    total = any([has_trait(f, Trait.TOTAL) for f in (function, type(function))])
    known = is_pytorchs(function) or total or communication_tags(function)
    fails = not known or path_of(function).startswith("torch.linalg.") or has_trait(function, Trait.MAY_FAIL)
    return frozenset({OpTags.MAY_FAIL} if fails else ())


class OpaqueSymbol(TorchSymbol):
    """A callable that stays as it is: only PyTorch knows what it does."""


class _Opaque(dict[Any, Symbol]):
    """The symbols of callables that stay, such as PyTorch's own; those of local functions are made anew each time."""


_OPAQUE = _Opaque()


def opaque(function: Callable[..., Any], *, tags: frozenset[OpTags] = frozenset()) -> Symbol:
    """Return the symbol that stands for any callable of PyTorch tensors.

    Its metadata come from running it on fake tensors, its derivatives from PyTorch's autograd through another
    run of it, its batching from ``torch.vmap``.

    Args:
        function: takes and returns tensors and values; it must not write to its arguments.
        tags: traits that passes may rely on. ``OpTags.RANDOM`` is found out for PyTorch's own operations.

    Example:
        >>> import torch
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_torch import opaque
        >>> print(trace_of(lambda x: opaque(torch.linalg.inv)(x), Tensor((3, 3))))
        def program(x: "float32[3, 3]"):
            t0 = ltorch.linalg_inv(x)  # float32[3, 3]
            return t0
    """
    try:
        found = _OPAQUE.get(function)
    except TypeError:  # an unhashable callable
        return _make(function, tags)
    if found is None:
        found = _make(function, tags)
        if "<locals>" not in getattr(function, "__qualname__", ""):
            _OPAQUE[function] = found
    return found


def _make(function: Callable[..., Any], tags: frozenset[OpTags]) -> Symbol:
    random = OpTags.RANDOM in tags or is_random(function)
    communicates = communication_tags(function)

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        call, values = call_of(function, args, kwargs)
        with current_builder().tagged(*communicates):
            return (drawing_call if random or drew(function) else opaque_call)(call, *values)

    path = path_of(function)
    tags |= failing(function) | communicates
    if is_view(function):
        tags |= {OpTags.VIEW}
    return OpaqueSymbol(
        name_of(function),
        LTORCH if path.startswith("torch.") else "opaque",
        meta=MetaOf(function),
        decomposition=decomposition,
        tags=tags | {OpTags.RANDOM} if random else tags,
        origin=function,
        language=core,
        doc=getattr(function, "__doc__", None) or "",
    )


drawing_call = Symbol(
    "drawing_call",
    LTORCH,
    meta=_opaque_call_meta,
    origin=run,
    language=core,
    tags=frozenset({OpTags.RANDOM}),
    doc="Run a call that draws random numbers; as opaque_call, but never merged, reordered or computed twice.",
)


def _tensors(output: Any) -> list[Any]:
    """Return the tensors, or their proxies, in an output, in order."""
    return tensors_of((output,), {})


def _is_inexact(value: Any) -> bool:
    if isinstance(value, TensorProxy):
        return value.dtype.is_inexact
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


@dataclass(frozen=True, eq=False)
class Pullback:
    """The pullback of a call, as a call: from cotangents and the call's values to gradients.

    Args:
        call: what is differentiated.
        outputs: which of its output tensors have a cotangent.
        inputs: which of its values have a gradient.
    """

    call: Callable[..., Any]
    outputs: tuple[int, ...]
    inputs: tuple[int, ...]

    @property
    def __name__(self) -> str:
        return f"vjp of {name_of(self.call)}"

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        count = len(self.outputs)
        cotangents, values = arguments[:count], list(arguments[count:])
        if torch._C._are_functorch_transforms_active():
            return self._transformed(cotangents, values)
        tracked = any([a.requires_grad for a in arguments if isinstance(a, torch.Tensor)])
        create_graph = tracked and torch.is_grad_enabled()
        with torch.enable_grad():
            for i in self.inputs:
                # An alias of its own for each input: no path from one to another is part of the derivative.
                value = values[i]
                values[i] = value.view_as(value) if value.requires_grad else value.detach().requires_grad_()
            tensors = _tensors(self.call(*values))
            pairs = [(tensors[o], c) for o, c in zip(self.outputs, cotangents, strict=True) if tensors[o].requires_grad]
            wanted = [values[i] for i in self.inputs]
            if not pairs:
                return tuple([torch.zeros_like(w) for w in wanted])
            targets, seeds = zip(*pairs, strict=True)
            with answered_plainly():
                return torch.autograd.grad(
                    targets, wanted, seeds, create_graph=create_graph, allow_unused=True, materialize_grads=True
                )

    def _transformed(self, cotangents: Sequence[Any], values: list[Any]) -> tuple[Any, ...]:
        """Do the same under a functorch transform, where nothing can be made to require grad."""

        def results(*moved: Any) -> tuple[Any, ...]:
            for i, value in zip(self.inputs, moved, strict=True):
                values[i] = value
            tensors = _tensors(self.call(*values))
            return tuple([tensors[o] for o in self.outputs])

        pull = torch.func.vjp(results, *[values[i] for i in self.inputs])[1]
        return tuple(pull(tuple(cotangents)))

    def metadata(self, arguments: tuple[Any, ...]) -> Any:
        """Return proxies like the inputs that have a gradient."""
        values = arguments[len(self.outputs) :]
        needed = any(a.requires_grad for a in arguments if isinstance(a, TensorProxy)) and torch.is_grad_enabled()
        return tuple([values[i].like(requires_grad=needed) for i in self.inputs])


@dataclass(frozen=True, eq=False)
class Pushforward:
    """The derivative of a call along tangents, as a call: from its values and their tangents to output tangents.

    Args:
        call: what is differentiated.
        count: number of its values.
        inputs: which of them have a tangent.
        outputs: which output tensors have one.
    """

    call: Callable[..., Any]
    count: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def __name__(self) -> str:
        return f"jvp of {name_of(self.call)}"

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        values, tangents = list(arguments[: self.count]), arguments[self.count :]

        def along(*moved: Any) -> tuple[Any, ...]:
            for i, value in zip(self.inputs, moved, strict=True):
                values[i] = value
            tensors = _tensors(self.call(*values))
            return tuple([tensors[o] for o in self.outputs])

        primals = tuple([values[i] for i in self.inputs])
        try:
            return tuple(torch.func.jvp(along, primals, tangents)[1])
        except NotImplementedError:  # no forward derivative: the transpose of the transpose
            return _twice_reversed(along, primals, tangents)

    def metadata(self, arguments: tuple[Any, ...]) -> Any:
        """Return proxies like the outputs that have a tangent."""
        tensors = _tensors(self.call.metadata(arguments[: self.count]))  # type: ignore[attr-defined]
        return tuple([tensors[o].like() for o in self.outputs])


def _twice_reversed(function: Callable[..., Any], primals: Any, tangents: Any) -> tuple[Any, ...]:
    """Return the jvp as the vjp of the vjp, which is linear in its cotangent."""
    outputs, pull = torch.func.vjp(function, *primals)[:2]
    zeros = tuple([torch.zeros_like(o) for o in outputs])
    push = torch.func.vjp(lambda cotangents: pull(cotangents), zeros)[1]
    return tuple(push(tuple(tangents))[0])


@dataclass(frozen=True, eq=False)
class Batched:
    """A call over a batch, as a call: ``torch.vmap`` of it, with the batch in front of every output.

    Args:
        call: what runs for each element.
        dims: where the batch is in each of its values, ``None`` where it is not.
        size: of the batch.
        randomness: as ``torch.vmap`` takes it.
    """

    call: Callable[..., Any]
    dims: tuple[int | None, ...]
    size: int
    randomness: str = "different"

    @property
    def __name__(self) -> str:
        return f"batched {name_of(self.call)}"

    def __call__(self, *values: Any) -> Any:
        outputs: list[Any] = []

        def tensors(*example: Any) -> tuple[Any, ...]:
            outputs.append(self.call(*example))
            return tuple(_tensors(outputs[-1]))

        try:
            found = iter(torch.vmap(tensors, in_dims=self.dims, randomness=self.randomness)(*values))
            return map_tensors(lambda _: next(found), outputs[-1])
        except RuntimeError:  # no batching rule, or a look at values: one element after the other
            if self.randomness == "same":
                raise
            return self._one_by_one(values)

    def _one_by_one(self, values: tuple[Any, ...]) -> Any:
        """Call for each element, with memory of its own: some operations count from where memory begins."""
        alone = [
            self.call(*[v if d is None else v.select(d, i).clone() for v, d in zip(values, self.dims, strict=True)])
            for i in range(self.size)
        ]
        stacked = iter([torch.stack(parts) for parts in zip(*[_tensors(a) for a in alone], strict=True)])
        return map_tensors(lambda _: next(stacked), alone[0])

    def metadata(self, values: tuple[Any, ...]) -> Any:
        """Return proxies of the call's metadata with the batch in front."""
        single = [v if d is None else _without(v, d) for v, d in zip(values, self.dims, strict=True)]
        output = self.call.metadata(tuple(single))  # type: ignore[attr-defined]
        refuse_unknown_sizes(output)
        return map_tensors(lambda t: t.like(shape=(self.size, *t.shape)), output)


def _without(a: TensorProxy, dim: int) -> TensorProxy:
    return a.like(shape=a.shape[:dim] + a.shape[dim + 1 :])


@vjp_rule(opaque_call)
def opaque_call_vjp(call: Any, *values: Any) -> tuple[Any, Through]:
    """The pullback runs the call again under PyTorch's autograd."""
    output = opaque_call(call, *values)
    return output, _pullback(call, values, output)


@dataclass(frozen=True)
class Derivative:
    """Between which values and results of a call PyTorch has a derivative.

    Args:
        inputs: places of the values that have a gradient.
        outputs: for each tensor in the output, and each ``None``, its place among the tensors, where a derivative goes
            through it.
    """

    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]

    def pairs(self, cotangents: Sequence[Any]) -> list[tuple[int, Any]]:
        """Return the cotangents that count, each with the place of its tensor."""
        found = zip(self.outputs, cotangents, strict=True)
        return [(place, c) for place, c in found if place is not None and c is not None]

    def through(self, pullback: Callable[..., Any]) -> Through:
        """Return a pullback that takes these cotangents only."""
        return Through(pullback, tuple([place is not None for place in self.outputs]))


def derivative_of(call: Any, values: Sequence[Any], output: Any) -> Derivative:
    """Return between which values and results of a call PyTorch has a derivative.

    Values have a gradient that require grad and that PyTorch gives one: for some arguments of some operations it has
    no derivative, and refuses them where they require grad.
    """
    inputs = [i for i, v in enumerate(values) if _is_inexact(v) and v.requires_grad]
    outputs = tuple([_is_inexact(t) for t in _tensors(output)])
    if isinstance(call, Call):
        names, connected = call.connected(tuple(values))
        inputs = [i for i in inputs if getattr(values[i], "name", None) in names]
        outputs = tuple([flows and there for flows, there in zip(outputs, connected, strict=True)])
    places = iter([i if flows else None for i, flows in enumerate(outputs)])
    return Derivative(tuple(inputs), tuple([None if s is None else next(places) for s in tensor_slots(output)]))


def _pullback(call: Any, values: tuple[Any, ...], output: Any) -> Through:
    derivative = derivative_of(call, values, output)

    def pullback(*cotangents: Any) -> tuple[Any, ...]:
        given = derivative.pairs(cotangents)
        gradients: list[Any] = [None] * (len(values) + 1)
        if given and derivative.inputs:
            backward = Pullback(call, tuple([place for place, _ in given]), derivative.inputs)
            found = opaque_call(backward, *[c for _, c in given], *values)
            for i, gradient in zip(derivative.inputs, found, strict=True):
                gradients[i + 1] = gradient
        return tuple(gradients)

    return derivative.through(pullback)


@vjp_rule(drawing_call)
def drawing_call_vjp(call: Any, *values: Any) -> tuple[Any, Callable[..., Any]]:
    """The forward run keeps the generators' states; the pullback replays them, so that it meets the same numbers."""
    output, states = drawing_call(Drawn(call), *values)
    pull = _pullback(Replayed(call), (*values, *states), output)
    return output, Through(lambda *cotangents: pull(*cotangents)[: len(values) + 1], pull.outputs)


def _jvp(symbol: Symbol, call: Any, arguments: tuple[Any, ...]) -> tuple[Any, Any]:
    count = (len(arguments) - 1) // 2
    values, tangents = arguments[:count], arguments[count + 1 :]
    moved = tuple([i for i, t in enumerate(tangents) if t is not None])
    if symbol is drawing_call:
        output, states = drawing_call(Drawn(call), *values)
        call, values = Replayed(call), (*values, *states)
    else:
        output = opaque_call(call, *values)
    proxies = _tensors(output)
    outputs = tuple([i for i, t in enumerate(proxies) if _is_inexact(t)])
    if not moved or not outputs:
        return output, None
    forward = Pushforward(call, len(values), moved, outputs)
    found = dict(zip(outputs, opaque_call(forward, *values, *[tangents[i] for i in moved]), strict=True))
    along = [found.get(i) for i in range(len(proxies))]
    return output, along[0] if isinstance(output, TensorProxy) else tuple(along)


@jvp_rule(opaque_call)
def opaque_call_jvp(call: Any, *arguments: Any) -> tuple[Any, Any]:
    """Forward-mode differentiation by PyTorch."""
    return _jvp(opaque_call, call, arguments)


@jvp_rule(drawing_call)
def drawing_call_jvp(call: Any, *arguments: Any) -> tuple[Any, Any]:
    """Forward-mode differentiation by PyTorch, of a replay."""
    return _jvp(drawing_call, call, arguments)


def _batch(
    symbol: Symbol, size: int, args: tuple[Any, ...], dims: tuple[Any, ...], randomness: str = "different"
) -> tuple[Any, Any]:
    output = symbol(Batched(args[0], tuple(dims[1:]), size, randomness), *args[1:])
    return output, 0 if isinstance(output, TensorProxy) else tuple([0] * len(_tensors(output)))


@batching_rule(opaque_call)
def opaque_call_batch(size: int, args: tuple[Any, ...], dims: tuple[Any, ...]) -> tuple[Any, Any]:
    """``torch.vmap`` of the call."""
    return _batch(opaque_call, size, args, dims)


@batching_rule(drawing_call)
def drawing_call_batch(size: int, args: tuple[Any, ...], dims: tuple[Any, ...]) -> tuple[Any, Any]:
    """``torch.vmap`` of the call, with numbers of its own for each element."""
    return _batch(drawing_call, size, args, dims)


def drawing_call_batch_alike(size: int, args: tuple[Any, ...], dims: tuple[Any, ...]) -> tuple[Any, Any]:
    """``torch.vmap`` of the call, with the same numbers for all elements: for those who batch so."""
    return _batch(drawing_call, size, args, dims, "same")
