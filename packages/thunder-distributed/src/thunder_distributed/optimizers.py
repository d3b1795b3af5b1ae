"""What optimizers keep before their first step: nothing, so that there is nothing to load a checkpoint into."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch


def state_of(optimizer: torch.optim.Optimizer) -> Mapping[Any, Mapping[str, Any]]:
    """Return an optimizer's state by parameters; of one that has made no step, what there is to load into.

    That is what a step with gradients of zero makes, counted as none. The optimizer and its parameters stay as they
    are.
    """
    if optimizer.state or isinstance(optimizer, torch.optim.LBFGS):  # which steps with a closure alone
        return optimizer.state
    with _changing_nothing(optimizer):
        optimizer.step()
    made = {parameter: dict(entries) for parameter, entries in optimizer.state.items()}
    optimizer.state.clear()
    for entries in made.values():
        if "step" in entries:
            entries["step"] = entries["step"] * 0
    return made


@contextmanager
def _changing_nothing(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Let gradients and rates be zero for a while."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    gradients, rates = [p.grad for p in parameters], [group["lr"] for group in optimizer.param_groups]
    for group in optimizer.param_groups:
        rate = group["lr"]
        group["lr"] = torch.zeros_like(rate) if isinstance(rate, torch.Tensor) else 0.0
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    try:
        yield
    finally:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


__all__ = ["state_of"]
