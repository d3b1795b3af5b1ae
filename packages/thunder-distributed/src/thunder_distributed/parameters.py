"""What stands for a parameter in a program: what it is in this process, made what the model needs.

Both have derivative rules of their own, as the loss is the mean over the processes, and not their sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from thunder_autograd import Pullback, vjp_rule
from thunder_distributed import prims
from thunder_distributed.axes import Axis
from thunder_distributed.executor import executor
from thunder_distributed.prim import DIST_PRIMS, Does
from thunder_ir import Context, Device, DType, OpTags, Symbol, TensorProxy, current_builder, register_literal
from thunder_prims import convert_element_type, mul, pad, reshape, slice, strict


class Home:
    """Where a parameter is, for gradients that are kept aside while nothing is synchronised.

    Args:
        parameters: a module's.
        name: in there.
        model: how each parameter of the model is treated, by its name there, this one too.
    """

    __slots__ = ("gradient", "model", "name", "parameters", "unsynchronised")

    def __init__(self, parameters: dict[str, Any], name: str, model: dict[str, Any]) -> None:
        self.parameters, self.name, self.model = parameters, name, model
        self.unsynchronised = False
        self.gradient: Any = None

    @property
    def parameter(self) -> Any:
        """The parameter as it is now."""
        return self.parameters[self.name]


@dataclass(frozen=True)
class Replicated:
    """A parameter that each process has, and whose gradient is the mean over all.

    Args:
        axis: over which processes.
        bucket: with which others its gradient is reduced; see :data:`thunder_distributed.prims.Bucket`.
        reduced_in: the dtype in which gradients are sent; its own if not given.
        home: where it is.
    """

    axis: Axis
    bucket: prims.Bucket
    reduced_in: DType | None = None
    home: Home | None = field(default=None, repr=False, compare=False)

    @property
    def cut_over(self) -> tuple[Axis, ...]:
        """None: all processes have the same."""
        return ()


@dataclass(frozen=True)
class Sharded:
    """A parameter of which each process has a part, padded so that all are of one size.

    Args:
        axis: over which processes.
        shape: of the whole.
        dim: along which it is cut.
        bucket: with which others it is gathered.
        again: whether it is gathered again for the backward program and not kept.
        gathered_in: the dtype in which it is gathered and computed with; its own if not given.
        reduced_in: the dtype in which gradients are sent; that in which it is gathered if not given.
        scalar: whether the whole has no dimension; it is cut as if it had one.
        replicas: over which processes those have the same part; gradients are means over these, too.
        gathers: the same processes as ``axis``, of another group, if parts are gathered over that.
        computed_on: the device that it is copied to before it is gathered; its part and gradient are in the memory of
            the host. Where it is if not given.
        home: where it is.
    """

    axis: Axis
    shape: tuple[int, ...]
    dim: int
    bucket: prims.Bucket
    again: bool = False
    gathered_in: DType | None = None
    reduced_in: DType | None = None
    scalar: bool = False
    replicas: Axis | None = None
    gathers: Axis | None = None
    computed_on: Device | None = None
    home: Home | None = field(default=None, repr=False, compare=False)

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """The shape of the parameter as the model has it."""
        return () if self.scalar else self.shape

    @property
    def cut_over(self) -> tuple[Axis, ...]:
        """The axes over which no two processes have the same."""
        return (self.axis,)

    @property
    def rows(self) -> int:
        """The size of a part along the dimension."""
        return rows_of(self.shape[self.dim], self.axis.size)


def rows_of(size: int, processes: int) -> int:
    """Return how many of ``size`` rows the first processes have: as ``torch.chunk`` cuts them."""
    return -(-size // processes)


def _printed(hint: str) -> Callable[[Any, Context], str]:
    return lambda how, context: context.object(how, hint)


@dataclass(frozen=True)
class Part:
    """A parameter of which each process computes with its own part, and gathers nothing.

    Args:
        axis: over which processes.
        shape: of the whole.
        dim: along which it is cut.
        batches_differ: whether the processes have batches of their own, so that the gradient is a mean over these.
    """

    axis: Axis
    shape: tuple[int, ...]
    dim: int
    batches_differ: bool = False

    @property
    def whole_shape(self) -> tuple[int, ...]:
        """The shape of the parameter as the model had it."""
        return self.shape

    @property
    def cut_over(self) -> tuple[Axis, ...]:
        """The axes over which no two processes have the same."""
        return (self.axis,)


def part_of(whole: Any, how: Sharded | Part, rank: int) -> Any:
    """Return a copy of the part of a tensor that a process has, padded with zeros.

    Args:
        whole: a tensor of shape ``how.shape``.
        how: how it is cut.
        rank: of the process on the axis.
    """
    size = how.shape[how.dim]
    rows = rows_of(size, how.axis.size)
    start = min(rank * rows, size)
    there = min(rows, size - start)
    part = whole.new_zeros([rows if i == how.dim else n for i, n in enumerate(how.shape)])
    part.narrow(how.dim, 0, there).copy_(whole.narrow(how.dim, start, there))
    return part


register_literal(Replicated, _printed("replicated"))
register_literal(Sharded, _printed("sharded"))
register_literal(Home, _printed("home"))


def _converted(a: TensorProxy, dtype: DType | None) -> TensorProxy:
    return a if dtype is None or dtype is a.dtype else convert_element_type(a, dtype)


def _copied(a: TensorProxy, device: Device | None) -> TensorProxy:
    return a if device is None else prims.wait(prims.copy_to(a, device))


# Replicated -----------------------------------------------------------------------------------------------------------


def _replicated_meta(a: TensorProxy, how: Replicated, synchronise: bool) -> TensorProxy:
    return a.like()


replicated = Symbol(
    "replicated", DIST_PRIMS, meta=_replicated_meta, tags=frozenset({OpTags.VIEW}), language=strict,
    doc="A parameter that each process has. Its gradient is the mean over all processes, if it is synchronised.",
)  # fmt: skip


@executor.transforms(replicated)
def _replicated_runs(a: TensorProxy, how: Replicated, synchronise: bool) -> TensorProxy:
    return a


@vjp_rule(replicated)
def replicated_vjp(a: TensorProxy, how: Replicated, synchronise: bool) -> tuple[TensorProxy, Pullback]:
    """``da = mean(dy)`` over the processes, which :mod:`thunder_distributed.used` makes if not all have a gradient."""

    def pullback(dy: TensorProxy) -> TensorProxy:
        if not synchronise:
            return dy
        if how.home is not None:
            dy = with_kept(dy, how.home)
        if how.bucket is not None and how.bucket[0] == prims.USED_ANYWHERE:
            return dy
        sent = _converted(dy, how.reduced_in)
        reduced: TensorProxy = prims.wait(prims.all_reduce(sent, how.axis, "mean", how.bucket))
        return _converted(reduced, a.dtype)

    return a, pullback


def _with_kept_meta(gradient: TensorProxy, home: Home) -> TensorProxy:
    return gradient.like()


with_kept = Symbol(
    "with_kept", DIST_PRIMS, meta=_with_kept_meta, tags=frozenset({OpTags.VIEW, Does.TAKE}), language=strict,
    doc="A gradient, and what was added up before without being synchronised.",
)  # fmt: skip
vjp_rule(with_kept)(lambda gradient, home: (with_kept(gradient, home), lambda dy: dy))


@executor.implements(with_kept)
def add_kept(gradient: Any, home: Home) -> Any:
    """Return a gradient with what ``no_sync()`` left in the parameter's own, which autograd then sets anew."""
    if not home.unsynchronised:
        return gradient
    home.unsynchronised = False
    parameter = home.parameter
    if parameter.grad is not None:
        gradient = parameter.grad + gradient
        parameter.grad = None
    return gradient


# Here alone ----------------------------------------------------------------------------------------------------------


alone = Symbol(
    "alone", DIST_PRIMS, meta=lambda a, count: a.like(), tags=frozenset({OpTags.VIEW}), language=strict,
    doc="A parameter that this process alone has. What flows back to it is of all batches; their mean is wanted.",
)  # fmt: skip


@executor.transforms(alone)
def _alone_runs(a: TensorProxy, count: int) -> TensorProxy:
    return a


@vjp_rule(alone)
def alone_vjp(a: TensorProxy, count: int) -> tuple[TensorProxy, Pullback]:
    """``da = dy / count``."""
    return a, lambda dy: mul(dy, 1 / count)


# Sharded --------------------------------------------------------------------------------------------------------------


def gather(a: TensorProxy, how: Sharded) -> TensorProxy:
    """Record how the whole is made of the parts."""
    builder = current_builder()
    with builder.tagged(OpTags.RECOMPUTE if how.again else OpTags.DONT_RECOMPUTE):
        part = _converted(_copied(a, how.computed_on), how.gathered_in)
        whole: TensorProxy = prims.wait(prims.all_gather(part, how.gathers or how.axis, how.dim, how.bucket))
        if whole.shape != how.shape:
            whole = slice(whole, (0,) * len(how.shape), how.shape)
        return reshape(whole, ()) if how.scalar else whole


def scatter(gradient: TensorProxy, how: Sharded, like: TensorProxy) -> TensorProxy:
    """Record how this process's part of the mean gradient is made, where the part ``like`` is, and in its dtype."""
    sent = _converted(reshape(gradient, (1,)) if how.scalar else gradient, how.reduced_in)
    missing = how.rows * how.axis.size - how.shape[how.dim]
    if missing:
        sent = pad(sent, 0.0, tuple([(0, missing if i == how.dim else 0, 0) for i in range(len(how.shape))]))
    part: TensorProxy = prims.wait(prims.reduce_scatter(sent, how.axis, "mean", how.dim, how.bucket))
    if how.replicas is not None:
        part = prims.wait(prims.all_reduce(part, how.replicas, "mean", how.bucket))
    return _copied(_converted(part, like.dtype), like.device if how.computed_on is not None else None)


def _sharded_meta(a: TensorProxy, how: Sharded, synchronise: bool) -> TensorProxy:
    return a.like(shape=how.whole_shape, dtype=how.gathered_in, device=how.computed_on)


def _gathered(a: TensorProxy, how: Sharded, synchronise: bool) -> TensorProxy:
    return gather(a, how)


sharded = Symbol(
    "sharded", DIST_PRIMS, meta=_sharded_meta, decomposition=_gathered, language=strict,
    doc="The whole of a parameter of which each process has a part. Its gradient is the mean over all processes.",
)  # fmt: skip
sharded_again = Symbol(
    "sharded_again", DIST_PRIMS, meta=_sharded_meta, decomposition=_gathered, language=strict,
    tags=frozenset({OpTags.RECOMPUTE}), doc="As ``sharded``, gathered again for the backward program.",
)  # fmt: skip


def sharded_vjp(a: TensorProxy, how: Sharded, synchronise: bool) -> tuple[TensorProxy, Pullback]:
    """``da = reduce_scatter(dy)``, a mean."""

    def pullback(dy: TensorProxy) -> TensorProxy | None:
        if not synchronise:
            keep(dy, how.home)
            return None
        return scatter(with_kept_whole(dy, how.home), how, a)

    return gather(a, how), pullback


vjp_rule(sharded)(sharded_vjp)
vjp_rule(sharded_again)(sharded_vjp)

keep = Symbol(
    "keep", DIST_PRIMS, meta=lambda gradient, home: None, tags=frozenset({OpTags.DONT_DCE}), language=strict,
    doc="Add the gradient of the whole parameter to what is kept until gradients are synchronised.",
)  # fmt: skip
with_kept_whole = Symbol(
    "with_kept_whole", DIST_PRIMS, meta=_with_kept_meta, tags=frozenset({Does.TAKE}), language=strict,
    doc="The gradient of the whole parameter, and what was kept.",
)  # fmt: skip
vjp_rule(with_kept_whole)(lambda gradient, home: (with_kept_whole(gradient, home), lambda dy: dy))


@executor.implements(keep)
def keep_whole(gradient: Any, home: Home) -> None:
    """Add a gradient to what is kept."""
    home.gradient = gradient.clone() if home.gradient is None else home.gradient + gradient


@executor.implements(with_kept_whole)
def take_whole(gradient: Any, home: Home) -> Any:
    """Return a gradient with what was kept, which is forgotten."""
    kept, home.gradient = home.gradient, None
    return gradient if kept is None else kept + gradient


# In the user's program ------------------------------------------------------------------------------------------------


def of_program() -> bool:
    """Return whether the call of this function is part of a program that is being compiled."""
    return False


def replicated_parameter(parameter: Any, how: Replicated, synchronise: bool) -> Any:
    """Return what stands for a replicated parameter: outside of programs itself."""
    return parameter


def sharded_parameter(parameter: Any, how: Sharded, synchronise: bool) -> Any:
    """Return what stands for a sharded parameter: outside of programs this process's part."""
    return parameter


def sharded_parameter_again(parameter: Any, how: Sharded, synchronise: bool) -> Any:
    """Return what stands for a sharded parameter: outside of programs this process's part."""
    return parameter


def parameter_alone(parameter: Any, how: Part, synchronise: bool) -> Any:
    """Return what stands for a parameter that this process alone has."""
    return divided_gradient(parameter, how.axis.size)


def divided_gradient(parameter: Any, count: int) -> Any:
    """Return a parameter whose gradient is divided: outside of programs itself."""
    return parameter


executor.replacements.update({
    divided_gradient: alone,
    of_program: Symbol("of_program", DIST_PRIMS, meta=lambda: True, doc="Always true in programs."),
    replicated_parameter: replicated,
    sharded_parameter: sharded,
    sharded_parameter_again: sharded_again,
})  # fmt: skip

__all__ = [
    "Home", "Part", "Replicated", "Sharded", "add_kept", "alone", "gather", "keep_whole", "of_program",
    "parameter_alone", "part_of", "replicated", "replicated_parameter", "rows_of", "scatter", "sharded",
    "sharded_again", "sharded_parameter", "sharded_parameter_again", "take_whole",
]  # fmt: skip
