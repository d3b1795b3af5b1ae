"""Axes: the groups of processes that collectives run over, as programs name them."""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.nn.functional  # noqa: F401  (whose defaults hold the group that is there when it is imported)
from torch.distributed.device_mesh import DeviceMesh

from thunder_distributed.buffers import Buffers
from thunder_distributed.ledger import LATEST, Ledger
from thunder_ir import Context, register_literal

MEGABYTE = 1024 * 1024


class AxisError(RuntimeError):
    """The processes that are there are not those that were asked for; the message says what to do."""


@dataclass(frozen=True)
class Axis:
    """One dimension of a mesh of processes.

    Two axes are equal if they have the same name, size and policy. What passes do depends on nothing else, so that
    they do the same in every process, and can be tested in one.

    Args:
        name: how programs refer to it, such as ``"data"``.
        size: how many processes.
        bucket_bytes: collectives of small tensors are made together until they are this large; 0: never.
        bucket_parts: into how many buckets all that is sent is divided at least, if each has a megabyte.
        ahead_bytes: how many bytes may be gathered before they are needed, or be sent of gradients, at a time; as many
            as the largest of them has always may.
        splits_products: whether products run while what they gather, or sum, goes around the ring, part by part.
        patience: seconds to wait for other processes to compile what this one has compiled.
        group: a weak reference to PyTorch's, whose collectives run; ``None`` for programs that are looked at and not
            run. Weak, as ``destroy_process_group`` ends the group's threads only if nothing else holds the group, and
            a thread that outlives the interpreter ends the process with an abort.

    Example:
        >>> Axis("data", 8)
        Axis(name='data', size=8)
    """

    name: str
    size: int
    bucket_bytes: int = field(default=25 * MEGABYTE, repr=False)
    ahead_bytes: int = field(default=0, repr=False)
    splits_products: bool = field(default=False, repr=False)
    patience: float = field(default=300.0, repr=False, compare=False)
    group: weakref.ref[Any] | None = field(default=None, repr=False, compare=False)
    bucket_parts: int = field(default=4, repr=False)
    ledger: Ledger = field(default_factory=Ledger, repr=False, compare=False)
    buffers: Buffers = field(default_factory=Buffers, repr=False, compare=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> Axis:
        """Copies of a model are trained over the same processes."""
        return self

    @property
    def rank(self) -> int:
        """The place of this process on the axis.

        Raises:
            AxisError: the axis has no group.
        """
        return int(dist.get_rank(self.process_group))

    @property
    def process_group(self) -> Any:
        """The group of PyTorch.

        Raises:
            AxisError: it has none, or it was destroyed.
        """
        if self.group is None:
            raise AxisError(
                f"axis {self.name!r} has no process group, so nothing can be communicated over it: make it with "
                "axis_of(group or mesh)"
            )
        group = self.group()
        if group is None:
            raise AxisError(
                f"the process group of axis {self.name!r} was destroyed: distribute the model again, over a group "
                "that is there"
            )
        return group

    def global_rank(self, rank: int) -> int:
        """Return which of all processes the one at a place on the axis is."""
        return int(dist.get_global_rank(self.process_group, rank))


register_literal(Axis, lambda axis, context: _printed(axis, context))


def _printed(axis: Axis, context: Context) -> str:
    return context.object(axis, axis.name)


def axis_of(
    where: Any = None,
    name: str = "data",
    *,
    bucket_bytes: int = 25 * MEGABYTE,
    ahead_bytes: int = 0,
    splits_products: bool = False,
    patience: float | None = None,
) -> Axis:
    """Return an axis for a process group or a mesh of one dimension.

    Args:
        where: a ``ProcessGroup``, a one-dimensional ``DeviceMesh``, an axis, or ``None`` for all processes.
        name: of the axis; a mesh that names its dimension knows better.
        bucket_bytes, ahead_bytes, splits_products: see :class:`Axis`.
        patience: see there; if not given, as long as the group's timeout allows, and at most 300 seconds.

    Raises:
        AxisError: ``torch.distributed`` is not initialised, or the mesh has several dimensions.
        TypeError: ``where`` is something else.
    """
    if isinstance(where, Axis):
        return where
    if where is not None and not isinstance(where, (DeviceMesh, dist.ProcessGroup)):
        raise TypeError(
            "processes are given as a DeviceMesh of one dimension, a ProcessGroup, an Axis, or None for all, and not "
            f"as {where!r}"
        )
    if not dist.is_available():
        raise AxisError("this build of PyTorch has no torch.distributed")
    if not dist.is_initialized():
        raise AxisError(
            "torch.distributed is not initialised: start the program with torchrun, and call "
            "torch.distributed.init_process_group() before the model is distributed"
        )
    if isinstance(where, DeviceMesh):
        if where.ndim != 1:
            named: Any = where.mesh_dim_names or tuple(range(where.ndim))
            raise AxisError(
                f"the mesh has {where.ndim} dimensions, {named}, and one is needed: pass one of "
                f"them, mesh[{named[0]!r}]"
            )
        if where.get_coordinate() is None:
            raise AxisError(f"this process, rank {dist.get_rank()}, is not in the mesh that was given")
        name = where.mesh_dim_names[0] if where.mesh_dim_names else name
        where = where.get_group()
    group = dist.group.WORLD if where is None else where
    if dist.get_rank(group) < 0:
        raise AxisError(f"this process, rank {dist.get_rank()}, is not in the group that was given")
    patience = min(300.0, timeout_of(group) / LATEST) if patience is None else patience
    return Axis(
        name, dist.get_world_size(group), bucket_bytes, ahead_bytes, splits_products, patience, weakref.ref(group),
        bucket_parts=1 if _computes_where_it_sends(group) else 4,
    )  # fmt: skip


def _computes_where_it_sends(group: Any) -> bool:
    """Whether processes of one host send by its CPU: what is sent beside computing then makes that slower.

    Every process answers the same, as ``torchrun`` tells all of them how many there are, and how many on each host.
    """
    return dist.get_backend(group) == "gloo" and os.environ.get("LOCAL_WORLD_SIZE") == str(dist.get_world_size())


def timeout_of(group: Any) -> float:
    """Return the seconds after which collectives of a group fail; without end where its backend does not say."""
    for device in ("cuda", "cpu"):
        try:
            return float(group._get_backend(torch.device(device)).options._timeout.total_seconds())
        except (RuntimeError, AttributeError):  # the group has no backend for the device, or that has no options
            continue
    return float("inf")


__all__ = ["MEGABYTE", "Axis", "AxisError", "axis_of", "timeout_of"]
