"""Proxies of numbers: computing with them is recorded, and comparing them what it relied on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from thunder_ir.builder import active_method, current_builder, find_builder
from thunder_ir.errors import UnknownNumberError
from thunder_ir.polynomials import Polynomial, computed, constant, difference, polynomial_of
from thunder_ir.proxies import Proxy
from thunder_ir.unknown import Unknown, decided, described, is_unknown

_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1}  # what leaves an integer as it is
_COMMUTATIVE = frozenset({"add", "mul"})


_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
_PLAIN = frozenset({bool, int, float, complex})


def _takes(other: Any, answer: str) -> bool:
    """Whether an operator computes with a value: not where that is of a class with its own answer, as NumPy's are.

    Args:
        other: the value.
        answer: the method that Python calls on it where a number's own operator does not know it.
    """
    cls = other.__class__
    if cls in _PLAIN or isinstance(other, NumberProxy):
        return True
    base = next((base for base in (int, float, complex) if isinstance(other, base)), None)
    return base is not None and getattr(cls, answer) is getattr(base, answer)


def _arithmetic(operation: str, reflected: bool = False) -> Callable[..., Any]:
    """A number's operator: a new symbolic number, recorded by the language's ``number_<operation>``."""
    answer = f"__{operation}__" if reflected else f"__r{operation}__"

    def apply(self: NumberProxy, other: Any) -> Any:
        if not _takes(other, answer):
            return NotImplemented
        known = _NEUTRAL.get(operation)
        if known is not None and other.__class__ is int and other == known and isinstance(self, IntegerProxy):
            if not reflected or operation in _COMMUTATIVE:
                return self
        return _computed(operation, *((other, self) if reflected else (self, other)))

    return apply


def _computed(operation: str, *numbers: Any) -> Any:
    method = active_method(f"number_{operation}")
    if any([is_unknown(n) and not n.name for n in numbers]):  # no program can refer to it yet: metadata alone
        return method.evaluate(current_builder(), numbers, {})  # type: ignore[attr-defined]
    if not _are_symbolic_integers(numbers):
        return method(*numbers)
    polynomial = computed(operation, *numbers)
    if polynomial is None:
        return method(*numbers)
    always = constant(polynomial)
    if always is not None and (operation in ("add", "sub", "mul") or numbers[1] != 0):
        return always
    result = method(*numbers)
    result.polynomial = polynomial
    return result


def _are_symbolic_integers(numbers: tuple[Any, ...]) -> bool:
    """Whether numbers are integers none of which only the run of the program tells."""
    return all([isinstance(n, int) or (isinstance(n, IntegerProxy) and n.unknown is None) for n in numbers])


def _comparison(relation: str, compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """A number's comparison: decided by the values at hand, and recorded as a constraint of the trace."""
    answer = f"__{_MIRRORED.get(relation, relation)}__"

    def apply(self: NumberProxy, other: Any) -> Any:
        if not _takes(other, answer):
            return NotImplemented
        if self.unknown is not None or is_unknown(other):
            return decided(relation, self, other)
        is_itself = other is self or (isinstance(other, NumberProxy) and other.name and other.name == self.name)
        if is_itself and isinstance(self, IntegerProxy):
            return compare(self.value, self.value)  # holds for every value, but NaN: nothing to guard
        if _are_symbolic_integers((self, other)):
            apart = constant(difference(polynomial_of(self), polynomial_of(other)))
            if apart is not None:
                return compare(apart, 0)  # whatever they are: nothing to record, and no trace needed
            return current_builder().compared(relation, self, other, compare(self.value, value_of(other)))
        return current_builder().constrain(relation, self, other, compare(self.value, value_of(other)))

    return apply


def _of_bits(compute: Callable[[int, int], int], reflected: bool = False) -> Callable[..., Any]:
    """An operator on the bits of integers, or on truths, which fixes them."""

    def apply(self: _WithBits, other: Any) -> Any:
        if not isinstance(other, (int, _WithBits)):
            return NotImplemented
        mine, given = self.fixed(), other.fixed() if isinstance(other, _WithBits) else other
        return compute(given, mine) if reflected else compute(mine, given)

    return apply


def _power(reflected: bool = False) -> Callable[..., Any]:
    """A number's power, whose kind depends on signs: these become constraints of the trace."""
    apply = _arithmetic("pow", reflected)

    def power(self: NumberProxy, other: Any) -> Any:
        base, exponent = (other, self) if reflected else (self, other)
        if not is_unknown(base) and not is_unknown(exponent):
            if isinstance(exponent, (int, IntegerProxy)):
                _ = isinstance(base, (int, IntegerProxy)) and exponent < 0
            elif isinstance(exponent, (float, FloatProxy)) and isinstance(base, (int, float, IntegerProxy, FloatProxy)):
                _ = base < 0 and exponent % 1 == 0
        return apply(self, other)

    return power


_pow = _power()


class NumberProxy(Proxy):
    """Stands for a Python number whose value the program does not fix.

    Comparing it decides by ``value`` and records a constraint; using it where Python wants a plain number fixes it.
    One that is known only when the program runs can be neither fixed nor, where that depends on it, compared.

    Args:
        value: the value while recording; of an unknown number, one that serves for estimates alone.
        unknown: what is known of a number whose value only the run of the program tells.

    ``definition`` is the call that computed it, if one did: a pass may compare a number that no trace keeps.
    """

    __slots__ = ("definition", "unknown", "value")
    prefix = "n"
    python_type: type = complex

    def __init__(self, value: Any, name: str = "", unknown: Unknown | None = None) -> None:
        self.name = name
        self.value = value
        self.unknown = unknown
        self.definition: Any = None

    @property
    def type_string(self) -> str:
        return self.python_type.__name__

    def fixed(self) -> Any:
        """Return the value, and constrain the program to it.

        Raises:
            UnknownNumberError: it is known only when the program runs.
        """
        if self.unknown is not None:
            recording = find_builder()
            if recording is not None and recording.oracle is not None:
                return recording.oracle.value(self)
            raise UnknownNumberError(f"Python needs the value of {described(self)}, known only when the program runs")
        builder = find_builder()
        if builder is not None and isinstance(self, IntegerProxy):
            builder.compared("eq", self, self.value, True)
        elif builder is not None:
            equal_tells = self.value == self.value and (
                self.value or not isinstance(self.value, float)
            )  # NaN and zeros
            builder.constrain("eq" if equal_tells else "same", self, self.value, True)
        return self.value

    def __bool__(self) -> bool:
        if self.unknown is not None:
            return decided("ne", self, 0)
        if isinstance(self, IntegerProxy):
            return current_builder().compared("ne", self, 0, bool(self.value))
        return current_builder().constrain("ne", self, 0, bool(self.value))

    def __hash__(self) -> int:
        return hash(self.fixed())

    def __int__(self) -> int:
        return int(self.fixed())

    def __float__(self) -> float:
        return float(self.fixed())

    def __complex__(self) -> complex:
        return complex(self.fixed())

    def __str__(self) -> str:  # what a program writes of a number is its value
        return str(self.fixed())

    def __repr__(self) -> str:  # nor does it matter which code in C writes it, of a list or by ``%r``
        return repr(self.fixed()) if find_builder() is not None else super().__repr__()

    def __dir__(self) -> list[str]:
        return dir(self.python_type)

    def __format__(self, spec: str) -> str:
        return format(self.fixed(), spec)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.fixed(), digits)

    __eq__ = _comparison("eq", lambda a, b: bool(a == b))
    __ne__ = _comparison("ne", lambda a, b: bool(a != b))
    __lt__ = _comparison("lt", lambda a, b: bool(a < b))
    __le__ = _comparison("le", lambda a, b: bool(a <= b))
    __gt__ = _comparison("gt", lambda a, b: bool(a > b))
    __ge__ = _comparison("ge", lambda a, b: bool(a >= b))
    __add__ = _arithmetic("add")
    __radd__ = _arithmetic("add", reflected=True)
    __sub__ = _arithmetic("sub")
    __rsub__ = _arithmetic("sub", reflected=True)
    __mul__ = _arithmetic("mul")
    __rmul__ = _arithmetic("mul", reflected=True)
    __truediv__ = _arithmetic("truediv")
    __rtruediv__ = _arithmetic("truediv", reflected=True)
    __floordiv__ = _arithmetic("floordiv")
    __rfloordiv__ = _arithmetic("floordiv", reflected=True)
    __mod__ = _arithmetic("mod")
    __rmod__ = _arithmetic("mod", reflected=True)
    __rpow__ = _power(reflected=True)

    def __pow__(self, other: Any, modulus: Any = None) -> Any:
        return _pow(self, other) if modulus is None else pow(int(self), int(other), int(modulus))

    def __getattr__(self, name: str) -> Any:
        """Attributes that Python's numbers have are those of the value; reading one fixes it."""
        if name.startswith("__") or not hasattr(self.python_type, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.fixed(), name)

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **settings: Any) -> Any:
        """NumPy computes with the value, as it does with Python's numbers: that fixes it."""
        if any([_is_asked_by_numpy(value) for value in inputs if not isinstance(value, NumberProxy)]):
            return NotImplemented
        given = [value.fixed() if isinstance(value, NumberProxy) else value for value in inputs]
        return getattr(function, method)(*given, **settings)

    def __divmod__(self, other: Any) -> Any:
        return (self // other, self % other) if _takes(other, "__rdivmod__") else NotImplemented

    def __rdivmod__(self, other: Any) -> Any:
        return (other // self, other % self) if _takes(other, "__divmod__") else NotImplemented

    def __neg__(self) -> Any:
        return _computed("neg", self)

    def __abs__(self) -> Any:
        return _computed("abs", self)


def _is_asked_by_numpy(value: object) -> bool:
    """Whether NumPy asks a value what comes of computing with it, as it asks no array or scalar of its own."""
    return any(["__array_ufunc__" in vars(cls) for cls in type(value).__mro__ if cls.__module__ != "numpy"])


class _WithBits(NumberProxy):
    """Stands for an ``int`` or a ``bool``."""

    __slots__ = ()

    __and__ = _of_bits(operator.and_)
    __rand__ = _of_bits(operator.and_, reflected=True)
    __or__ = _of_bits(operator.or_)
    __ror__ = _of_bits(operator.or_, reflected=True)
    __xor__ = _of_bits(operator.xor)
    __rxor__ = _of_bits(operator.xor, reflected=True)
    __lshift__ = _of_bits(operator.lshift)
    __rlshift__ = _of_bits(operator.lshift, reflected=True)
    __rshift__ = _of_bits(operator.rshift)
    __rrshift__ = _of_bits(operator.rshift, reflected=True)

    def __index__(self) -> int:
        return int(self.fixed())

    def __invert__(self) -> int:
        return ~int(self.fixed())


class IntegerProxy(_WithBits):
    """Stands for an ``int``, such as a dimension that may change from call to call.

    ``polynomial`` is what it comes to in terms of others, where it is symbolic and that was asked for.
    """

    __slots__ = ("polynomial",)
    prefix = "i"
    python_type = int

    def __init__(self, value: Any, name: str = "", unknown: Unknown | None = None) -> None:
        super().__init__(value, name, unknown)
        self.polynomial: Polynomial | None = None


class FloatProxy(NumberProxy):
    """Stands for a ``float``."""

    __slots__ = ()
    prefix = "f"
    python_type = float

    def is_integer(self) -> bool:
        """Return whether the number is a whole one, which becomes a constraint of the trace."""
        return bool(self % 1 == 0)


class ComplexProxy(NumberProxy):
    """Stands for a ``complex``."""

    __slots__ = ()
    prefix = "c"
    python_type = complex


class BoolProxy(_WithBits):
    """Stands for a ``bool``."""

    __slots__ = ()
    prefix = "b"
    python_type = bool

    def __bool__(self) -> bool:
        if self.unknown is not None:
            builder = find_builder()
            if builder is not None and builder.oracle is not None:
                return builder.oracle.truth(self)
            raise UnknownNumberError(f"{self.unknown.what} is known only when the program runs")
        return super().__bool__()


Dimension = int | IntegerProxy
Number = bool | int | float | complex | NumberProxy


def value_of(number: Any) -> Any:
    """Return the number itself, or the value at hand of a number proxy."""
    return number.value if isinstance(number, NumberProxy) else number


def are_one_number(a: Any, b: Any) -> bool:
    """Whether two numbers are the same whatever the symbolic ones stand for: asked where nothing is recorded.

    Example:
        >>> n, m = number_proxy(3, "n"), number_proxy(3, "m")
        >>> are_one_number(n, n), are_one_number(n, m), are_one_number(n, 3), are_one_number(3, 3)
        (True, False, False, True)
    """
    if isinstance(a, NumberProxy) or isinstance(b, NumberProxy):
        if a is b or (isinstance(a, NumberProxy) and isinstance(b, NumberProxy) and a.name == b.name != ""):
            return True
        return _are_symbolic_integers((a, b)) and not difference(polynomial_of(a), polynomial_of(b))
    return bool(a == b)


def is_one(number: Any) -> bool:
    """Whether a number is 1, whatever the symbolic ones stand for: asked where nothing is recorded."""
    return number.__class__ is int and bool(number == 1)


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are equal; symbolic dimensions are asked only where that depends on them.

    Example:
        >>> n = number_proxy(3, "n")
        >>> same_shape((n, 2), (n, 2)), same_shape((n, 2), (3, 4)), same_shape((n, 3), (3,))
        (True, False, False)
    """
    if len(a) != len(b):
        return False
    unsure = [(x, y) for x, y in zip(a, b, strict=True) if x is not y]
    if any([x.__class__ is y.__class__ is int and x != y for x, y in unsure]):
        return False
    return all([are_one_number(x, y) or bool(x == y) for x, y in unsure])


_OF_PYTHON = {bool: BoolProxy, int: IntegerProxy, float: FloatProxy, complex: ComplexProxy}


def number_proxy(value: bool | int | float | complex, name: str = "", unknown: Unknown | None = None) -> NumberProxy:
    """Return an unnamed proxy for a number of that type, with ``value`` at hand."""
    return _OF_PYTHON[type(value)](value, name, unknown)
