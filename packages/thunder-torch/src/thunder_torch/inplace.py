"""Operations that write to their arguments, as operations that return values: derived from names and schemas.

``x.add_(y)``, ``torch.relu_(x)``, ``F.relu(x, inplace=True)``, ``torch.add(a, b, out=c)``, ``x[0] = y`` and custom
operators that mutate are all the same here: a functional call, and the tensors to which its values are written.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_torch.around import Around
from thunder_torch.errors import UnsupportedMutationError
from thunder_torch.names import is_tagged, last_name, name_of, path_of, tensors_by_position
from thunder_torch.places import setitem
from thunder_torch.torch_versions import OpOverload, OpOverloadPacket


@dataclass(frozen=True)
class Mutation:
    """A call that writes to its arguments, as a functional call and what is to be done with its values.

    Args:
        function: the functional callable: look it up with ``find_symbol``, or make it opaque.
        args, kwargs: what it is called with.
        targets: the tensors that are written to, in order.
        returns_targets: whether the original call returns the targets themselves: one alone, or as a tuple.
        written: how many leading items of the functional call's output are the new values of the targets; ``None``
            where the output, whole, is the value of the one target.
        tracked: whether autograd sees the write, where it is enabled.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    targets: tuple[Any, ...]
    returns_targets: bool = True
    written: int | None = None
    resizes: bool = field(default=False)
    tracked: bool = True

    def values(self, output: Any) -> tuple[Any, ...]:
        """Return the new value of each target from the functional call's output."""
        return (output,) if self.written is None else tuple(output[: self.written])

    def result(self, output: Any) -> Any:
        """Return what the original call returns where that is not its targets."""
        rest = tuple(output[self.written or 0 :])
        return rest[0] if len(rest) == 1 else rest if rest else None


@dataclass(frozen=True)
class OutOfPlace(Around):
    """An in-place method, run on a copy of its first argument: for those that have no out-of-place form.

    Args:
        function: ``torch.Tensor.normal_``, say.
    """

    function: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return super().__name__.rstrip("_")

    def __call__(self, a: torch.Tensor, /, *args: Any, **kwargs: Any) -> torch.Tensor:
        written: torch.Tensor = self.function(a.clone(), *args, **kwargs)
        return written


@dataclass(frozen=True)
class WithOut(Around):
    """A function with ``out=`` of some dtypes, in which PyTorch may compute, run on new memory for its results.

    Args:
        function: ``torch.sum``, say.
        dtypes, device: of its results.
        several: whether it takes a tuple of them.
    """

    function: Callable[..., Any]
    dtypes: tuple[torch.dtype, ...]
    device: torch.device
    several: bool

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        made = tuple([torch.empty(0, dtype=dtype, device=self.device) for dtype in self.dtypes])
        self.function(*args, **kwargs, out=made if self.several else made[0])
        return made if self.several else made[0]


@dataclass(frozen=True)
class Functionalized:
    """A custom operator that mutates, run on copies; it returns the new values, then what the operator returns.

    Args:
        operator: an overload of ``torch.ops``.
        mutated: which of its arguments it writes to.
    """

    operator: Callable[..., Any]
    mutated: tuple[str, ...]

    @property
    def __name__(self) -> str:
        return f"functional_{name_of(self.operator)}"

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        given = _by_name(self.operator, args, kwargs)
        copies = {n: given[n].clone() for n in self.mutated if given.get(n) is not None}
        output = _call_by_name(self.operator, {**given, **copies})
        rest = output if isinstance(output, tuple) else () if output is None else (output,)
        return (*copies.values(), *rest)


def _schema(operator: Any) -> Any:
    if isinstance(operator, OpOverloadPacket):
        names: list[str] = operator.overloads()  # type: ignore[no-untyped-call]
        operator = operator.default if "default" in names else getattr(operator, names[0])
    return operator._schema if isinstance(operator, OpOverload) else None


def _by_name(operator: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    names = [a.name for a in _schema(operator).arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _call_by_name(operator: Any, given: dict[str, Any]) -> Any:
    arguments = _schema(operator).arguments
    positional = [given[a.name] for a in arguments if not a.kwarg_only and a.name in given]
    return operator(*positional, **{a.name: given[a.name] for a in arguments if a.kwarg_only and a.name in given})


def mutated_names(function: Any) -> tuple[str, ...]:
    """Return the names of the arguments to which a ``torch.ops`` operator writes, by its schema."""
    schema = _schema(function)
    if schema is None:
        return ()
    return tuple([a.name for a in schema.arguments if a.alias_info is not None and a.alias_info.is_write])


_FILLS: dict[str, Callable[..., Any]] = {
    "zero_": torch.zeros_like,
    "fill_": torch.full_like,
}
_NO_WRITE = frozenset({"requires_grad_", "retain_grad", "share_memory_", "__array_interface__"})
_DUNDERS = {
    f"__i{n}__": f"__{n}__"
    for n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift")
} | {"__idiv__": "__truediv__"}
_OF_THEIR_OWN = frozenset({"bernoulli_", "float_power_"})
"""In-place methods that take other arguments than their out-of-place counterparts, or refuse more."""


def batch_norm_updating(
    input: torch.Tensor,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    training: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return what the running statistics hold after ``batch_norm`` in training, and its result."""
    mean, var = running_mean.clone(), running_var.clone()
    return mean, var, F.batch_norm(input, mean, var, weight, bias, training, momentum, eps)


def instance_norm_updating(
    input: torch.Tensor,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return what the running statistics hold after ``instance_norm`` of its input's statistics, and its result."""
    mean, var = running_mean.clone(), running_var.clone()
    return mean, var, F.instance_norm(input, mean, var, weight, bias, use_input_stats, momentum, eps)


@cache
def functional_of(function: Any) -> Callable[..., Any] | None:
    """Return the out-of-place counterpart of an in-place function or method, or ``None`` if it is none.

    Args:
        function: such as ``torch.Tensor.add_``, ``torch.relu_``, ``torch.Tensor.__iadd__``.

    Example:
        >>> import torch
        >>> from thunder_torch.inplace import functional_of
        >>> functional_of(torch.Tensor.add_) is torch.Tensor.add, functional_of(torch.Tensor.add)
        (True, None)
    """
    path = path_of(function)
    if not path:
        return None
    place, _, name = path.rpartition(".")
    if name in _DUNDERS:
        method: Callable[..., Any] = getattr(torch.Tensor, _DUNDERS[name])
        return method
    if not name.endswith("_") or name.endswith("__") or name in _NO_WRITE or place.startswith("torch.ops"):
        return None
    if name in _FILLS and place in ("torch", "torch.Tensor"):
        return _FILLS[name]
    if name == "copy_":
        return copy
    where = {"torch": torch, "torch.Tensor": torch.Tensor, "torch.nn.functional": F}.get(place)
    plain: Callable[..., Any] | None = getattr(where, name[:-1], None) if where is not None else None
    if plain is None and place == "torch.nn.functional":
        plain = getattr(torch, name[:-1], None)
    if plain is not None and callable(plain) and name not in _OF_THEIR_OWN:
        return plain
    return OutOfPlace(function)


@cache
def _changes_metadata(function: Any) -> bool:
    """Whether an in-place method changes the metadata of its target, and more than what autograd knows of it."""
    return is_tagged(function, torch.Tag.inplace_view) and last_name(function) != "detach_"


@cache
def out_may_be_read(function: Any) -> tuple[bool, bool]:
    """Return whether a function with ``out=`` may be given for that what it reads first, and what it reads further.

    It may if it computes each element of what lies in the same place, or has a method that writes in place. Of others,
    such as ``torch.sum``, PyTorch's kernels may have written the one before they read the other.

    Example:
        >>> import torch
        >>> from thunder_torch.inplace import out_may_be_read
        >>> [out_may_be_read(f) for f in (torch.add, torch.cumsum, torch.sum)]
        [(True, True), (True, False), (False, False)]
    """
    name = last_name(function)
    packet = getattr(torch.ops.aten, name, None)
    overloads = [] if packet is None else [getattr(packet, n) for n in packet.overloads() if "out" in n]
    by_element = any([torch.Tag.pointwise in overload.tags for overload in overloads])
    return by_element or hasattr(torch.Tensor, f"{name}_"), by_element


def copy(a: torch.Tensor, source: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Return what ``a`` holds after ``a.copy_(source)``."""
    return torch.empty_like(a).copy_(source, non_blocking=non_blocking)


_CALLED_HERE = {(copy, "other"): "source", (torch.full_like, "value"): "fill_value"}
"""What out-of-place counterparts call arguments that the functions which write call otherwise."""

_UPDATING: dict[Any, tuple[Callable[..., Any], str]] = {
    F.batch_norm: (batch_norm_updating, "training"),
    F.instance_norm: (instance_norm_updating, "use_input_stats"),
}
"""Functions that update running statistics where that flag is set, and what returns these instead."""


@cache
def _inplace_position(function: Any) -> int | None:
    """Return at which position a function takes its argument ``inplace``, or ``None``."""
    if not path_of(function).startswith("torch.nn.functional"):
        return None
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return None
    return names.index("inplace") if "inplace" in names else None


def _statistics(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mutation | None:
    """Return a normalisation that updates its running statistics as a call that returns them, else ``None``."""
    updating, flag = _UPDATING[function]
    names = list(inspect.signature(updating).parameters)
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if not given.get(flag, flag == "use_input_stats"):
        return None
    targets = (given.get("running_mean"), given.get("running_var"))
    if targets[0] is None or targets[1] is None:
        return None
    positional = tuple([given.pop(n) for n in names[:3]])
    return Mutation(updating, positional, given, targets, returns_targets=False, written=2)


def functionalise(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mutation | None:
    """Return a call that writes to its arguments as a :class:`Mutation`, or ``None`` if it writes to none.

    Args:
        function: what is called.
        args, kwargs: of the call; the targets come back as the very objects given.

    Raises:
        UnsupportedMutationError: the call changes the metadata of a tensor and not its values (``resize_``, ``set_``).

    Example:
        >>> import torch
        >>> from thunder_torch.inplace import functionalise
        >>> x = torch.ones(2)
        >>> mutation = functionalise(torch.Tensor.mul_, (x, 3), {})
        >>> mutation.targets[0] is x, mutation.function(*mutation.args)
        (True, tensor([3., 3.]))
    """
    args, kwargs = tensors_by_position(function, args, kwargs)
    if kwargs.get("out") is not None:
        return _with_out(function, args, kwargs)
    if isinstance(function, (OpOverload, OpOverloadPacket)):
        return _custom(function, args, kwargs)
    if function is torch.Tensor.__setitem__:
        return Mutation(setitem, args, kwargs, (args[0],), returns_targets=False)
    if function in _UPDATING:
        return _statistics(function, args, kwargs)
    position = _inplace_position(function)
    if position is not None:
        return _with_inplace(function, args, kwargs, position)
    if not path_of(function):
        return None
    if _changes_metadata(function):
        raise UnsupportedMutationError(
            f"{last_name(function)} changes the shape or memory of a tensor in place; "
            f"use the out-of-place form ({last_name(function)[:-1]}) and assign its result"
        )
    functional = functional_of(function)
    if functional is None:
        return None
    kwargs = {_CALLED_HERE.get((functional, k), k): v for k, v in kwargs.items()}
    if functional is torch.full_like:
        value = args[1] if len(args) > 1 else kwargs.get("fill_value")
        if isinstance(value, torch.Tensor) and not value.dim():  # through which gradients flow
            return Mutation(copy, (args[0], value), {}, (args[0],))
    return Mutation(functional, args, kwargs, (args[0],), tracked=not path_of(function).startswith("torch.nn.init."))


def _with_inplace(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], position: int) -> Mutation | None:
    if len(args) > position:
        if not args[position]:
            return None
        args = (*args[:position], False, *args[position + 1 :])
    elif kwargs.get("inplace"):
        kwargs = {k: v for k, v in kwargs.items() if k != "inplace"}
    else:
        return None
    return Mutation(function, args, kwargs, (args[0],))


def _with_out(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mutation:
    """``out=`` may have any shape: PyTorch resizes it, with a warning where it is not empty."""
    out = kwargs["out"]
    rest = {k: v for k, v in kwargs.items() if k != "out"}
    if isinstance(out, (tuple, list)):
        return Mutation(function, args, rest, tuple(out), written=len(out), resizes=True)
    return Mutation(function, args, rest, (out,), resizes=True)


def _custom(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Mutation | None:
    names = mutated_names(function)
    if not names:
        return None
    given = _by_name(function, args, kwargs)
    targets = tuple([given[n] for n in names if given.get(n) is not None])
    schema = _schema(function)
    returns_targets = any(r.alias_info is not None and r.alias_info.is_write for r in schema.returns)
    functional = Functionalized(function, names)
    return Mutation(functional, args, kwargs, targets, returns_targets, written=len(targets))
