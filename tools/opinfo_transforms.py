"""Derivatives and batches of single calls, compared with what eager PyTorch makes of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import torch
from opinfo import copied, difference, traced

from thunder_autograd import grad_transform_on_trace, jvp_transform_on_trace
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import OpTags, Trace, is_unknown
from thunder_torch.errors import UnsupportedMutationError
from thunder_torch.specs import map_tensors, tensors_of
from thunder_torch.unknown_gradients import rules_for_unknown_sizes
from thunder_vmap import batch_transform_on_trace

Function = Callable[..., Any]


def recorded(function: Function, args: Any, kwargs: Any) -> tuple[Trace, list[torch.Tensor]]:
    """Record one call; return the trace and the tensors that it takes."""
    try:
        return traced(function, args, kwargs)
    except UnsupportedMutationError:  # the database wraps methods such as normal_: they get copies
        return traced(
            lambda *a, **k: function(*map_tensors(torch.clone, a), **map_tensors(torch.clone, k)), args, kwargs
        )


def executed(trace: Trace, values: list[torch.Tensor]) -> Any:
    """Run a program on tensors, with the generator seeded."""
    run = to_callable(trace, [executor])
    torch.manual_seed(0)
    with torch.no_grad():
        return run(*values)


def tracked(function: Function, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """Return copies of arguments that require grad, but for those with respect to which PyTorch has no derivative."""
    count = len(tensors_of(args, kwargs))
    if _accepts(function, args, kwargs, set(range(count))):
        return _requiring(args, kwargs, set(range(count)))
    return _requiring(args, kwargs, {i for i in range(count) if _accepts(function, args, kwargs, {i})})


def _requiring(args: Any, kwargs: Any, places: set[int]) -> tuple[Any, Any]:
    counter = itertools.count()

    def mark(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.requires_grad_(next(counter) in places and _is_inexact(tensor))

    return map_tensors(mark, copied(args)), map_tensors(mark, copied(kwargs))


def _is_inexact(tensor: torch.Tensor) -> bool:
    """Whether a tensor can be computed with, as dtypes of 8 bits cannot."""
    return (tensor.is_floating_point() or tensor.is_complex()) and tensor.itemsize > 1


def _accepts(function: Function, args: Any, kwargs: Any, places: set[int]) -> bool:
    """Whether PyTorch takes these arguments where they require grad."""
    given, named = _requiring(args, kwargs, places)
    try:
        function(*given, **named)
    except Exception as error:
        return "not differentiable with respect to argument" not in str(error)
    return True


def vjp(function: Function, args: Any, kwargs: Any) -> str | None:
    """Return how gradients differ from PyTorch's autograd, or ``""``; ``None`` if PyTorch has none."""
    args, kwargs = tracked(function, args, kwargs)
    torch.manual_seed(0)
    try:
        expected = function(*args, **kwargs)
        outputs = [t for t in tensors_of((expected,), {}) if t.requires_grad]
        inputs = [t for t in tensors_of(args, kwargs) if t.requires_grad]
        if not outputs or not inputs:
            return None
        seeds = [torch.ones_like(t) for t in outputs]
        wanted = torch.autograd.grad(outputs, inputs, seeds, allow_unused=True, materialize_grads=True)
    except (RuntimeError, NotImplementedError):  # PyTorch has no derivative
        return None
    trace, tensors = recorded(function, args, kwargs)
    flat = [p for p in tensors_of((trace.output,), {}) if p.dtype.is_inexact and p.requires_grad]
    rules = rules_for_unknown_sizes(trace.bound_symbols, lambda bound: None)
    joint = grad_transform_on_trace(trace.replace(output=tuple(flat)), rule_of=rules)
    if len(joint.inputs) == len(tensors):  # no derivative flows: PyTorch's is zero
        return difference(list(wanted), [torch.zeros_like(w) for w in wanted], exact=False)
    result = executed(joint, [t.detach() for t in tensors] + seeds)
    found = [g for g, t in zip(result[1], tensors, strict=False) if t.requires_grad]
    zeros = [torch.zeros_like(w) if g is None else g for g, w in zip(found, wanted, strict=True)]
    return difference(list(wanted), zeros, exact=False)


def jvp(function: Function, args: Any, kwargs: Any) -> str | None:
    """Return how tangents differ from those of PyTorch's forward mode, or ``""``; ``None`` if PyTorch has none."""
    flags = [t.requires_grad for t in tensors_of(*tracked(function, args, kwargs))]
    args, kwargs = copied(args), copied(kwargs)
    tensors = tensors_of(args, kwargs)
    moved = [i for i, flag in enumerate(flags) if flag]
    generator = torch.Generator().manual_seed(1)
    tangents = [torch.randn(t.shape, dtype=t.dtype, generator=generator) for t in (tensors[i] for i in moved)]

    def along(*values: torch.Tensor) -> Any:
        given = dict(zip(moved, values, strict=True))
        left = iter([given.get(i, t) for i, t in enumerate(tensors)])
        filled, named = (map_tensors(lambda _: next(left), v) for v in (args, kwargs))
        torch.manual_seed(0)
        found = tensors_of((function(*filled, **named),), {})
        return tuple([t for t in found if t.is_floating_point() or t.is_complex()])

    try:
        if not moved or not along(*copied(tuple([tensors[i] for i in moved]))):
            return None
        wanted = torch.func.jvp(along, copied(tuple([tensors[i] for i in moved])), tuple(tangents))[1]
    except Exception:  # PyTorch has no forward derivative, or not under this transform
        return None
    trace, _ = recorded(function, args, kwargs)
    flat = tuple([p for p in tensors_of((trace.output,), {}) if p.dtype.is_inexact])
    names = {trace.inputs[i].name for i in moved}
    pushed = jvp_transform_on_trace(trace.replace(output=flat), wanted=names)
    result = executed(pushed, [*tensors, *tangents])
    found = [torch.zeros_like(w) if t is None else t for t, w in zip(result[1], wanted, strict=True)]
    problem = difference(list(wanted), found, exact=False)
    if problem:  # PyTorch's may be wrong itself
        points = [tensors[i] for i in moved]
        return "" if not difference(_slope(along, points, tangents), found, exact=False) else problem
    return ""


STEP = 1e-6


def _slope(along: Function, points: list[torch.Tensor], tangents: list[torch.Tensor]) -> list[torch.Tensor]:
    """Return derivatives by central differences, computed in double precision; nothing where that is not possible."""
    doubled = [(p.to(_double(p)), t.to(_double(t))) for p, t in zip(points, tangents, strict=True)]
    try:
        ahead, behind = ([*along(*[p + s * t for p, t in doubled])] for s in (STEP, -STEP))
    except RuntimeError:
        return []
    slopes = [(a - b) / (2 * STEP) for a, b in zip(ahead, behind, strict=True)]
    return [s.to(torch.complex64 if s.is_complex() else torch.float32) for s in slopes]


def _double(tensor: torch.Tensor) -> torch.dtype:
    return torch.complex128 if tensor.is_complex() else torch.float64


def vmap(function: Function, args: Any, kwargs: Any) -> str | None:
    """Return how a batch of two differs from the call for each of the two, or ``""``; ``None`` if there is no batch.

    The second example is half of the first where that is inexact, which keeps what operations demand of matrices. What
    draws random numbers, returns numbers or has sizes that depend on values is not compared.
    """
    args, kwargs = copied(args), copied(kwargs)
    tensors = tensors_of(args, kwargs)
    trace, _ = recorded(function, args, kwargs)
    flat = tuple(tensors_of((trace.output,), {}))
    random = any([b.has_tag(OpTags.RANDOM) for b in trace.bound_symbols])
    if not tensors or not flat or random or any([is_unknown(d) for p in flat for d in p.shape]):
        return None
    twice = [torch.stack([t, t * 0.5 if _is_inexact(t) else t]) for t in tensors]
    try:
        each = [_alone(function, args, kwargs, [t[i] for t in twice]) for i in range(2)]
        wanted = [torch.stack(pair) for pair in zip(*each, strict=True)]
    except Exception:  # the second of the two is none that the operation takes
        return None
    batched = batch_transform_on_trace(trace.replace(output=flat), 2, [0] * len(tensors))
    outputs, places = executed(batched, twice)
    found = [torch.stack([t, t]) if d is None else t.movedim(d, 0) for t, d in zip(outputs, places, strict=True)]
    return difference(wanted, found, exact=False)


def _alone(function: Function, args: Any, kwargs: Any, values: list[torch.Tensor]) -> list[torch.Tensor]:
    left = iter(copied(tuple(values)))
    filled, named = (map_tensors(lambda _: next(left), v) for v in (args, kwargs))
    return tensors_of((function(*filled, **named),), {})


TRANSFORMS: dict[str, Callable[[Function, Any, Any], str | None]] = {"vjp": vjp, "jvp": jvp, "vmap": vmap}
