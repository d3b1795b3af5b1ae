"""Proxies: the stand-ins for values while a program is recorded."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Self

from thunder_ir import devices, dtypes
from thunder_ir.builder import current_builder, find_builder
from thunder_ir.devices import Device
from thunder_ir.dtypes import DType
from thunder_ir.errors import OutsideTraceError, UnknownNumberError
from thunder_ir.polynomials import Polynomial, computed, constant, difference, polynomial_of
from thunder_ir.unknown import Unknown, decided, described, is_unknown


class Proxy:
    """A value of the program that is known only when it runs.

    Args:
        name: its name in the trace; the builder gives one when the proxy is recorded as an output.
    """

    __slots__ = ("name",)
    prefix = "t"
    name: str

    def __init__(self, name: str = "") -> None:
        self.name = name

    @property
    def type_string(self) -> str:
        """What a trace says of it in a comment."""
        return type(self).__name__.removesuffix("Proxy").lower()

    def renamed(self, name: str) -> Self:
        """Return the same proxy under another name."""
        cls: Any = type(self)
        other: Self = cls.__new__(cls)
        for slot in _slots(cls):
            if hasattr(self, slot):
                object.__setattr__(other, slot, getattr(self, slot))
        other.name = name
        return other

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name or '?'}: {self.type_string}>"


@cache
def _slots(cls: Any) -> tuple[str, ...]:
    return tuple([slot for base in cls.__mro__ for slot in getattr(base, "__slots__", ())])


class AnyProxy(Proxy):
    """Stands for a value of which nothing is known but where it came from."""

    __slots__ = ()
    prefix = "obj"


class CollectionProxy(Proxy):
    """Stands for a tuple, list or dict that the program unpacks.

    Args:
        collection: an example of it, of the same structure.
    """

    __slots__ = ("collection",)
    prefix = "C"

    def __init__(self, collection: Any, name: str = "") -> None:
        self.name = name
        self.collection = collection

    @property
    def type_string(self) -> str:
        return type(self.collection).__name__


class StringProxy(Proxy):
    """Stands for a string.

    Args:
        value: an example of it.
    """

    __slots__ = ("value",)
    prefix = "s"

    def __init__(self, value: str, name: str = "") -> None:
        self.name = name
        self.value = value

    @property
    def type_string(self) -> str:
        return "str"


_NEUTRAL = {"add": 0, "sub": 0, "mul": 1, "floordiv": 1}  # what leaves an integer as it is
_COMMUTATIVE = frozenset({"add", "mul"})


def _arithmetic(operation: str, reflected: bool = False) -> Callable[..., Any]:
    """A number's operator: a new symbolic number, recorded by the language's ``number_<operation>``."""

    def apply(self: NumberProxy, other: Any) -> Any:
        if not isinstance(other, (int, float, complex, NumberProxy)):
            return NotImplemented
        known = _NEUTRAL.get(operation)
        if known is not None and other.__class__ is int and other == known and isinstance(self, IntegerProxy):
            if not reflected or operation in _COMMUTATIVE:
                return self
        return _computed(operation, *((other, self) if reflected else (self, other)))

    return apply


def _computed(operation: str, *numbers: Any) -> Any:
    method = _method(f"number_{operation}")
    if any([is_unknown(n) and not n.name for n in numbers]):  # no program can refer to it yet: metadata alone
        return method.evaluate(current_builder(), numbers, {})  # type: ignore[attr-defined]
    if len(numbers) == 1 or not _are_open_integers(numbers):
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


def _are_open_integers(numbers: tuple[Any, ...]) -> bool:
    """Whether numbers are integers none of which only the run of the program tells."""
    return all([isinstance(n, int) or (isinstance(n, IntegerProxy) and n.unknown is None) for n in numbers])


def _comparison(relation: str, compare: Callable[[Any, Any], bool]) -> Callable[..., Any]:
    """A number's comparison: decided by the values at hand, and recorded as a constraint of the trace."""

    def apply(self: NumberProxy, other: Any) -> Any:
        if not isinstance(other, (int, float, complex, NumberProxy)):
            return NotImplemented
        if self.unknown is not None or is_unknown(other):
            return decided(relation, self, other)
        is_itself = other is self or (isinstance(other, NumberProxy) and other.name and other.name == self.name)
        if is_itself and isinstance(self, IntegerProxy):
            return compare(self.value, self.value)  # holds for every value, but NaN: nothing to guard
        if _are_open_integers((self, other)):
            return current_builder().compared(relation, self, other, compare(self.value, value_of(other)))
        return current_builder().constrain(relation, self, other, compare(self.value, value_of(other)))

    return apply


def _of_bits(compute: Callable[[int, int], int], reflected: bool = False) -> Callable[..., Any]:
    """An operator on the bits of integers, which fixes them."""

    def apply(self: IntegerProxy, other: Any) -> Any:
        if not isinstance(other, (int, IntegerProxy)):
            return NotImplemented
        mine, given = int(self), int(other)
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

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return _computed("neg", self)

    def __abs__(self) -> Any:
        return _computed("abs", self)


class IntegerProxy(NumberProxy):
    """Stands for an ``int``, such as a dimension that may change from call to call.

    ``polynomial`` is what it comes to in terms of others, where it is open and that was asked for.
    """

    __slots__ = ("polynomial",)
    prefix = "i"
    python_type = int

    def __init__(self, value: Any, name: str = "", unknown: Unknown | None = None) -> None:
        super().__init__(value, name, unknown)
        self.polynomial: Polynomial | None = None

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


class BoolProxy(NumberProxy):
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
    """Whether two numbers are the same whatever the open ones stand for: asked where nothing is recorded.

    Example:
        >>> n, m = number_proxy(3, "n"), number_proxy(3, "m")
        >>> are_one_number(n, n), are_one_number(n, m), are_one_number(n, 3), are_one_number(3, 3)
        (True, False, False, True)
    """
    if isinstance(a, NumberProxy) or isinstance(b, NumberProxy):
        if a is b or (isinstance(a, NumberProxy) and isinstance(b, NumberProxy) and a.name == b.name != ""):
            return True
        return _are_open_integers((a, b)) and not difference(polynomial_of(a), polynomial_of(b))
    return bool(a == b)


def is_one(number: Any) -> bool:
    """Whether a number is 1, whatever the open ones stand for: asked where nothing is recorded."""
    return number.__class__ is int and bool(number == 1)


def same_shape(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether two shapes are equal; open dimensions are asked only where that depends on them.

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


def _method(name: str) -> Callable[..., Any]:
    language = current_builder().language
    if language is None:
        raise OutsideTraceError(f"no language is active that could say what {name!r} means")
    return language.resolve(name)


def _operator(name: str) -> Callable[..., TensorProxy]:
    def apply(self: TensorProxy, *args: Any) -> TensorProxy:
        result: TensorProxy = _method(name)(self, *args)
        return result

    return apply


def _reflected(name: str) -> Callable[..., TensorProxy]:
    def apply(self: TensorProxy, other: Any) -> TensorProxy:
        result: TensorProxy = _method(name)(other, self)
        return result

    return apply


class TensorProxy(Proxy):
    """Stands for a tensor: its metadata and no data. Operators and methods mean what the active language says.

    Args:
        shape: dimensions, ``int`` or :class:`IntegerProxy` each.
        dtype: element type.
        device: where it lives.
        requires_grad: whether derivatives with respect to it, or through it, are wanted.
        strides: in elements, where known.
        base: the tensor of which it is a view, where known.
        steps: how it is obtained from ``base``: bound symbols, in order.
        like: another tensor, which tells shape, dtype, device and ``requires_grad`` where these are not given.

    Example:
        >>> from thunder_ir import TensorProxy, dtypes
        >>> x = TensorProxy(shape=(2, 3), dtype=dtypes.int64)
        >>> TensorProxy(like=x, shape=(4,)).type_string
        'int64[4]'
    """

    __slots__ = ("base", "device", "dtype", "requires_grad", "shape", "steps", "strides")
    prefix = "t"
    shape: tuple[Dimension, ...]
    dtype: DType
    device: Device
    requires_grad: bool

    def __init__(
        self,
        shape: tuple[Dimension, ...] | None = None,
        dtype: DType | None = None,
        device: Device | None = None,
        requires_grad: bool | None = None,
        strides: tuple[Dimension, ...] | None = None,
        base: TensorProxy | None = None,
        steps: tuple[Any, ...] = (),
        name: str = "",
        *,
        like: TensorProxy | None = None,
    ) -> None:
        if like is not None:
            other = like.like(shape=shape, dtype=dtype, device=device, requires_grad=requires_grad)
            shape, dtype, device, requires_grad = other.shape, other.dtype, other.device, other.requires_grad
        elif shape is None:
            raise TypeError("a tensor proxy needs a shape, or another tensor that it is like")
        self.name = name
        self.shape = shape
        self.dtype = dtypes.float32 if dtype is None else dtype
        self.device = devices.cpu if device is None else device
        self.requires_grad = bool(requires_grad)
        self.strides = strides
        self.base = base
        self.steps = steps

    def like(
        self,
        *,
        shape: tuple[Dimension, ...] | None = None,
        dtype: DType | None = None,
        device: Device | None = None,
        requires_grad: bool | None = None,
    ) -> TensorProxy:
        """Return a new unnamed proxy with this one's metadata, but for those given."""
        if dtype is None:
            dtype = self.dtype
        if requires_grad is None:
            requires_grad = self.requires_grad and dtype.is_inexact
        return TensorProxy(
            self.shape if shape is None else shape, dtype, self.device if device is None else device, requires_grad
        )

    def renamed(self, name: str) -> Self:
        cls = self.__class__
        if cls is not TensorProxy:
            return super().renamed(name)
        return cls(self.shape, self.dtype, self.device, self.requires_grad, self.strides, self.base, self.steps, name)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def numel(self) -> Any:
        """Number of elements; in a language that has a method of this name instead, the method."""
        builder = find_builder()
        if builder is not None and builder.language is not None and "numel" in builder.language.instead:
            return partial(builder.language.resolve("numel"), self)
        count: Any = 1
        for dimension in self.shape:
            count = count * dimension
        return count

    @property
    def type_string(self) -> str:
        """Dtype and shape, ``"float32[2, 3]"``, with the device in front where it is not the CPU."""
        for d in self.shape:
            if d.__class__ is not int:
                dims = ", ".join([(d.name or "?") if isinstance(d, Proxy) else str(d) for d in self.shape])
                text = f"{self.dtype.name}[{dims}]"
                break
        else:
            text = f"{self.dtype.name}{list(self.shape)}"
        return text if self.device is devices.cpu or self.device == devices.cpu else f"{self.device} {text}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        builder = find_builder()
        if builder is None or builder.language is None:
            raise AttributeError(f"{self!r} has no attribute {name!r} outside of a recorded program")
        method = builder.language.resolve(name)
        return method(self) if builder.language.is_attribute(name) else partial(method, self)

    def __len__(self) -> Any:
        return _method("len")(self)

    def __iter__(self) -> Any:
        return iter(_method("unbind")(self))

    def __bool__(self) -> bool:
        return bool(_method("bool")(self))

    def __hash__(self) -> int:
        return id(self) >> 4

    __getitem__ = _operator("getitem")
    __add__ = _operator("add")
    __radd__ = _reflected("add")
    __sub__ = _operator("sub")
    __rsub__ = _reflected("sub")
    __mul__ = _operator("mul")
    __rmul__ = _reflected("mul")
    __truediv__ = _operator("true_divide")
    __rtruediv__ = _reflected("true_divide")
    __floordiv__ = _operator("floor_divide")
    __rfloordiv__ = _reflected("floor_divide")
    __mod__ = _operator("remainder")
    __rmod__ = _reflected("remainder")
    __pow__ = _operator("pow")
    __rpow__ = _reflected("pow")
    __matmul__ = _operator("matmul")
    __rmatmul__ = _reflected("matmul")
    __and__ = _operator("bitwise_and")
    __rand__ = _reflected("bitwise_and")
    __or__ = _operator("bitwise_or")
    __ror__ = _reflected("bitwise_or")
    __xor__ = _operator("bitwise_xor")
    __rxor__ = _reflected("bitwise_xor")
    __lshift__ = _operator("bitwise_left_shift")
    __rlshift__ = _reflected("bitwise_left_shift")
    __rshift__ = _operator("bitwise_right_shift")
    __rrshift__ = _reflected("bitwise_right_shift")
    __invert__ = _operator("bitwise_not")
    __neg__ = _operator("neg")
    __pos__ = _operator("positive")
    __abs__ = _operator("abs")
    __eq__ = _operator("eq")  # type: ignore[assignment]
    __ne__ = _operator("ne")  # type: ignore[assignment]
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")


def Tensor(  # noqa: N802  (reads as the type of an example)
    shape: tuple[Dimension, ...],
    dtype: str | DType = "float32",
    device: str | Device = "cpu",
    requires_grad: bool = False,
) -> TensorProxy:
    """Describe a tensor to :func:`thunder_ir.trace_of`.

    Example:
        >>> from thunder_ir import Tensor
        >>> Tensor((2, 3), "float64")
        <TensorProxy ?: float64[2, 3]>
    """
    return TensorProxy(tuple(shape), dtypes.dtype(dtype), devices.device(device), requires_grad)


_OF_PYTHON = {bool: BoolProxy, int: IntegerProxy, float: FloatProxy, complex: ComplexProxy}


def number_proxy(value: bool | int | float | complex, name: str = "", unknown: Unknown | None = None) -> NumberProxy:
    """Return an unnamed proxy for a number of that type, with ``value`` at hand."""
    return _OF_PYTHON[type(value)](value, name, unknown)
