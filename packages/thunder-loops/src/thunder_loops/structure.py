"""The structure of a region: what is equal for regions that one kernel serves, whatever their values are called."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from typing import Any, Literal

from thunder_ir import BoundSymbol, Device, DType, IntegerProxy, Proxy, TensorProxy, is_unknown
from thunder_ir.keys import key_of
from thunder_ir.polynomials import Atom, polynomial_of

Structure = tuple[Hashable, ...]
"""Equal for regions that compute the same; keeps the symbols that it names alive."""

Symbolic = Literal["unequal", "at hand", "identical"]
"""When symbolic sizes are equal: never, where they are of each other, and now, the same, or where they are computed
alike of the very same ones."""


def structure_of(
    bounds: Sequence[BoundSymbol],
    outputs: Iterable[Any],
    *,
    plain: Container[type] = (),
    symbolic: Symbolic = "unequal",
) -> Structure | None:
    """Return what regions that compute the same have in common; ``None`` where that is not known.

    Values count by the order in which they occur, and by their metadata. Sizes and numbers that only a call tells, and
    arguments that are other objects than numbers, texts, dtypes, devices and slices, are equal to nothing.

    Args:
        bounds: the calls, in order.
        outputs: the values that are wanted of them, and containers of such.
        plain: more classes, whose instances never change and are equal where they print the same; of tuples, their own.
        symbolic: when symbolic sizes are equal. Those at hand are enough for questions such as what a region costs, and
            not for sharing what was compiled of it; that takes identical ones, within one program: see
            :func:`is_of_one_program`.

    Example:
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_loops import structure_of
        >>> one, other = (trace_of(lambda a: prims.exp(a), Tensor((n,))) for n in (2, 2))
        >>> structure_of(one.bound_symbols, one.outputs) == structure_of(other.bound_symbols, other.outputs)
        True
    """
    writer = _Writer(plain, symbolic)
    try:
        for bound in bounds:
            writer.found.append(bound.symbol)
            writer.write(bound.args)
            writer.write(bound.kwargs)
            writer.write(bound.output)
        writer.write(tuple(outputs))
    except _UnknownError:
        return None
    return (_OF_ONE_PROGRAM, *writer.found) if writer.names else tuple(writer.found)


def is_of_one_program(structure: Structure) -> bool:
    """Whether regions of a structure have symbolic sizes, of which there may be constraints of one program."""
    return structure[:1] == (_OF_ONE_PROGRAM,)


_OF_ONE_PROGRAM = "of one program"


_PLAIN = frozenset({float, complex, DType, Device, type(...)})
"""Classes whose instances are what they print as; those of subclasses may be equal for a while only."""

_THEMSELVES = frozenset({bool, int, str})
"""Classes whose instances are equal where they are the same, for those of one class."""


class _UnknownError(Exception):
    """Raised for what is equal to nothing."""


class _Writer:
    """Writes arguments one after the other; proxies are numbered as they occur.

    What comes first of an argument tells how much belongs to it: a class, the number of a proxy, a text or ``None``.
    """

    def __init__(self, plain: Container[type], symbolic: Symbolic) -> None:
        self.found: list[Hashable] = []
        self.numbers: dict[str, int] = {}
        self.plain = plain
        self.symbolic = symbolic
        self.atoms: dict[Atom, int] = {}
        self.names: dict[str, int] = {}
        self.written: dict[Any, str] = {}

    def write(self, value: Any) -> None:
        cls = value.__class__
        if cls is TensorProxy:
            self.tensor(value)
        elif cls is tuple or cls is list:
            self.found += (cls, len(value))
            for item in value:
                self.write(item)
        elif cls in _THEMSELVES:
            self.found += (cls, value)
        elif value is None:
            self.found.append(None)
        elif cls in _PLAIN:
            self.found.append(key_of(value))
        elif cls is dict:
            self.found += (dict, len(value))
            for key, item in value.items():
                self.write(key)
                self.write(item)
        elif isinstance(value, IntegerProxy):
            self.found.append(self.size(value))
        elif isinstance(value, Proxy):
            self.tensor(value)
        elif cls is slice:
            self.found.append(slice)
            self.write((value.start, value.stop, value.step))
        elif cls in self.plain:
            self.found.append(cls)
            self.write(tuple(value) if isinstance(value, tuple) else repr(value))
        else:
            raise _UnknownError

    def tensor(self, value: Proxy) -> None:
        """Write a value: its number, or where it occurs first its metadata."""
        number = self.numbers.get(value.name)
        if number is not None:
            self.found.append(number)
            return
        if not isinstance(value, TensorProxy):
            raise _UnknownError
        self.numbers[value.name] = len(self.numbers)
        shape, strides = self.sizes(value.shape), self.sizes(value.strides)
        self.found += (TensorProxy, shape, strides, value.dtype.name, str(value.device), value.requires_grad)

    def sizes(self, sizes: tuple[Any, ...] | None) -> Hashable:
        """Write sizes or strides."""
        for size in sizes or ():
            if size.__class__ is not int:
                return tuple(map(self.size, sizes or ()))
        return sizes

    def size(self, size: Any) -> str:
        """Write a size; a symbolic one as a polynomial, with its value or, where these are identical, its number."""
        if size.__class__ is int:
            return str(size)
        key = size.name or id(size)
        written = self.written.get(key)
        if written is None:
            written = self.written[key] = self.symbolic_size(size)
        return written

    def symbolic_size(self, size: Any) -> str:
        """Write a symbolic size that was not met before."""
        identical = self.symbolic == "identical"
        if self.symbolic == "unequal" or size.value is None or is_unknown(size) or (identical and not size.name):
            raise _UnknownError
        terms = []
        for product, count in polynomial_of(size).items():
            atoms = [a.serial if identical else self.atoms.setdefault(a, len(self.atoms)) for a in product]
            terms.append(f"{count}*{atoms}")
        told = self.names.setdefault(size.name, len(self.names)) if identical else size.value
        return f"{'+'.join(terms)}={told}"
