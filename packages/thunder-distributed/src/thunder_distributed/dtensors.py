"""DTensors in programs: what makes them of parts, lays them out anew, and makes parts of them.

Values that are DTensors stay so: each operation is placed by PyTorch's own rules when it runs. What the hooks of
``parallelize_module`` call is written with the operators below, whose derivatives are those of ``DTensor``'s methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.distributed._functional_collectives import AsyncCollectiveTensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard

from thunder_autograd import Pullback, vjp_rule
from thunder_distributed.executor import executor
from thunder_distributed.parameters import rows_of
from thunder_distributed.prim import COMMUNICATES
from thunder_frontend import AcquisitionError, interpreted_in_place_of
from thunder_ir import Context, TensorProxy, register_literal
from thunder_tracing import FOLLOWS, follow


@dataclass(frozen=True)
class Placed:
    """How a tensor lies on a mesh of processes.

    Args:
        mesh: of processes.
        placements: of ``torch.distributed.tensor``, one for each dimension of the mesh.
        shape, stride: of the whole; ``None`` if those of the parts tell.
    """

    mesh: DeviceMesh
    placements: tuple[Any, ...]
    shape: tuple[int, ...] | None = None
    stride: tuple[int, ...] | None = None

    @property
    def of_gradient(self) -> tuple[Any, ...]:
        """How a gradient lies: what is still to be summed has the same one everywhere."""
        return tuple([Replicate() if p.is_partial() else p for p in self.placements])


def _printed(placed: Placed, context: Context) -> str:
    return context.object(placed, "placed")


register_literal(Placed, _printed)


def _meta_of_whole(local: TensorProxy, placed: Placed, shape: tuple[Any, ...], back: Any) -> TensorProxy:
    return local.like(shape=shape)


def _as_placed(local: torch.Tensor, placed: Placed, shape: Any, back: Any) -> DTensor:
    whole = None if placed.shape is None else torch.Size(placed.shape)
    return DTensor.from_local(local, placed.mesh, placed.placements, run_check=False, shape=whole, stride=placed.stride)


as_placed = executor.register_operator("as_placed", meta=_meta_of_whole, fn=_as_placed, tags=(FOLLOWS,))
"""The DTensor of which each process has a part; its gradient is laid out like it, or as said."""


@vjp_rule(as_placed)
def as_placed_vjp(local: TensorProxy, placed: Placed, shape: Any, back: Any) -> tuple[TensorProxy, Pullback]:
    """``dlocal`` is this process's part of ``dy``, laid out first."""
    wanted = placed.of_gradient if back is None else back.placements

    def pullback(dy: TensorProxy) -> TensorProxy:
        part: TensorProxy = local_of(moved_back(dy, Placed(placed.mesh, wanted)), local.shape, placed)
        return part

    return as_placed(local, placed, shape, back), pullback


def _meta_of_local(a: TensorProxy, shape: tuple[Any, ...], back: Placed) -> TensorProxy:
    return a.like(shape=shape)


def _local_of(a: DTensor, shape: Any, back: Placed) -> torch.Tensor:
    local = a.to_local()
    return local.wait() if isinstance(local, AsyncCollectiveTensor) else local


local_of = executor.register_operator("local_of", meta=_meta_of_local, fn=_local_of, tags=(FOLLOWS,))
"""This process's part of a DTensor; its gradient is a part of one laid out as said."""


@vjp_rule(local_of)
def local_of_vjp(a: TensorProxy, shape: Any, back: Placed) -> tuple[TensorProxy, Pullback]:
    """``da`` is the DTensor of which ``dy`` is a part."""
    return local_of(a, shape, back), lambda dy: as_placed(dy, back, a.shape, None)


def _moved(a: DTensor, to: Placed, before: Placed) -> DTensor:
    return a.redistribute(to.mesh, to.placements)


moved = executor.register_operator(
    "moved", meta=lambda a, to, before: a.like(), fn=_moved, tags=(FOLLOWS, COMMUNICATES)
)
"""A DTensor laid out otherwise."""


@vjp_rule(moved)
def moved_vjp(a: TensorProxy, to: Placed, before: Placed) -> tuple[TensorProxy, Pullback]:
    """``da`` is ``dy`` laid out as ``a`` was."""
    return moved(a, to, before), lambda dy: moved_back(dy, before)


def _moved_back(a: DTensor, to: Placed) -> DTensor:
    pairs = zip(a.placements, to.placements, strict=True)
    wanted = [Replicate() if p.is_partial() and not now.is_partial() else p for now, p in pairs]
    return a.redistribute(to.mesh, wanted)


moved_back = executor.register_operator(
    "moved_back", meta=lambda a, to: a.like(), fn=_moved_back, tags=(FOLLOWS, COMMUNICATES)
)
"""A gradient laid out like what it is of; where that is to be summed, the same in all processes."""

# In the user's program ------------------------------------------------------------------------------------------------


def _placement(placement: Any, dims: int) -> Any:
    if type(placement) is Shard:
        return Shard(placement.dim % dims) if placement.dim < 0 else placement
    if placement.is_replicate() or placement.is_partial():
        return placement
    raise AcquisitionError(f"a DTensor placed as {placement} inside of a compiled program is not supported")


def _placements(placements: Sequence[Any], dims: int) -> tuple[Any, ...]:
    return tuple([_placement(p, dims) for p in placements])


@interpreted_in_place_of(DTensor.from_local)
def from_local(
    local_tensor: torch.Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Any] | None = None,
    *,
    run_check: bool = False,
    shape: Any = None,
    stride: Any = None,
    grad_placements: Sequence[Any] | None = None,
) -> Any:
    """Return the DTensor of which each process has a part, as ``DTensor.from_local`` does."""
    if device_mesh is None or run_check:
        raise AcquisitionError("from_local() inside of a compiled program takes a mesh, and run_check=False")
    dims = local_tensor.ndim
    placed = _placements([Replicate()] * device_mesh.ndim if placements is None else placements, dims)
    whole = list(local_tensor.shape if shape is None else shape)
    if shape is None:
        for i, placement in enumerate(placed):
            if isinstance(placement, Shard):
                whole[placement.dim] = whole[placement.dim] * device_mesh.size(i)
    given = (None, None) if shape is None else (tuple(shape), tuple(stride))
    back = None if grad_placements is None else Placed(device_mesh, _placements(grad_placements, dims))
    if back is not None and back.of_gradient != back.placements:
        raise AcquisitionError(
            "from_local() with a gradient that is to be summed is not supported in compiled programs"
        )
    return as_placed(local_tensor, Placed(device_mesh, placed, *given), tuple(whole), back)


@interpreted_in_place_of(DTensor.to_local)
def to_local(self: Any, *, grad_placements: Sequence[Any] | None = None) -> Any:
    """Return this process's part of a DTensor, as its method does."""
    mesh, placed = self.device_mesh, _placements(self.placements, self.ndim)
    back = Placed(mesh, placed).of_gradient if grad_placements is None else _placements(grad_placements, self.ndim)
    shape = list(self.shape)
    for i, placement in enumerate(placed):
        if isinstance(placement, Shard):
            shape[placement.dim] = _here(shape[placement.dim], mesh.size(i), mesh.get_local_rank(i))
    return local_of(self, tuple(shape), Placed(mesh, back, tuple(self.shape), tuple(self.stride())))


def _here(size: Any, processes: int, rank: int) -> Any:
    """Return how many of ``size`` rows a process has."""
    rows = rows_of(size, processes)
    return max(min(rows, size - rank * rows), 0)


@interpreted_in_place_of(DTensor.redistribute)
def redistribute(
    self: Any,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Any] | None = None,
    *,
    async_op: bool = False,
    forward_dtype: torch.dtype | None = None,
    backward_dtype: torch.dtype | None = None,
) -> Any:
    """Return a DTensor laid out otherwise, as its method does."""
    if forward_dtype is not None or backward_dtype is not None:
        raise AcquisitionError("redistribute() in another dtype inside of a compiled program is not supported")
    if placements is None:
        raise RuntimeError("placements is needed for redistribute!")
    mesh, before = self.device_mesh, _placements(self.placements, self.ndim)
    wanted = _placements(placements, self.ndim)
    for now, then in zip(before, wanted, strict=True):
        if then.is_partial() and now != then:
            raise RuntimeError(
                f"Can not redistribute from {now} to {then}, redistributing to Partial is for internal use only!"
            )
    if wanted == before:
        return self
    return moved(self, Placed(mesh if device_mesh is None else device_mesh, wanted), Placed(mesh, before))


@interpreted_in_place_of(DTensor.full_tensor)
def full_tensor(self: Any, *, grad_placements: Sequence[Any] | None = None) -> Any:
    """Return the whole of a DTensor, as its method does."""
    whole = redistribute(self, placements=[Replicate()] * self.device_mesh.ndim)
    return to_local(whole, grad_placements=grad_placements)


def _on_meta(tensor: DTensor) -> DTensor:
    local = torch.empty_like(tensor.to_local(), device="meta")
    return DTensor.from_local(
        local, tensor.device_mesh, tensor.placements, run_check=False, shape=tensor.shape, stride=tensor.stride()
    )


def _told(tensor: DTensor) -> Any:
    return tensor.device_mesh, tensor.placements


follow(DTensor, _on_meta, _told)

__all__ = ["Placed", "as_placed", "local_of", "moved", "moved_back"]
