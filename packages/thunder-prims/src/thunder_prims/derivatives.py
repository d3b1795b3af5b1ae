"""Derivative rules by the kind of operation: elementwise ones, and those that are linear in their first argument."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thunder_autograd import ZERO, jvp_rule, vjp_rule
from thunder_autograd.traits import is_differentiable
from thunder_ir import MissingRuleError, Symbol, TensorProxy
from thunder_prims.creation import full

Map = Callable[[TensorProxy], Any]
"""From the tangent of one operand to what it adds to the tangent of the result."""


@dataclass(frozen=True, slots=True)
class NoFormula:
    """Stands in place of a map for an operand with a derivative that cannot be written down.

    Args:
        operation: for the message.
        operand: which one of its operands, ``"first"``.
    """

    operation: str
    operand: str

    def refused(self) -> MissingRuleError:
        """Return the error to raise where the derivative is wanted."""
        return MissingRuleError(
            f"{self.operation} has no derivative with respect to its {self.operand} argument; detach it first"
        )


Maps = Callable[..., Any]
"""Takes the operands and then the result of an elementwise operation; returns a :data:`Map` for each operand."""


def derivatives(*symbols: Symbol, replace: bool = False) -> Callable[[Maps], Maps]:
    """Make vjp and jvp rules of elementwise operations of the derivative alone.

    The decorated function takes the operation's arguments and its result ``y``, and returns for each argument the map
    ``d -> d * dy/da``, as one function for one argument and as a tuple for several; ``None`` stands for an argument
    whose derivative is zero everywhere, :class:`NoFormula` for one whose derivative is refused. The tangent of the
    result is the sum of what the maps make of the tangents. As each element depends only on its own place, a map is
    its own transpose, so the pullback applies it too, to conjugates where the dtype is complex.

    Args:
        symbols: the operations.
        replace: whether they have rules already, which go.
    """

    def register(maps: Maps) -> Maps:
        for symbol in symbols:
            _register(symbol, maps, replace)
        return maps

    return register


def _register(symbol: Symbol, maps: Maps, replace: bool) -> None:
    def vjp(*args: Any) -> tuple[Any, Callable[[TensorProxy], Any]]:
        y = symbol(*args)

        def pullback(dy: TensorProxy) -> tuple[Any, ...]:
            of = _as_tuple(maps(*args, y))
            return tuple(
                [_pulled_back(f, a, dy) if is_differentiable(a) else None for f, a in zip(of, args, strict=False)]
            )

        return y, pullback

    def jvp(*args_and_tangents: Any) -> tuple[Any, Any]:
        args, tangents = halves(args_and_tangents)
        y = symbol(*args)
        of = _as_tuple(maps(*args, y))
        total: Any = None
        for f, d in zip(of, tangents, strict=False):
            if f is None or d is None:
                continue
            if isinstance(f, NoFormula):
                raise f.refused()
            total = f(d) if total is None else total + f(d)
        return y, total

    vjp.__name__ = vjp.__qualname__ = f"{symbol.name}_vjp"
    jvp.__name__ = jvp.__qualname__ = f"{symbol.name}_jvp"
    vjp.__doc__ = jvp.__doc__ = maps.__doc__
    if replace:
        vjp_rule.replace(symbol, vjp)
        jvp_rule.replace(symbol, jvp)
    else:
        vjp_rule(symbol)(vjp)
        jvp_rule(symbol)(jvp)


def _pulled_back(f: Map | NoFormula | None, a: TensorProxy, dy: TensorProxy) -> Any:
    if isinstance(f, NoFormula):
        if a.requires_grad:
            raise f.refused()
        return full(
            a.shape, math.nan, a.dtype, a.device
        )  # dropped where nothing wants it, and loud where user code does
    if f is None:
        return ZERO
    return f(dy.conj()).conj() if dy.dtype.is_complex else f(dy)


def _as_tuple(maps: Any) -> tuple[Map | NoFormula | None, ...]:
    return maps if isinstance(maps, tuple) else (maps,)


def constant_in_pieces(*symbols: Symbol) -> None:
    """Give elementwise operations whose derivative is zero wherever there is one their rules, which say so."""

    def maps(*args_and_y: Any) -> tuple[None, ...]:
        """Zero, which nothing computes with."""
        return (None,) * (len(args_and_y) - 1)

    derivatives(*symbols)(maps)


def halves(args_and_tangents: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return the arguments and the tangents of a call of a jvp rule: there is one tangent for each argument."""
    middle = len(args_and_tangents) // 2
    return args_and_tangents[:middle], args_and_tangents[middle:]


def linear(*symbols: Symbol) -> None:
    """Give operations that are linear in their first argument, and constant in the others, their jvp rule.

    The tangent goes the way of the value: ``dy = f(da, ...)``.
    """
    for symbol in symbols:
        _register_linear(symbol)


def _register_linear(symbol: Symbol) -> None:
    def jvp(*args_and_tangents: Any) -> tuple[Any, Any]:
        (a, *rest), (da, *_) = halves(args_and_tangents)
        y = symbol(a, *rest)
        return y, None if da is None else symbol(da, *rest)

    jvp.__name__ = jvp.__qualname__ = f"{symbol.name}_jvp"
    jvp.__doc__ = f"``dy = {symbol.name}(da, ...)``, for it is linear."
    jvp_rule(symbol)(jvp)
