"""Clipping gradients by the norm of all of them, parts on other processes included."""

from __future__ import annotations

import math

import torch
import torch.distributed as dist

from thunder_distributed.axes import Axis
from thunder_distributed.modules import parallel_of


@torch.no_grad()
def clip_grad_norm_(
    model: torch.nn.Module, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> torch.Tensor:
    """Scale the gradients of a model that is trained in parallel, so that their norm is at most ``max_norm``.

    ``torch.nn.utils.clip_grad_norm_`` sees this process's parts alone, and would scale differently in each process.

    Args:
        model: what ``ddp``, ``fsdp`` or a plan of tensor parallelism was applied to.
        max_norm: above 0.
        norm_type: of the norm; ``math.inf`` for the largest element.
        error_if_nonfinite: whether to raise if the norm is NaN or infinite.

    Returns:
        the norm before, of no dimension, the same in all processes.

    Raises:
        RuntimeError: the norm is not finite, if that is asked for.
    """
    hows = parallel_of(model)
    groups: dict[tuple[Axis, ...], list[torch.Tensor]] = {}
    gradients = []
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            continue
        gradients.append(parameter.grad)
        how = hows.get(name)
        axes = () if how is None else tuple(how.cut_over)
        groups.setdefault(axes, []).append(parameter.grad)
    if not gradients:
        return torch.zeros(())
    totals = [_power(local, axes, norm_type) for axes, local in groups.items()]
    total = torch.stack(totals).amax() if math.isinf(norm_type) else torch.stack(totals).sum() ** (1 / norm_type)
    if error_if_nonfinite and not torch.isfinite(total):
        raise RuntimeError(f"the norm of order {norm_type} of the gradients is {total.item()}, so they are not clipped")
    scale = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    torch._foreach_mul_(gradients, scale.to(gradients[0].device))
    return total


def _power(local: list[torch.Tensor], axes: tuple[Axis, ...], norm_type: float) -> torch.Tensor:
    """Return the power of the norm, or the largest element, of gradients that are cut over axes."""
    norms = torch.stack(torch._foreach_norm(local, norm_type))
    largest = math.isinf(norm_type)
    found = norms.amax() if largest else (norms**norm_type).sum()
    for axis in axes:
        dist.all_reduce(found, dist.ReduceOp.MAX if largest else dist.ReduceOp.SUM, group=axis.process_group)
    return found


__all__ = ["clip_grad_norm_"]
