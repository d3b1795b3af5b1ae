"""The structure of a region: what is equal for regions that one kernel serves, whatever their values are called."""

from __future__ import annotations

from collections.abc import Container, Hashable, Iterable, Sequence
from typing import Any

from thunder_ir import BoundSymbol, Device, DType, IntegerProxy, Proxy, TensorProxy, is_unknown
from thunder_ir.keys import key_of
from thunder_ir.polynomials import Atom, polynomial_of

Structure = tuple[Hashable, ...]
"""Equal for regions that compute the same; keeps the symbols that it names alive."""


def structure_of(
    bounds: Sequence[BoundSymbol],
    outputs: Iterable[Proxy],
    *,
    plain: Container[type] = (),
    sizes_at_hand: bool = False,
) -> Structure | None:
    """Return what regions that compute the same have in common; ``None`` where that is not known.

    Values count by the order in which they occur, and by their metadata. Sizes and numbers that only a call tells, and
    arguments that are other objects than numbers, texts, dtypes, devices and slices, are equal to nothing.

    Args:
        bounds: the calls, in order.
        outputs: the values that are wanted of them.
        plain: more classes, whose instances never change and are equal where they print the same; of tuples, their own.
        sizes_at_hand: whether open sizes are equal that are of each other, and are now, the same. That is enough for
            questions such as what a region costs, and not for sharing what was compiled of it.

    Example:
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_loops import structure_of
        >>> one, other = (trace_of(lambda a: prims.exp(a), Tensor((n,))) for n in (2, 2))
        >>> structure_of(one.bound_symbols, one.outputs) == structure_of(other.bound_symbols, other.outputs)
        True
    """
    writer = _Writer(plain, sizes_at_hand)
    found: list[Hashable] = []
    try:
        for bound in bounds:
            found.append(bound.symbol)
            found.append(writer.text((bound.args, bound.kwargs, bound.output)))
        found.append(writer.text(tuple(outputs)))
    except _UnknownError:
        return None
    return tuple(found)


_PLAIN = frozenset({bool, int, float, complex, str, DType, Device, type(...)})
"""Classes whose instances are what they print as; those of subclasses may be equal for a while only."""


class _UnknownError(Exception):
    """Raised for what is equal to nothing."""


class _Writer:
    """Writes arguments as text; proxies are numbered as they occur."""

    def __init__(self, plain: Container[type], sizes_at_hand: bool) -> None:
        self.numbers: dict[str, str] = {}
        self.plain = plain
        self.sizes_at_hand = sizes_at_hand
        self.atoms: dict[Atom, int] = {}

    def text(self, value: Any) -> str:
        cls = value.__class__
        if cls is TensorProxy:
            return self.numbers.get(value.name) or self.first(value)
        if cls is tuple or cls is list:
            return f"{cls.__name__}({','.join([self.text(v) for v in value])})"
        if value is None or cls in _PLAIN:
            return key_of(value)
        if cls is dict:
            return f"{{{','.join([f'{self.text(k)}:{self.text(v)}' for k, v in value.items()])}}}"
        if isinstance(value, IntegerProxy):
            return self.size(value)
        if isinstance(value, Proxy):
            return self.numbers.get(value.name) or self.first(value)
        if cls is slice:
            return f"slice{self.text((value.start, value.stop, value.step))}"
        if cls in self.plain:
            return f"{cls.__name__}:{self.text(tuple(value)) if isinstance(value, tuple) else repr(value)}"
        raise _UnknownError

    def first(self, value: Proxy) -> str:
        """Write a value where it occurs first: its number and its metadata."""
        if not isinstance(value, TensorProxy):
            raise _UnknownError
        shape: Any = value.shape
        strides: Any = value.strides
        if not all([size.__class__ is int for size in (*shape, *(strides or ()))]):
            shape, strides = ([*map(self.size, sizes or ())] for sizes in (shape, strides))
        number = self.numbers[value.name] = f"%{len(self.numbers)}"
        return f"{number}:{shape}{strides}{value.dtype.name}{value.device}{value.requires_grad}"

    def size(self, size: Any) -> str:
        """Write a size; an open one as a polynomial of the open ones before it, with its value."""
        if size.__class__ is int:
            return str(size)
        if not self.sizes_at_hand or size.value is None or is_unknown(size):
            raise _UnknownError
        terms = []
        for product, count in polynomial_of(size).items():
            terms.append(f"{count}*{[self.atoms.setdefault(atom, len(self.atoms)) for atom in product]}")
        return f"{'+'.join(terms)}={size.value}"
