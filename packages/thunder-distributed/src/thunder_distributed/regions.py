"""Between what all processes of an axis have and what each has a part of, for losses that all of them compute.

Every process of the axis has the same loss, so it counts once. That is another derivative than that of the collectives
themselves, which is of the sum over processes.
"""

from __future__ import annotations

from typing import Any

from thunder_autograd import Pullback, vjp_rule
from thunder_distributed import prims
from thunder_distributed.axes import Axis
from thunder_distributed.executor import executor
from thunder_distributed.prim import DIST_PRIMS
from thunder_ir import OpTags, Symbol, TensorProxy
from thunder_prims import strict


def _enter(a: TensorProxy, axis: Axis) -> TensorProxy:
    return a.like()


enter = Symbol(
    "enter", DIST_PRIMS, meta=_enter, tags=frozenset({OpTags.VIEW}), language=strict,
    doc="What all have, to be computed with differently in each process. Gradients are summed.",
)  # fmt: skip


@executor.transforms(enter)
def _enter_runs(a: TensorProxy, axis: Axis) -> TensorProxy:
    return a


@vjp_rule(enter)
def enter_vjp(a: TensorProxy, axis: Axis) -> tuple[TensorProxy, Pullback]:
    """``da = all_reduce(dy)``."""
    return a, lambda dy: leave(dy, axis)


def _leave(a: TensorProxy, axis: Axis) -> TensorProxy:
    return prims.wait(prims.all_reduce(a, axis))


leave = Symbol(
    "leave", DIST_PRIMS, meta=lambda a, axis: a.like(), decomposition=_leave, language=strict,
    doc="The sum of what each process has computed, which all have then.",
)  # fmt: skip


@vjp_rule(leave)
def leave_vjp(a: TensorProxy, axis: Axis) -> tuple[TensorProxy, Pullback]:
    """``da = dy``."""
    return _leave(a, axis), lambda dy: enter(dy, axis)


def _joined_meta(a: TensorProxy, axis: Axis, dim: int) -> TensorProxy:
    return a.like(shape=tuple([n * axis.size if i == dim else n for i, n in enumerate(a.shape)]))


def _joined(a: TensorProxy, axis: Axis, dim: int) -> TensorProxy:
    return prims.wait(prims.all_gather(a, axis, dim))


joined = Symbol(
    "joined", DIST_PRIMS, meta=_joined_meta, decomposition=_joined, language=strict,
    doc="The parts of all processes along a dimension, one after the other, which all have then.",
)  # fmt: skip


@vjp_rule(joined)
def joined_vjp(a: TensorProxy, axis: Axis, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da`` is this process's part of ``dy``."""
    return _joined(a, axis, dim), lambda dy: cut(dy, axis, dim)


def _cut(a: TensorProxy, axis: Axis, dim: int) -> TensorProxy:
    return prims.part(a, axis, dim)


def _cut_meta(a: TensorProxy, axis: Axis, dim: int) -> TensorProxy:
    return a.like(shape=tuple([n // axis.size if i == dim else n for i, n in enumerate(a.shape)]))


cut = Symbol(
    "cut", DIST_PRIMS, meta=_cut_meta, decomposition=_cut, language=strict,
    doc="This process's part along a dimension of what all have.",
)  # fmt: skip


@vjp_rule(cut)
def cut_vjp(a: TensorProxy, axis: Axis, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da`` is all parts of ``dy``."""
    return _cut(a, axis, dim), lambda dy: joined(dy, axis, dim)


gathered = Symbol(
    "gathered", DIST_PRIMS, meta=_joined_meta, decomposition=_joined, language=strict,
    doc="The parts of all processes along a dimension, to be computed with differently in each process.",
)  # fmt: skip


@vjp_rule(gathered)
def gathered_vjp(a: TensorProxy, axis: Axis, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da = reduce_scatter(dy)``: what each process has computed of all parts is summed."""
    return _joined(a, axis, dim), lambda dy: scattered(dy, axis, dim)


def _scattered(a: TensorProxy, axis: Axis, dim: int) -> TensorProxy:
    return prims.wait(prims.reduce_scatter(a, axis, "sum", dim))


scattered = Symbol(
    "scattered", DIST_PRIMS, meta=_cut_meta, decomposition=_scattered, language=strict,
    doc="This process's part along a dimension of the sum of what each process has computed.",
)  # fmt: skip


@vjp_rule(scattered)
def scattered_vjp(a: TensorProxy, axis: Axis, dim: int) -> tuple[TensorProxy, Pullback]:
    """``da = all_gather(dy)``."""
    return _scattered(a, axis, dim), lambda dy: gathered(dy, axis, dim)


# In the user's program ------------------------------------------------------------------------------------------------


def _outside(name: str) -> RuntimeError:
    return RuntimeError(
        f"{name} was called outside of a compiled program: a model to which parallelize() was applied runs compiled"
    )


def entered(a: Any, axis: Axis) -> Any:
    """Return what all have, to be computed with differently in each process."""
    raise _outside("entered")


def left(a: Any, axis: Axis) -> Any:
    """Return the sum of what each process has computed."""
    raise _outside("left")


def whole_of(a: Any, axis: Axis, dim: int) -> Any:
    """Return the parts of all processes along a dimension, not negative, one after the other."""
    raise _outside("whole_of")


def part_of_all(a: Any, axis: Axis, dim: int) -> Any:
    """Return this process's part along a dimension, not negative."""
    raise _outside("part_of_all")


def gathered_from_all(a: Any, axis: Axis, dim: int) -> Any:
    """Return all parts along a dimension, not negative, to be computed with differently in each process."""
    raise _outside("gathered_from_all")


def part_of_sum(a: Any, axis: Axis, dim: int) -> Any:
    """Return this process's part along a dimension, not negative, of the sum of what each process has computed."""
    raise _outside("part_of_sum")


def from_first(a: Any, axis: Axis, step: int) -> Any:
    """Return integers counted from where this process's part begins: ``a - rank * step``."""
    raise _outside("from_first")


def largest(a: Any, axis: Axis) -> Any:
    """Return the largest elements among the processes; no derivative goes through them."""
    raise _outside("largest")


largest_of_all = Symbol(
    "largest_of_all", DIST_PRIMS, meta=lambda a, axis: a.like(requires_grad=False),
    decomposition=lambda a, axis: prims.wait(prims.all_reduce(a, axis, "max")),
    tags=frozenset({OpTags.CONSTANT_FOR_DERIVATIVE}), language=strict,
    doc="The largest elements among the processes.",
)  # fmt: skip

executor.replacements.update({
    entered: enter, left: leave, whole_of: joined, part_of_all: cut, from_first: prims.counted_from_part,
    largest: largest_of_all, gathered_from_all: gathered, part_of_sum: scattered,
})  # fmt: skip

__all__ = [
    "cut", "enter", "entered", "from_first", "gathered", "gathered_from_all", "joined", "largest", "leave", "left",
    "part_of_all", "part_of_sum", "scattered", "whole_of",
]  # fmt: skip
