"""Numbers and dimensions that a program makes dynamic, and what it demands of them."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_executors import to_callable
from thunder_guards._guards.base import GONE, Told
from thunder_guards._guards.values import is_looked_up, same_value
from thunder_guards.sources import Source
from thunder_ir import (
    BoundSymbol,
    Constraint,
    Context,
    IntegerProxy,
    Names,
    NumberProxy,
    TensorProxy,
    Trace,
    UnknownNumberError,
    flat_proxies,
)
from thunder_ir.polynomials import Atom, Bounds, decided, difference, narrowed, polynomial_of, range_of

RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "same": same_value,
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class NumberInput:
    """An external number that a program reads and does not fix.

    Args:
        proxy: what stands for it in the computation.
        source: how the prologue gets at it.
    """

    proxy: NumberProxy
    source: Source


class ConstraintsGuard:
    """The symbolic numbers meet every constraint that was recorded.

    Args:
        inputs: the numbers.
        constraints: how comparisons came out.
    """

    __slots__ = ("check", "constraints", "inputs")

    def __init__(self, inputs: Sequence[NumberInput], constraints: Sequence[Constraint]) -> None:
        self.inputs = tuple(inputs)
        self.constraints = telling([c for c in constraints if flat_proxies((c.left, c.right))])
        self.check = _checker([i.proxy for i in inputs], self.constraints) if self.constraints else None

    def failure(self, roots: dict[str, Any]) -> str | None:
        """Say which constraint the numbers of a call do not meet; ``None`` if they meet all."""
        if self.check is None:
            return None
        try:
            values = [i.source.evaluate(roots) for i in self.inputs]
            broken = self.check(*values)
        except GONE as error:
            return f"a number cannot be computed ({error})"
        if broken is None:
            return None
        names = ", ".join(f"{i.proxy.name} = {i.source} = {v!r}" for i, v in zip(self.inputs, values, strict=True))
        return f"{described(broken)} does not hold any more, where {names}"


def telling(constraints: Sequence[Constraint]) -> tuple[Constraint, ...]:
    """Return those of the constraints that do not follow from the ones before them."""
    return _telling(constraints)[0]


def fixed_numbers(numbers: Sequence[NumberInput], constraints: Sequence[Constraint]) -> list[tuple[NumberInput, int]]:
    """Return the integers among the symbolic numbers of a program that its constraints fix, with their values."""
    bounds = _telling(constraints)[1]
    found = []
    for number in numbers:
        if isinstance(number.proxy, IntegerProxy):
            low, high = range_of(polynomial_of(number.proxy), bounds)
            if low == high:
                found.append((number, int(low)))
    return found


def _telling(constraints: Sequence[Constraint]) -> tuple[tuple[Constraint, ...], Bounds]:
    """Return those of the constraints that do not follow from the ones before, and what they leave of numbers."""
    bounds: Bounds = {}
    found = []
    for constraint in constraints:
        relation, left, right = constraint.relation, constraint.left, constraint.right
        if all([isinstance(n, int) or isinstance(n, IntegerProxy) for n in (left, right)]) and relation != "same":
            polynomial = difference(polynomial_of(left), polynomial_of(right))
            if decided(relation, polynomial, bounds) is not None:
                continue
            narrowed(relation, constraint.holds, polynomial, bounds)
        found.append(constraint)
    return tuple(found), bounds


def told_by_numbers(numbers: Sequence[NumberInput], constraints: Sequence[Constraint]) -> Iterator[Told]:
    """Yield what tells programs apart that compare numbers which each computes of its open ones in the same way."""
    sources = {number.proxy.name: number.source for number in numbers}
    for constraint in telling(constraints):
        left, right = constraint.left, constraint.right
        if not isinstance(left, NumberProxy):
            left, right = right, left
        if constraint.relation in ("eq", "same") and constraint.holds and is_looked_up(right):
            question = _question(left, sources)
            if question is not None:
                yield ("number", question), functools.partial(_look, numbers, left), right


def _question(number: object, sources: Mapping[str, Source]) -> Hashable:
    """Return what tells whether two numbers are computed alike: the steps, each once; ``None`` if they cannot be."""
    steps: dict[Hashable, int] = {}
    places: dict[int, int | None] = {}

    def place(value: object) -> int | None:
        if id(value) in places:
            return places[id(value)]
        step: Hashable = None
        if not isinstance(value, NumberProxy):
            step = (type(value), value) if is_looked_up(value) else None
        elif value.definition is None:
            step = sources[value.name].question if value.name in sources else None
        elif not value.definition.kwargs:
            args = tuple([place(a) for a in value.definition.args])
            step = None if None in args else (id(value.definition.symbol), args)
        places[id(value)] = None if step is None else steps.setdefault(step, len(steps))
        return places[id(value)]

    return None if place(number) is None else tuple(steps)


def _look(numbers: Sequence[NumberInput], number: NumberProxy, context: Context) -> str:
    """Return Python source that computes a number of the open ones of a program."""
    inputs = [n.proxy for n in numbers]
    calls = _Numbers(inputs)
    made = calls.computed(number)
    compute = to_callable(Trace("number", tuple(inputs), tuple(calls.calls), made))
    return f"{context.object(compute, 'number')}({', '.join([n.source.expression(context) for n in numbers])})"


def described(constraint: Constraint) -> str:
    """Return a constraint as text."""
    left, right = (p.name if isinstance(p, NumberProxy) else repr(p) for p in (constraint.left, constraint.right))
    signs = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "same": "is"}
    text = f"{left} {signs[constraint.relation]} {right}"
    return text if constraint.holds else f"not ({text})"


def _checker(inputs: Sequence[NumberProxy], constraints: Sequence[Constraint]) -> Callable[..., Constraint | None]:
    """Return a function of the numbers that returns the first constraint they break, or ``None``."""
    numbers = _Numbers(inputs)
    compared = tuple([(numbers.computed(c.left), numbers.computed(c.right)) for c in constraints])
    compute = to_callable(Trace("numbers", tuple(inputs), tuple(numbers.calls), compared))

    def check(*given: Any) -> Constraint | None:
        for constraint, (left, right) in zip(constraints, compute(*given), strict=True):
            if RELATIONS[constraint.relation](left, right) != constraint.holds:
                return constraint
        return None

    return check


class _Numbers:
    """The calls that compute numbers of those among a program's inputs, in order.

    Passes compare numbers that may be in none of the traces kept, and go by a name that another one has there. So what
    counts is the call that computed a number.

    Args:
        inputs: the numbers among the inputs.
    """

    def __init__(self, inputs: Sequence[NumberProxy]) -> None:
        self.calls: list[BoundSymbol] = []
        self._inputs = {p.name: p for p in inputs}
        self._names = Names()
        self._names.reserve(self._inputs)
        self._computed: dict[int, NumberProxy] = {}

    def computed(self, number: NumberProxy) -> Any:
        """Return what stands for ``number`` when the calls have run."""
        waiting = [number]
        while waiting:
            if self._known(waiting[-1]) is not None:
                waiting.pop()
                continue
            call = waiting[-1].definition
            if call is None:
                raise UnknownNumberError(f"the program compares {number.name}, which depends not on numbers alone")
            missing = [p for p in call.inputs if self._known(p) is None]
            waiting += missing
            if not missing:
                made = waiting.pop().renamed(self._names.fresh("n"))
                self._computed[id(call)] = made
                self.calls.append(call.substituted({p.name: self._known(p) for p in call.inputs}).replace(output=made))
        return self._known(number)

    def _known(self, number: object) -> Any:
        if not isinstance(number, NumberProxy):
            if isinstance(number, TensorProxy):
                raise UnknownNumberError(f"the program compares a number that depends on the tensor {number.name}")
            return number
        return self._inputs.get(number.name) if number.definition is None else self._computed.get(id(number.definition))


def make_symbolic(
    proxy: TensorProxy, dims: frozenset[int], name: Callable[[str], str], source: Source
) -> list[NumberInput]:
    """Replace dimensions of an input's proxy by symbolic integers; return these.

    Args:
        proxy: changed.
        dims: which dimensions.
        name: hands out names.
        source: of the tensor.
    """
    shape: list[Any] = list(proxy.shape)
    numbers = []
    for d in sorted(dims):
        shape[d] = IntegerProxy(shape[d], name("i"))
        shape[d].polynomial = {(Atom(least=0),): 1}
        numbers.append(NumberInput(shape[d], Source(Source(source, "attribute", "shape"), "item", d)))
    proxy.shape, proxy.strides = tuple(shape), None
    return numbers
