"""Compares a model that runs eagerly with the same one compiled: outputs, gradients, ten steps of an optimizer."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

STEPS = 10
FORWARD = {torch.float32: 1e-5, torch.float64: 1e-10, torch.bfloat16: 2e-2}
"""Largest difference of values, relative to the largest value."""
GRADIENT = {torch.float32: 1e-4, torch.float64: 1e-9, torch.bfloat16: 5e-2}
"""Largest difference within one parameter's gradient, relative to the largest gradient of the model."""
TRAINED = {torch.float32: 1e-4, torch.float64: 1e-8, torch.bfloat16: 5e-2}
"""Largest difference of losses, and of parameters after ten steps, relative to the largest value."""
RATE = 1e-3
DAMPING = 1e-3
"""AdamW's epsilon, relative to the largest gradient: without it, steps along gradients that are nothing but rounding
(such as those of a bias of attention keys) are as large as any."""
SENSITIVE = 30
"""How many times as far as eager itself goes for weights that differ by one rounding, what is compiled may go, where
one compares with that: it rounds at every operation, not at the weights alone."""
LOST = 1e-5
"""How far eager's loss may differ from itself: where rounding has grown to more, later steps tell nothing."""
TELLING = 1e-2
"""How far anything may differ at most, whatever eager does: of what differs more nothing can be told."""


class Difference(Exception):  # noqa: N818
    """What eager and compiled do not agree on."""


class EagerError(Exception):
    """What eager raised, so that there is nothing to compare with."""


def leaves(value: Any, path: str = "output", seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Any]]:
    """Yield whatever can be compared in an output, with where it is: containers by their class, then what they hold."""
    if id(value) in seen:
        return
    inner = seen | {id(value)}
    if isinstance(value, (torch.Tensor, int, float, str, bool, type(None), torch.dtype, torch.device)):
        yield path, value
        return
    yield path, type(value)
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}", inner)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]", inner)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from leaves(getattr(value, field.name), f"{path}.{field.name}", inner)
    elif "cache" in type(value).__module__ or "Cache" in type(value).__name__:
        yield from leaves(vars(value), path, inner)


def compare(ours: Any, eagers: Any, tolerance: float) -> bool:
    """Compare two outputs; return whether they are the very same bits.

    Raises:
        Difference: naming the first that differs.
    """
    left, right = list(leaves(ours)), list(leaves(eagers))
    if [path for path, _ in left] != [path for path, _ in right]:
        extra = {p for p, _ in left} ^ {p for p, _ in right}
        raise Difference(f"other structure: {sorted(extra)[:3]}")
    exact = True
    for (path, our), (_, eager) in zip(left, right, strict=True):
        if isinstance(eager, torch.Tensor):
            exact &= compare_tensors(path, our, eager, tolerance)
        elif type(our) is not type(eager) or our != eager:
            raise Difference(f"{path} is {our!r}, eager's {eager!r}")
    return exact


def compare_tensors(path: str, our: Any, eager: torch.Tensor, tolerance: float) -> bool:
    """Compare two tensors in metadata and value; return whether they are the very same bits."""
    if not isinstance(our, torch.Tensor):
        raise Difference(f"{path} is {our!r}, eager's a tensor")
    for name in ("shape", "dtype", "device", "requires_grad"):
        if getattr(our, name) != getattr(eager, name):
            raise Difference(f"{path}.{name} is {getattr(our, name)}, eager's {getattr(eager, name)}")
    if our.stride() != eager.stride() and eager.numel() > 1:
        raise Difference(f"{path} has strides {our.stride()}, eager's {eager.stride()}")
    if torch.equal(our, eager):
        return True
    error = difference(our, eager)
    if not error <= tolerance:
        raise Difference(f"{path} differs by {error:.1e} of its largest value")
    return False


def difference(our: torch.Tensor, eager: torch.Tensor, scale: float | None = None) -> float:
    """Return the largest difference, relative to the largest finite value or ``scale``."""
    our, eager = our.detach().double(), eager.detach().double()
    finite = torch.isfinite(eager)
    if not torch.equal(our[~finite].nan_to_num(), eager[~finite].nan_to_num()) or not our[finite].isfinite().all():
        return float("inf")
    if not finite.any():
        return 0.0
    largest = scale or float(eager[finite].abs().max()) or 1.0
    return float((our - eager)[finite].abs().max()) / max(largest, 1e-12)


def rounded(model: torch.nn.Module, dtype: torch.dtype | None = None, seed: int = 0) -> torch.nn.Module:
    """Return a model whose parameters differ by one rounding, of a dtype or of their own, drawn up or down."""
    other = copy.deepcopy(model)
    draws = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in other.parameters():
            signs = (torch.randint(0, 2, parameter.shape, generator=draws) * 2 - 1).to(parameter.dtype)
            parameter.mul_(1 + signs * torch.finfo(dtype or parameter.dtype).eps)
    return other


def compare_gradients(
    ours: torch.nn.Module, eager: torch.nn.Module, tolerance: float, near: Sequence[torch.nn.Module] = ()
) -> float:
    """Compare the gradients of all parameters; return the largest.

    Args:
        ours, eager: the models.
        tolerance: relative to the largest gradient.
        near: eager, with weights that differ by one rounding, once or more: how far they go is no difference.

    Raises:
        Difference: naming the first that differs.
    """
    grads = [p.grad for p in eager.parameters() if p.grad is not None]
    scale = max((float(g.detach().double().abs().max()) for g in grads if g.numel()), default=1.0)
    models = ours.named_parameters(), eager.parameters(), *[model.parameters() for model in near]
    for (name, our), expected, *nearby in zip(*models, strict=True):
        if (our.grad is None) != (expected.grad is None):
            raise Difference(f"gradient of {name} is {_there(our.grad)}, eager's {_there(expected.grad)}")
        if expected.grad is None:
            continue
        if our.grad.dtype != expected.grad.dtype or our.grad.shape != expected.grad.shape:
            raise Difference(f"gradient of {name} is {our.grad.dtype}, eager's {expected.grad.dtype}")
        error = difference(our.grad, expected.grad, scale)
        itself = max([difference(p.grad, expected.grad, scale) for p in nearby], default=0.0)
        if not error <= max(tolerance, min(SENSITIVE * itself, TELLING)):
            raise Difference(f"gradient of {name} differs by {error:.1e}{_beside(itself)}")
    return scale


def compare_parameters(
    ours: torch.nn.Module, eager: torch.nn.Module, tolerance: float, near: Sequence[torch.nn.Module] = ()
) -> None:
    """Compare parameters and buffers, as :func:`compare_gradients` does gradients.

    Raises:
        Difference: naming the first that differs.
    """
    state, beside = eager.state_dict(), [model.state_dict() for model in near]
    for name, our in ours.state_dict().items():
        largest = float(state[name].abs().max()) if state[name].numel() else 0.0
        scale = max(largest, STEPS * RATE)
        error = difference(our, state[name], scale)
        itself = max([difference(other[name], state[name], scale) for other in beside], default=0.0)
        if not error <= max(tolerance, min(SENSITIVE * itself, TELLING)):
            raise Difference(f"{name} differs by {error:.1e} after {STEPS} steps{_beside(itself)}")


def _beside(itself: float) -> str:
    return f", eager by {itself:.1e} for weights that differ by one rounding" if itself else ""


def _there(gradient: Any) -> str:
    return "None" if gradient is None else "a tensor"


def seed_all(seed: int) -> None:
    """Seed the generators of PyTorch, NumPy and Python."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    random.seed(seed)


def train_both(
    eager: torch.nn.Module,
    ours: torch.nn.Module,
    calls: tuple[Callable[..., Any], Callable[..., Any]],
    arguments: Callable[[], tuple[tuple[Any, ...], dict[str, Any]]],
    loss_of: Callable[[Any], torch.Tensor],
    dtype: torch.dtype = torch.float32,
    near: Sequence[torch.nn.Module] = (),
) -> int:
    """Compare the gradients of all parameters, then losses and parameters over ten steps of AdamW.

    Returns how many steps were compared: fewer where rounding makes of ``near`` and eager two different trainings.

    Args:
        eager, ours: two models with the same weights.
        calls: what to call for them.
        arguments: makes those of a call.
        loss_of: from an output.
        dtype: decides on the tolerances.
        near: see :func:`compare_gradients`; called as it is.

    Raises:
        Difference: naming the first that differs.
        EagerError: eager does not train.
    """
    called = (*calls, *near)
    optimizers = [torch.optim.AdamW(m.parameters(), lr=RATE) for m in (eager, ours, *near)]
    for step in range(STEPS):
        losses = []
        for index, (call, optimizer) in enumerate(zip(called, optimizers, strict=True)):
            optimizer.zero_grad()
            seed_all(step)
            args, kwargs = arguments()
            try:
                loss = loss_of(call(*args, **kwargs))
                loss.backward()
            except Exception as error:
                if index == 0:
                    raise EagerError(f"{type(error).__name__}: {error}") from error
                raise
            losses.append(loss.detach())
        if step == 0:
            largest = compare_gradients(ours, eager, GRADIENT[dtype], near)
        for optimizer in optimizers:
            for group in optimizer.param_groups:
                group["eps"] = DAMPING * largest
            optimizer.step()
        error = difference(losses[1], losses[0])
        itself = max([difference(loss, losses[0]) for loss in losses[2:]], default=0.0)
        if not error <= max(TRAINED[dtype], min(SENSITIVE * itself, TELLING)):
            raise Difference(f"loss of step {step} differs by {error:.1e}{_beside(itself)}")
        if step and itself > LOST:
            return step + 1
    compare_parameters(ours, eager, TRAINED[dtype], near)
    return STEPS


def loss_of(output: Any) -> torch.Tensor:
    """Return the model's own loss if there is one, else how far the first that has a gradient is from made-up values.

    The mean of squares alone would be constant where results are normalised, and its gradients nothing but rounding.
    """
    if getattr(output, "loss", None) is not None:
        return output.loss  # type: ignore[no-any-return]
    first = next(v for _, v in leaves(output) if isinstance(v, torch.Tensor) and v.requires_grad)
    wide = first if first.dtype is torch.float64 else first.float()
    return (wide - torch.arange(wide.numel(), dtype=wide.dtype).cos().reshape(wide.shape)).pow(2).mean()
