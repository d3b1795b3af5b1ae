"""Collectives that write to the tensors they are given, as functional ones and copies: what a program can hold.

These functions are interpreted in place of those of ``torch.distributed`` that have their names. What they do not take
(derivatives, work that is waited for later, layouts that the process groups do not take) is refused, so that PyTorch's
own run it, or say what is wrong.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import ProcessGroup

from thunder_guards.errors import AcquisitionError
from thunder_interpreter import Interpreted

REDUCTIONS: dict[Any, str] = {}
SUM: Any = None
if dist.is_available():
    SUM = dist.ReduceOp.SUM
    REDUCTIONS = {
        SUM: "sum", dist.ReduceOp.AVG: "avg", dist.ReduceOp.PRODUCT: "product", dist.ReduceOp.MIN: "min",
        dist.ReduceOp.MAX: "max",
    }  # fmt: skip
"""What the functional collectives call a reduction."""


def all_reduce(
    tensor: torch.Tensor, op: object = SUM, group: ProcessGroup | None = None, async_op: object = False
) -> None:
    """Reduce over all processes, in place."""
    name = _group_name("all_reduce", group, async_op, op, tensor)
    tensor.copy_(_waited(torch.ops._c10d_functional.all_reduce(tensor, REDUCTIONS[op], name)))


def broadcast(
    tensor: torch.Tensor,
    src: Any = None,
    group: ProcessGroup | None = None,
    async_op: object = False,
    group_src: int | None = None,
) -> None:
    """Write what one process has to the tensors of all."""
    name = _group_name("broadcast", group, async_op, None, tensor)
    place = dist.get_group_rank(_known(group), src) if group_src is None else group_src
    tensor.copy_(_waited(torch.ops._c10d_functional.broadcast(tensor, place, name)))


def all_gather(
    tensor_list: list[torch.Tensor], tensor: torch.Tensor, group: ProcessGroup | None = None, async_op: object = False
) -> None:
    """Write what all processes have to a list of tensors."""
    name = _group_name("all_gather", group, async_op, None, tensor, *tensor_list)
    size = dist.get_world_size(group)
    if len(tensor_list) != size or [t for t in tensor_list if t.shape != tensor.shape or t.dtype != tensor.dtype]:
        refuse("all_gather")
    gathered = _waited(torch.ops._c10d_functional.all_gather_into_tensor(tensor.unsqueeze(0), size, name))
    for i in range(size):
        tensor_list[i].copy_(gathered[i])


def all_gather_into_tensor(
    output_tensor: torch.Tensor, input_tensor: torch.Tensor, group: ProcessGroup | None = None, async_op: object = False
) -> None:
    """Write what all processes have to a tensor, one after the other."""
    name = _group_name("all_gather_into_tensor", group, async_op, None, output_tensor, input_tensor)
    size = dist.get_world_size(group)
    if output_tensor.numel() != size * input_tensor.numel() or output_tensor.dtype != input_tensor.dtype:
        refuse("all_gather_into_tensor")
    gathered = _waited(torch.ops._c10d_functional.all_gather_into_tensor(input_tensor.unsqueeze(0), size, name))
    output_tensor.copy_(gathered.view(output_tensor.shape))


def reduce_scatter_tensor(
    output: torch.Tensor,
    input: torch.Tensor,
    op: object = SUM,
    group: ProcessGroup | None = None,
    async_op: object = False,
) -> None:
    """Reduce over all processes, of which each gets a part."""
    name = _group_name("reduce_scatter_tensor", group, async_op, op, output, input)
    size = dist.get_world_size(group)
    if input.numel() != size * output.numel() or output.dtype != input.dtype:
        refuse("reduce_scatter_tensor")
    parts = input.view(size, *output.shape)
    reduced = _waited(torch.ops._c10d_functional.reduce_scatter_tensor(parts, REDUCTIONS[op], size, name))
    output.copy_(reduced.view(output.shape))


def _waited(tensor: torch.Tensor) -> torch.Tensor:
    there: torch.Tensor = torch.ops._c10d_functional.wait_tensor(tensor)
    return there


def _group_name(
    collective: str, group: ProcessGroup | None, async_op: object, op: object, *tensors: torch.Tensor
) -> Any:
    """Return the name of the group of a call that a program can hold.

    Raises:
        AcquisitionError: it is none.
    """
    derived = torch.is_grad_enabled() and [t for t in tensors if t.requires_grad]
    if async_op or derived or (op is not None and op not in REDUCTIONS):
        refuse(collective)
    if [t for t in tensors if t.is_complex() or t.is_sparse or not t.is_contiguous()] or dist.get_rank(group) < 0:
        refuse(collective)
    return _known(group).group_name


def _known(group: object) -> Any:
    return dist.group.WORLD if group is None else group


def refuse(collective: str) -> None:
    """Refuse a call of a collective.

    Raises:
        AcquisitionError: always.
    """
    raise AcquisitionError(
        f"torch.distributed.{collective}, called as here, hands tensors to other processes in a way that a program "
        "does not see. Use the functions of torch.distributed._functional_collectives, which return new tensors, or "
        "call it before or after the compiled function"
    )


WRITTEN_OUT: dict[Any, Interpreted] = {}
if dist.is_available():
    WRITTEN_OUT = {
        getattr(dist, function.__name__): Interpreted(function)
        for function in (all_reduce, broadcast, all_gather, all_gather_into_tensor, reduce_scatter_tensor)
    }
"""What is run in place of collectives that a program can hold."""
