"""Between parts and wholes: parameters that are cut over one dimension of a mesh, or over two."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from thunder_distributed.axes import Axis
from thunder_distributed.modules import CutTwice
from thunder_distributed.parameters import Part, Sharded, part_of, rows_of

Cut: TypeAlias = Sharded | Part | CutTwice
CUT = (Sharded, Part, CutTwice)


def whole_of_part(value: torch.Tensor, how: Cut) -> torch.Tensor:
    """Return the whole of which each process has a part; all processes call it."""
    if isinstance(how, CutTwice):
        return whole_of_part(whole_of_part(value, how.shard), how.part)
    axis = how.axis
    parts = [torch.empty_like(value) for _ in range(axis.size)]
    dist.all_gather(parts, value.contiguous(), group=axis.process_group)
    whole = torch.cat(parts, how.dim).narrow(how.dim, 0, how.shape[how.dim])
    return whole.reshape(how.whole_shape).contiguous()


def load_part(value: torch.Tensor, whole: torch.Tensor, how: Cut) -> None:
    """Give a part the values that a whole tensor has there."""
    if isinstance(how, CutTwice):
        load_part(value, part_of(whole, how.part, how.part.axis.rank), how.shard)
        return
    there = _without_padding(value, how)
    start = min(how.axis.rank * rows_of(how.shape[how.dim], how.axis.size), how.shape[how.dim])
    there.copy_(whole.reshape(how.shape).narrow(how.dim, start, there.shape[how.dim]))


def load_distributed(value: torch.Tensor, given: DTensor, how: Cut) -> None:
    """Give a part the values that a distributed tensor has there, whatever its placements; all processes call it."""
    if given.placements == _placements(how):
        local, there = given.to_local(), without_padding(value, how)
        if local.shape == there.shape:
            if local.data_ptr() != there.data_ptr() or not local.numel():
                there.copy_(local)
            return
    load_part(value, given.full_tensor(), how)


def without_padding(value: torch.Tensor, how: Cut) -> torch.Tensor:
    """Return what of a part is no padding, a view."""
    if not isinstance(how, CutTwice):
        return _without_padding(value, how)
    inner = _without_padding(value, how.shard)
    if how.part.dim == how.shard.dim:  # what is padding of the first cut alone is saved whole: see is_distributed
        return inner
    return _without_padding(inner, how.part)


def _without_padding(value: torch.Tensor, how: Sharded | Part) -> torch.Tensor:
    size = how.shape[how.dim]
    rows = rows_of(size, how.axis.size)
    start = min(how.axis.rank * rows, size)
    return value.narrow(how.dim, 0, min(rows, size - start))


def is_distributed(how: Any) -> bool:
    """Whether placements say how a parameter is cut: not if twice along one dimension, and unevenly at first."""
    if isinstance(how, CutTwice):
        return how.part.dim != how.shard.dim or not how.part.shape[how.part.dim] % how.part.axis.size
    return isinstance(how, CUT)


def _placements(how: Cut) -> tuple[Shard, ...]:
    if isinstance(how, CutTwice):
        return Shard(how.part.dim), Shard(how.shard.dim)
    return (Shard(how.dim),)


class Distributing:
    """Makes distributed tensors of parts; the meshes are made once for all of them."""

    def __init__(self) -> None:
        self.meshes: dict[tuple[tuple[Axis, ...], str], DeviceMesh] = {}

    def distributed(self, value: torch.Tensor, how: Cut) -> DTensor:
        """Return the distributed tensor of which this process has a part; all processes call it in the same order.

        Args:
            value: the part, of which the result is a view.
            how: how it is cut; see :func:`is_distributed`.
        """
        shape = how.part.shape if isinstance(how, CutTwice) else how.shape
        stride = torch.empty(shape, device="meta").stride()
        return DTensor.from_local(
            without_padding(value, how),
            self.mesh(how, value.device.type),
            _placements(how),
            run_check=False,
            shape=torch.Size(shape),
            stride=stride,
        )

    def mesh(self, how: Cut, device: str) -> DeviceMesh:
        """Return the mesh of the processes that share a parameter."""
        axes = (how.part.axis, how.shard.axis) if isinstance(how, CutTwice) else (how.axis,)
        key = (axes, device)
        if key not in self.meshes:
            groups = [axis.process_group for axis in axes]
            self.meshes[key] = (
                DeviceMesh.from_group(groups[0], device)
                if len(axes) == 1
                else DeviceMesh.from_group(groups, device, _ranks(*axes), mesh_dim_names=("part", "shard"))
            )
        return self.meshes[key]


def _ranks(first: Axis, second: Axis) -> torch.Tensor:
    """Return which processes are at which places on two axes, as far as they share parameters with this one."""
    mine = dist.get_process_group_ranks(first.process_group)
    found: list[Any] = [None] * second.size
    dist.all_gather_object(found, mine, group=second.process_group)
    return torch.tensor(found).T.contiguous()


__all__ = [
    "CUT", "Cut", "Distributing", "is_distributed", "load_distributed", "load_part", "whole_of_part",
    "without_padding",
]  # fmt: skip
