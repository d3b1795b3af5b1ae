"""Collectives, each with its rules beside it.

Derivatives are those of the sum of what all processes compute: what a process sends, others compute with. A collective
returns something in flight; ``wait`` makes a tensor of it. What stands between the two runs meanwhile.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from thunder_autograd import Pullback, jvp_rule, vjp_rule
from thunder_distributed.axes import Axis
from thunder_distributed.buffers import Buffer
from thunder_distributed.in_flight import InFlight, in_flight
from thunder_distributed.prim import COMMUNICATES, Does, collective
from thunder_ir import Device, DTypeError, OpTags, ShapeError, Symbol, TensorProxy
from thunder_prims import mul
from thunder_prims.batching import batches_elementwise
from thunder_prims.checks import check_device
from thunder_prims.derivatives import linear
from thunder_vmap import batching_rule

OPERATIONS = ("sum", "mean", "max", "min")
LINEAR = ("sum", "mean")
Bucket: TypeAlias = tuple[str, int] | None
"""With which others a collective may be made together, and its place among them; ``None``: with none."""

USED_ANYWHERE = "used anywhere"
"""The bucket of gradients that are synchronised at the end of a program, if any process has used the parameter."""


def _check_operation(name: str, a: TensorProxy, operation: str, axis: Axis) -> None:
    if operation not in OPERATIONS:
        raise ValueError(f"{name} knows {', '.join(map(repr, OPERATIONS))}, not {operation!r}")
    if operation == "mean" and not a.dtype.is_inexact:
        raise DTypeError(f"{name} of {a.type_string} has no mean: it takes a floating-point or complex dtype")
    _check_axis(name, axis)


def _check_axis(name: str, axis: Axis) -> None:
    if not isinstance(axis, Axis):
        raise TypeError(f"{name} runs over an Axis (see axis_of), and {axis!r} is a {type(axis).__name__}")


def _check_dim(name: str, a: TensorProxy, dim: int) -> None:
    if not 0 <= dim < a.ndim:
        raise ShapeError(f"{name} of {a.type_string} along dimension {dim} needs one of 0..{a.ndim - 1}")


def _check_divides(name: str, a: TensorProxy, axis: Axis, dim: int) -> None:
    _check_dim(name, a, dim)
    if a.shape[dim] % axis.size:
        raise ShapeError(
            f"{name} of {a.type_string} along dimension {dim}: {a.shape[dim]} is no multiple of the {axis.size} "
            f"processes of axis {axis.name!r}; pad it to {-(-a.shape[dim] // axis.size) * axis.size}"
        )


def _batches_beside(symbol: Symbol, *places: int) -> None:
    """Give a collective its batching rule: the batch stays where it is, and dimensions move on that are behind it.

    Args:
        symbol: of the collective.
        places: those of the arguments that are dimensions.
    """

    def rule(size: Any, args: Any, dims: Any) -> tuple[Any, int]:
        moved = [arg + (dims[0] <= arg) if i in places else arg for i, arg in enumerate(args)]
        return symbol(*moved), dims[0]

    rule.__name__ = rule.__qualname__ = f"{symbol.name}_batching"
    batching_rule(symbol)(rule)


def _resized(a: TensorProxy, dim: int, size: Any) -> tuple[Any, ...]:
    return (*a.shape[:dim], size, *a.shape[dim + 1 :])


@collective(Does.WAIT, COMMUNICATES)
def wait(a: InFlight) -> TensorProxy:
    """Wait for what a collective began to send, and return it as a tensor."""
    if not isinstance(a, InFlight):
        raise TypeError(f"wait takes what a collective returns, and {a.name}, {a.type_string}, is there already")
    return TensorProxy(a.shape, a.dtype, a.device, a.requires_grad)


@vjp_rule(wait)
def wait_vjp(a: InFlight) -> tuple[TensorProxy, Pullback]:
    """The cotangent of what is in flight is a tensor."""
    return wait(a), lambda dy: dy


linear(wait)
batches_elementwise(wait)


@collective(Does.REDUCE, COMMUNICATES)
def all_reduce(a: TensorProxy, axis: Axis, operation: str = "sum", bucket: Bucket = None) -> InFlight:
    """Begin to combine the tensors of all processes, element by element; each gets the result.

    Args:
        a: of the same shape and dtype in each process.
        axis: over which processes.
        operation: ``"sum"``, ``"mean"``, ``"max"`` or ``"min"``.
        bucket: see :data:`Bucket`.

    Example:
        >>> from thunder_distributed import Axis, prims
        >>> from thunder_ir import Tensor, trace_of
        >>> print(trace_of(lambda a: prims.wait(prims.all_reduce(a, Axis("data", 8))), Tensor((3,))))
        def program(a: "float32[3]"):
            t0 = dist_prims.all_reduce(a, _data, 'sum', None)  # float32[3], in flight
            t1 = dist_prims.wait(t0)  # float32[3]
            return t1
    """
    _check_operation("all_reduce", a, operation, axis)
    return in_flight(a)


@vjp_rule(all_reduce)
def all_reduce_vjp(a: TensorProxy, axis: Axis, operation: str, bucket: Bucket) -> tuple[InFlight, Pullback]:
    """``da = all_reduce(dy)``: each process's result depends on each process's tensor."""
    _check_linear("all_reduce", operation)
    return all_reduce(a, axis, operation, bucket), lambda dy: wait(all_reduce(dy, axis, operation))


def _check_linear(name: str, operation: str) -> None:
    if operation not in LINEAR:
        raise NotImplementedError(
            f"{name} with {operation!r} has no derivative here; detach() its argument, or use 'sum' or 'mean'"
        )


@jvp_rule(all_reduce)
def all_reduce_jvp(a: TensorProxy, axis: Axis, operation: str, bucket: Bucket, da: TensorProxy, *_: None) -> Any:
    """``dy = all_reduce(da)``."""
    _check_linear("all_reduce", operation)
    return all_reduce(a, axis, operation, bucket), all_reduce(da, axis, operation)


batches_elementwise(all_reduce)


@collective(Does.GATHER, COMMUNICATES)
def all_gather(a: TensorProxy, axis: Axis, dim: int = 0, bucket: Bucket = None) -> InFlight:
    """Begin to join the tensors of all processes along a dimension; each gets the result.

    Args:
        a: of the same shape and dtype in each process.
        axis: over which processes; their tensors are joined in the order of their ranks.
        dim: of ``a``, not negative.
        bucket: see :data:`Bucket`.
    """
    _check_axis("all_gather", axis)
    _check_dim("all_gather", a, dim)
    return in_flight(a, _resized(a, dim, a.shape[dim] * axis.size))


@vjp_rule(all_gather)
def all_gather_vjp(a: TensorProxy, axis: Axis, dim: int, bucket: Bucket) -> tuple[InFlight, Pullback]:
    """``da = reduce_scatter(dy)``."""
    return all_gather(a, axis, dim, bucket), lambda dy: wait(reduce_scatter(dy, axis, "sum", dim))


@jvp_rule(all_gather)
def all_gather_jvp(a: TensorProxy, axis: Axis, dim: int, bucket: Bucket, da: TensorProxy, *_: None) -> Any:
    """``dy = all_gather(da)``."""
    return all_gather(a, axis, dim, bucket), all_gather(da, axis, dim)


_batches_beside(all_gather, 2)


@collective(Does.SCATTER, COMMUNICATES)
def reduce_scatter(a: TensorProxy, axis: Axis, operation: str = "sum", dim: int = 0, bucket: Bucket = None) -> InFlight:
    """Begin to combine the tensors of all processes; each gets its part of the result along a dimension.

    Args:
        a: of the same shape and dtype in each process; its size along ``dim`` is a multiple of that of the axis.
        axis: over which processes; the parts are in the order of their ranks.
        operation: ``"sum"``, ``"mean"``, ``"max"`` or ``"min"``.
        dim: of ``a``, not negative.
        bucket: see :data:`Bucket`.
    """
    _check_operation("reduce_scatter", a, operation, axis)
    _check_divides("reduce_scatter", a, axis, dim)
    return in_flight(a, _resized(a, dim, a.shape[dim] // axis.size))


@vjp_rule(reduce_scatter)
def reduce_scatter_vjp(
    a: TensorProxy, axis: Axis, operation: str, dim: int, bucket: Bucket
) -> tuple[InFlight, Pullback]:
    """``da = all_gather(dy)``, divided by the number of processes for a mean."""
    _check_linear("reduce_scatter", operation)
    scale = 1 / axis.size if operation == "mean" else None

    def pullback(dy: TensorProxy) -> TensorProxy:
        whole: TensorProxy = wait(all_gather(dy, axis, dim))
        return whole if scale is None else mul(whole, scale)

    return reduce_scatter(a, axis, operation, dim, bucket), pullback


@jvp_rule(reduce_scatter)
def reduce_scatter_jvp(
    a: TensorProxy, axis: Axis, operation: str, dim: int, bucket: Bucket, da: TensorProxy, *_: None
) -> Any:
    """``dy = reduce_scatter(da)``."""
    _check_linear("reduce_scatter", operation)
    return reduce_scatter(a, axis, operation, dim, bucket), reduce_scatter(da, axis, operation, dim)


_batches_beside(reduce_scatter, 3)


@collective(Does.EXCHANGE, COMMUNICATES)
def broadcast(a: TensorProxy, axis: Axis, source: int = 0) -> InFlight:
    """Begin to send the tensor of one process to all.

    Args:
        a: of the same shape and dtype in each process.
        axis: over which processes.
        source: rank on the axis of the process whose tensor all get.
    """
    _check_axis("broadcast", axis)
    if not 0 <= source < axis.size:
        raise ValueError(f"broadcast from rank {source}, and axis {axis.name!r} has ranks 0..{axis.size - 1}")
    return in_flight(a)


@vjp_rule(broadcast)
def broadcast_vjp(a: TensorProxy, axis: Axis, source: int) -> tuple[InFlight, Pullback]:
    """``da = all_reduce(dy)`` in the process that sends, and zero elsewhere."""
    return broadcast(a, axis, source), lambda dy: on_rank(wait(all_reduce(dy, axis)), axis, source)


linear(broadcast)
batches_elementwise(broadcast)


@collective()
def on_rank(a: TensorProxy, axis: Axis, rank: int) -> TensorProxy:
    """Return ``a`` in the process of that rank on the axis, and zeros in all others."""
    _check_axis("on_rank", axis)
    return a.like()


@vjp_rule(on_rank)
def on_rank_vjp(a: TensorProxy, axis: Axis, rank: int) -> tuple[TensorProxy, Pullback]:
    """``da = dy`` in that process, and zeros in all others."""
    return on_rank(a, axis, rank), lambda dy: on_rank(dy, axis, rank)


linear(on_rank)
batches_elementwise(on_rank)


@collective()
def part(a: TensorProxy, axis: Axis, dim: int, shift: int = 0) -> TensorProxy:
    """Return a process's part of a tensor along a dimension, in the order of ranks. Nothing is communicated.

    Args:
        a: its size along ``dim`` is a multiple of that of the axis.
        axis: whose processes have the parts.
        dim: of ``a``, not negative.
        shift: how many ranks on the process is whose part it is, any integer; 0 for this one.
    """
    _check_axis("part", axis)
    _check_divides("part", a, axis, dim)
    return a.like(shape=_resized(a, dim, a.shape[dim] // axis.size))


@vjp_rule(part)
def part_vjp(a: TensorProxy, axis: Axis, dim: int, shift: int) -> tuple[TensorProxy, Pullback]:
    """``da`` is ``dy`` at the place of the part, and zero elsewhere."""
    return part(a, axis, dim, shift), lambda dy: placed(dy, axis, dim, shift)


linear(part)
_batches_beside(part, 2)


@collective()
def placed(a: TensorProxy, axis: Axis, dim: int, shift: int = 0) -> TensorProxy:
    """Return zeros with a part, ``a``, at its place along a dimension; see :func:`part`. Nothing is communicated."""
    _check_axis("placed", axis)
    _check_dim("placed", a, dim)
    return a.like(shape=_resized(a, dim, a.shape[dim] * axis.size))


@vjp_rule(placed)
def placed_vjp(a: TensorProxy, axis: Axis, dim: int, shift: int) -> tuple[TensorProxy, Pullback]:
    """``da`` is the part of ``dy``."""
    return placed(a, axis, dim, shift), lambda dy: part(dy, axis, dim, shift)


linear(placed)
_batches_beside(placed, 2)


@collective(OpTags.ELEMENTWISE)
def counted_from_part(a: TensorProxy, axis: Axis, step: int) -> TensorProxy:
    """Return integers counted from where this process's part of ``step`` begins: ``a - rank * step``."""
    _check_axis("counted_from_part", axis)
    if not a.dtype.is_integer:
        raise DTypeError(f"counted_from_part of {a.type_string} takes integers")
    return a.like()


batches_elementwise(counted_from_part)


@collective(Does.EXCHANGE, COMMUNICATES)
def all_to_all(a: TensorProxy, axis: Axis, split: int = 0, join: int = 0) -> InFlight:
    """Begin to send each process its part of the tensor along one dimension; what comes is joined along another.

    Args:
        a: of the same shape and dtype in each process; its size along ``split`` is a multiple of that of the axis.
        axis: over which processes; parts are in the order of their ranks.
        split, join: dimensions of ``a``, not negative.
    """
    _check_axis("all_to_all", axis)
    _check_divides("all_to_all", a, axis, split)
    _check_dim("all_to_all", a, join)
    shape = list(a.shape)
    shape[split] //= axis.size
    shape[join] *= axis.size
    return in_flight(a, tuple(shape))


@vjp_rule(all_to_all)
def all_to_all_vjp(a: TensorProxy, axis: Axis, split: int, join: int) -> tuple[InFlight, Pullback]:
    """All goes back: ``da = all_to_all(dy)`` with the dimensions exchanged."""
    return all_to_all(a, axis, split, join), lambda dy: wait(all_to_all(dy, axis, join, split))


linear(all_to_all)
_batches_beside(all_to_all, 2, 3)


@collective(Does.EXCHANGE, COMMUNICATES)
def permute(a: TensorProxy, axis: Axis, shift: int = 1) -> InFlight:
    """Begin to send the tensor to the process ``shift`` ranks on, around the ring.

    Args:
        a: of the same shape and dtype in each process.
        axis: over which processes.
        shift: any integer; negative ones go back.
    """
    _check_axis("permute", axis)
    return in_flight(a)


@vjp_rule(permute)
def permute_vjp(a: TensorProxy, axis: Axis, shift: int) -> tuple[InFlight, Pullback]:
    """All goes back: ``da = permute(dy, -shift)``."""
    return permute(a, axis, shift), lambda dy: wait(permute(dy, axis, -shift))


linear(permute)
batches_elementwise(permute)


@collective(OpTags.ELEMENTWISE)
def added(a: TensorProxy, b: TensorProxy) -> TensorProxy:
    """Return the sum of what came around the ring, and of what is here, of the same shape and dtype."""
    return a.like(requires_grad=a.requires_grad or b.requires_grad)


@vjp_rule(added)
def added_vjp(a: TensorProxy, b: TensorProxy) -> tuple[TensorProxy, Pullback]:
    """``da = db = dy``."""
    return added(a, b), lambda dy: (dy, dy)


@collective()
def joined_from_ring(parts: tuple[TensorProxy, ...], axis: Axis, dim: int) -> TensorProxy:
    """Join the parts of all processes in the order of their ranks. Nothing is communicated.

    Args:
        parts: as they come around the ring: this process's, that of the process before it, and so on.
        axis: whose processes have them.
        dim: along which they are joined.
    """
    _check_axis("joined_from_ring", axis)
    return parts[0].like(
        shape=_resized(parts[0], dim, parts[0].shape[dim] * axis.size),
        requires_grad=any([p.requires_grad for p in parts]),
    )


@vjp_rule(joined_from_ring)
def joined_from_ring_vjp(parts: Any, axis: Axis, dim: int) -> tuple[TensorProxy, Pullback]:
    """Each gradient is found where its part was put."""

    def pullback(dy: TensorProxy) -> Any:
        return (tuple([part(dy, axis, dim, -i) for i in range(axis.size)]),)

    return joined_from_ring(parts, axis, dim), pullback


@collective(Does.PACK)
def pack(
    tensors: tuple[TensorProxy, ...],
    parts: int = 1,
    dims: tuple[int, ...] = (),
    scale: float | None = None,
    buffer: Buffer | None = None,
) -> Any:
    """Lay tensors out in one buffer, to be communicated together.

    Args:
        tensors: of one dtype and device.
        parts: into how many parts each is cut; the buffer holds the first parts of all, then the second ones.
        dims: for each tensor the dimension along which it is cut.
        scale: what every element is multiplied by.
        buffer: whose memory is taken; new memory if not given.

    Returns:
        one dimension.
    """
    for t, dim in zip(tensors, dims, strict=False):
        if t.shape[dim] % parts:
            raise ShapeError(f"pack of {t.type_string} cannot cut dimension {dim} into {parts} parts")
    if len({(t.dtype, t.device) for t in tensors}) != 1:
        raise DTypeError(f"pack takes tensors of one dtype and device, got {', '.join(t.type_string for t in tensors)}")
    count = sum([t.numel for t in tensors])
    return tensors[0].like(shape=(count,), requires_grad=any([t.requires_grad for t in tensors]))


@vjp_rule(pack)
def pack_vjp(
    tensors: Any, parts: int, dims: tuple[int, ...], scale: float | None, buffer: Buffer | None
) -> tuple[TensorProxy, Pullback]:
    """Each gradient is found where its tensor was put."""
    shapes = tuple([t.shape for t in tensors])

    def pullback(dy: TensorProxy) -> Any:
        return (unpack(dy if scale is None else mul(dy, scale), shapes, parts, dims),)

    return pack(tensors, parts, dims, scale, buffer), pullback


@collective(Does.UNPACK, OpTags.VIEW)
def unpack(
    buffer: TensorProxy, shapes: tuple[tuple[int, ...], ...], parts: int = 1, dims: tuple[int, ...] = ()
) -> tuple[TensorProxy, ...]:
    """Find the tensors that :func:`pack` laid out.

    Args:
        buffer: one dimension.
        shapes: of the tensors, whole.
        parts, dims: as they were packed.

    Returns:
        the tensors; views of the buffer if there is one part.
    """
    return tuple([buffer.like(shape=shape) for shape in shapes])


@vjp_rule(unpack)
def unpack_vjp(buffer: TensorProxy, shapes: Any, parts: int, dims: tuple[int, ...]) -> tuple[Any, Pullback]:
    """Gradients are put where their tensors were found."""
    made = unpack(buffer, shapes, parts, dims)
    return made, lambda *dys: pack(tuple(dys), parts, dims)


@collective(Does.COPY, COMMUNICATES)
def copy_to(a: TensorProxy, device: Device) -> InFlight:
    """Begin to copy a tensor to the memory of a device, or of the host. Nothing is sent to other processes.

    Args:
        a: anywhere.
        device: where the result is.
    """
    check_device("copy_to", device)
    return in_flight(a, device=device)


@vjp_rule(copy_to)
def copy_to_vjp(a: TensorProxy, device: Device) -> tuple[InFlight, Pullback]:
    """``da = dy``, copied back."""
    return copy_to(a, device), lambda dy: wait(copy_to(dy, a.device))


linear(copy_to)
batches_elementwise(copy_to)


__all__ = [
    "Bucket", "added", "all_gather", "all_reduce", "all_to_all", "broadcast", "copy_to",
    "counted_from_part", "joined_from_ring", "on_rank", "pack", "part", "permute", "placed", "reduce_scatter", "unpack",
    "wait",
]  # fmt: skip
