"""Fake tensors, some of whose sizes are dynamic, and what PyTorch says of them and demands of their sizes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import Source
from torch.fx.experimental.symbolic_shapes import DimDynamic
from torch.utils._sympy.functions import CeilToInt, FloorDiv, FloorToInt, Max, Min, Mod, PythonMod, ToFloat, TruncToInt

from thunder_ir import FloatProxy, IntegerProxy, map_values
from thunder_prims import number_math
from thunder_torch.errors import FixedError
from thunder_torch.stand_ins import SizeEnv, StandIns

RELATIONS: dict[str | None, Callable[[Any, Any], Any]] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

ROUNDING = {TruncToInt: "trunc", FloorToInt: "floor", CeilToInt: "ceil"}
"""What makes an integer of a float, and the function of ``math`` that does the same."""


@dataclass(frozen=True)
class _Place(Source):
    """Where a size comes from, for PyTorch: nowhere but here."""

    index: int

    @property
    def _name_template(self) -> str:
        return f"size{self.index}"

    if isinstance(Source.name, FunctionType):  # since PyTorch 2.10, a property that says what the template does

        def name(self) -> str:  # type: ignore[override]
            return self._name_template


class Expressions:
    """Computes PyTorch's expressions of symbols in the program. Whatever is no plain arithmetic fixes the numbers.

    Args:
        numbers: what each symbol stands for.
    """

    def __init__(self, numbers: Mapping[Any, IntegerProxy]) -> None:
        self._numbers = numbers

    def demand(self, found: Sequence[Any]) -> None:
        """Make constraints of the program of what PyTorch found out of the sizes."""
        for expression in found:
            for demanded in expression.args if type(expression).__name__ == "And" else (expression,):  # SymPy's
                relation = RELATIONS.get(getattr(demanded, "rel_op", None))
                if relation is None:
                    self._fixed(demanded)
                elif not relation(*map(self.computed, demanded.args)):
                    raise AssertionError(f"{demanded} does not hold")

    def computed(self, expression: Any) -> Any:
        """Compute an expression of symbols in the program."""
        if expression.is_Integer:
            return int(expression)
        if expression in self._numbers:
            return self._numbers[expression]
        if isinstance(expression, FloorDiv):
            return self.computed(expression.args[0]) // self.computed(expression.args[1])
        if isinstance(expression, (Mod, PythonMod)):
            return self.computed(expression.args[0]) % self.computed(expression.args[1])
        if isinstance(expression, (Min, Max)):
            return (min if isinstance(expression, Min) else max)(map(self.computed, expression.args))
        if type(expression) in ROUNDING and isinstance(number := self._real(expression.args[0]), FloatProxy):
            return number_math(ROUNDING[type(expression)], number)
        if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
            return self.computed(expression.base) ** int(expression.exp)
        if not (expression.is_Add or expression.is_Mul) or not all([a.is_integer for a in expression.args]):
            return self._fixed(expression)
        result, *others = map(self.computed, expression.args)
        for other in others:
            result = result + other if expression.is_Add else result * other
        return result

    def _real(self, expression: Any) -> Any:
        """Compute a product of an integer and a plain float in the program; ``None`` for other floats."""
        if not expression.is_Mul or len(expression.args) != 2:
            return None
        factor, integer = expression.args  # in this order: a number stands first
        if not factor.is_Float or not isinstance(integer, ToFloat):
            return None
        return float(factor) * self.computed(integer.args[0])

    def _fixed(self, expression: Any) -> Any:
        """Fix all sizes in an expression; return its value."""
        values = {symbol: int(self._numbers[symbol]) for symbol in expression.free_symbols}
        value = expression.xreplace(values)
        return int(value) if value.is_Integer else value


@dataclass(frozen=True, slots=True)
class _Expression:
    """A number in what is told of a result, of PyTorch's symbols."""

    of: Any


@dataclass(frozen=True)
class Told:
    """What PyTorch told of a call for symbols, which serves other numbers in their places.

    Args:
        spec: of the result.
        found: what it relies on.
        symbols: with the place of each among the symbolic numbers of the call, and whether it stands for the negative
            of that one.
    """

    spec: Any
    found: tuple[Any, ...]
    symbols: tuple[tuple[Any, int, bool], ...]

    def of(self, numbers: Sequence[IntegerProxy]) -> tuple[Any, Callable[[], None]]:
        """Return the specification for numbers of a program, and what makes constraints of what it relies on."""
        if any([numbers[place] >= 0 if turned else numbers[place] < 1 for _, place, turned in self.symbols]):
            raise FixedError("what PyTorch told of a size is of positive ones, or of negative ones")
        given = {symbol: -numbers[place] if turned else numbers[place] for symbol, place, turned in self.symbols}
        program = Expressions(given)
        spec = map_values(lambda v: program.computed(v.of) if v.__class__ is _Expression else v, self.spec)
        return spec, lambda: program.demand(self.found)


class OpenSizes(StandIns):
    """One run of an operation on fake tensors whose symbolic sizes are symbols of PyTorch's.

    What it tells is of the symbols, and so is what PyTorch found out of the sizes on its way.

    Args:
        values_decide: whether results may depend on values, rather than on sizes alone.
        may_fix: whether PyTorch may ask for the value of a size; if not, that raises :class:`FixedError`.
        in_python: whether PyTorch takes operations apart in Python, where symbols stay symbols more often than in C++;
            what it makes of them may share memory otherwise.
    """

    def __init__(self, values_decide: bool = False, may_fix: bool = True, in_python: bool = False) -> None:
        super().__init__(
            SizeEnv(
                allow_scalar_outputs=values_decide,
                allow_dynamic_output_shape_ops=values_decide,
                specialize_zero_one=False,
                duck_shape=False,
            )
        )
        self.dispatching = enable_python_dispatcher if in_python else nullcontext
        self.may_fix = may_fix
        self._symbols: dict[Any, Any] = {}
        self._proxies: dict[Any, IntegerProxy] = {}

    # --- the way in ------------------------------------------------------------------------------------------------

    def size(self, number: Any) -> Any:
        """Return what stands for a symbolic integer: a symbol, or, of one below 0, a symbol's negative; 0 is fixed.

        It has to be positive, or negative, from then on.
        """
        if number.__class__ is int:
            return number
        turned = number < 1
        if turned and number >= 0:
            return int(number)
        key = _key_of(number)
        known: Any = self._symbols.get(key)
        if known is None:
            source, value = _Place(len(self._symbols)), abs(number.value)
            symbol = self.env.create_symbol(value, source, DimDynamic.DYNAMIC, do_not_specialize_zero_one=True)
            self._proxies[symbol] = number
            made = self.env.create_symintnode(symbol, hint=value, source=source)
            known = self._symbols[key] = -made if turned else made
        return known

    def settle(self) -> None:
        """Refuse where PyTorch asked for the value of a size, if that is not to be.

        Raises:
            FixedError: it did.
        """
        if not self.may_fix and any([_is_value(guard.expr) for guard in self.env.guards]):
            raise FixedError("PyTorch asked for the value of a symbolic size")

    # --- the way out -----------------------------------------------------------------------------------------------

    def dimension(self, size: Any, place: int) -> Any:
        """Return a size of a result: a plain integer, or a number of the program."""
        return size if isinstance(size, int) else self.computed(size.node.expr)

    def strides(self, strides: Any) -> tuple[Any, ...] | None:
        """Return the strides of a result."""
        return tuple([self.dimension(s, 0) for s in strides])

    def result(self, value: Any) -> Any:
        """Return a number among the results; one that is no integer fixes the sizes that it depends on."""
        if isinstance(value, torch.SymInt):
            return self.computed(value.node.expr)
        return float(value) if isinstance(value, torch.SymFloat) else bool(value)

    def computed(self, expression: Any) -> Any:
        """Return a plain integer, or what is told in place of a number of the program."""
        return int(expression) if expression.is_Integer else _Expression(expression)

    def numbers(self) -> list[IntegerProxy]:
        """Return what symbols stand for."""
        return list(self._proxies.values())

    def told(self, spec: Any, numbers: Sequence[IntegerProxy]) -> Told:
        """Return what PyTorch told of a result, with its specification, by the symbolic numbers of the call."""
        places = {_key_of(number): place for place, number in enumerate(numbers)}
        symbols = tuple([(s, places[_key_of(number)], number.value < 0) for s, number in self._proxies.items()])
        return Told(spec, tuple([guard.expr for guard in self.env.guards]), symbols)


def _key_of(number: IntegerProxy) -> Any:
    return number.name or id(number)


def _is_value(expression: Any) -> bool:
    """Whether an expression says which value sizes have."""
    return getattr(expression, "rel_op", None) == "==" and any([side.is_Integer for side in expression.args])
