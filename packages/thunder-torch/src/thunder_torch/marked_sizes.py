"""Sizes of results that are products of symbolic ones, told by PyTorch for sizes that stand out: two sets of primes.

So it goes for operations whose kernels take plain sizes only, where a symbol would be refused.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

from thunder_ir import IntegerProxy, TensorProxy, flat_proxies, is_unknown, map_values, value_of
from thunder_ir.polynomials import Atom, polynomial_of
from thunder_ir.unknown import product, terms_of
from thunder_torch.specs import TensorSpec, resized, tensors_of
from thunder_torch.unknown_sizes import sum_of

LEAST = 5
"""Marks are primes from here on: that their kernels take another way for small sizes is not known of any of them."""

Tell = Callable[[tuple[Any, ...], dict[str, Any]], Any]


class _Differ(Exception):
    """What two sets of marks tell is no product."""


def told_by_marks(tell: Tell, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the specification of a result whose sizes are products of symbolic ones; ``None`` if they are not.

    Sizes may have to be equal, such as those of batches of several arguments: where marks that are all different are
    refused, those that are equal now get one mark, and that they are becomes a constraint of the program.

    Args:
        tell: returns the specification for plain sizes.
        args, kwargs: of the call, with at least one symbolic size.
    """
    sizes = [d for t in tensors_of(args, kwargs) for d in (*t.shape, *(getattr(t, "strides", None) or ()))]
    sizes += [n for n in flat_proxies((args, kwargs)) if isinstance(n, IntegerProxy)]
    proxies, factors = _units(sizes)
    others = [d for d in sizes if d.__class__ is int and d]
    equal = {proxy.value: proxy for atom, proxy in reversed(proxies.items()) if factors[atom] == 1}
    alike = {a: equal.get(proxy.value, proxy) if factors[a] == 1 else proxy for a, proxy in proxies.items()}
    for groups in (proxies, alike):
        merged = [(proxy, groups[atom]) for atom, proxy in proxies.items() if proxy is not groups[atom]]
        if any([is_unknown(a) or is_unknown(b) for a, b in merged]):  # no constraint is made of what the run tells
            continue
        found = _told(tell, args, kwargs, groups, factors, others)
        if found is not None and all([a == b for a, b in merged]):
            return found
    return None


def _units(sizes: list[Any]) -> tuple[dict[Atom, IntegerProxy], dict[Atom, int]]:
    """Return for each atom of sizes the one that is its least multiple, and which multiple that is."""
    proxies: dict[Atom, IntegerProxy] = {}
    factors: dict[Atom, int] = {}
    for size in sizes:
        terms = [*polynomial_of(size).items()] if isinstance(size, IntegerProxy) else []
        if len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][1] > 0:
            ((atom,), factor) = terms[0]
            if factor < factors.get(atom, factor + 1):
                proxies[atom], factors[atom] = size, factor
    return proxies, factors


def _told(
    tell: Tell, args: Any, kwargs: Any, groups: dict[Atom, IntegerProxy], factors: dict[Atom, int], others: list[int]
) -> Any:
    """Return what is told where symbolic sizes of one group are equal; ``None`` if that is refused, or no product."""
    numbers = {id(proxy): number for number, proxy in enumerate({id(p): p for p in groups.values()}.values())}
    few = list(itertools.islice(primes(others), len(numbers) + 1))  # kernels may take time by them
    marks = [{atom: few[numbers[id(proxy)] + more] for atom, proxy in groups.items()} for more in (0, 1)]
    try:
        first, second = [tell(_marked(args, m), _marked(kwargs, m)) for m in marks]
        return Merged(groups, *[{a: m[a] * factors[a] for a in m} for m in marks]).merged(first, second)
    except Exception:  # what is to be said of a failure is known better where the sizes are fixed
        return None


def primes(others: list[int]) -> Iterator[int]:
    """Yield primes that divide none of the other sizes."""
    number = LEAST
    while True:
        if all(number % d for d in range(2, math.isqrt(number) + 1)) and all(other % number for other in others):
            yield number
        number += 1


def _marked(values: Any, marks: dict[Atom, int]) -> Any:
    """Return arguments with plain sizes in place of symbolic ones. Raises :class:`KeyError` for one without a mark."""

    def size(number: Any) -> Any:
        if not isinstance(number, IntegerProxy):
            return value_of(number)
        return sum([n * math.prod([marks[a] for a in product]) for product, n in polynomial_of(number).items()])

    return map_values(lambda v: resized(size, v) if isinstance(v, TensorProxy) else size(v), values)


class Merged:
    """Makes one specification of those for two sets of marks.

    Args:
        proxies: what stands for the symbolic sizes; or sizes.
        first, second: their marks.
    """

    def __init__(self, proxies: dict[Any, Any], first: dict[Any, int], second: dict[Any, int]) -> None:
        self._marks = [(proxy, first[atom], second[atom]) for atom, proxy in proxies.items()]

    def merged(self, a: Any, b: Any) -> Any:
        """Return what both specifications tell. Raises :class:`_Differ` if they do not tell the same."""
        if a.__class__ is not b.__class__:
            raise _Differ
        if isinstance(a, TensorSpec):
            if len(a.shape) != len(b.shape) or (a.strides is None) != (b.strides is None):
                raise _Differ
            if a[1:4] + a[5:7] != b[1:4] + b[5:7]:
                raise _Differ
            shape = tuple(map(self._size, a.shape, b.shape))
            strides = None if a.strides is None or b.strides is None else tuple(map(self._size, a.strides, b.strides))
            unknown = any([n.__class__ is not int for n in (*shape, *(strides or ()))])
            return a._replace(shape=shape, strides=strides, has_unknown=unknown)
        if isinstance(a, (tuple, list)):
            if len(a) != len(b):
                raise _Differ
            items = list(map(self.merged, a, b))
            return a._make(items) if hasattr(a, "_make") else a.__class__(items)
        if a != b:
            raise _Differ
        return a

    def _size(self, a: Any, b: Any) -> Any:
        if is_unknown(a) and is_unknown(b):
            if a.unknown.terms is None or b.unknown.terms is None:
                return a if a.unknown.terms is b.unknown.terms else _differ()
            return sum_of(terms_of(self._size(a.value, b.value)), a.unknown.what, 0)  # one that no trial saw change
        if a.__class__ is not int or b.__class__ is not int:
            raise _Differ
        factors = []
        for proxy, first, second in self._marks:
            while a and a % first == 0 and b % second == 0:
                a, b = a // first, b // second
                factors.append(proxy)
        if a != b:
            raise _Differ
        size = a
        if any(map(is_unknown, factors)):  # to be remembered for other calls, with names of their own
            terms = functools.reduce(product, map(terms_of, factors), terms_of(size))
            return factors[0] if terms == (((factors[0],), 1),) else sum_of(terms, "a size", 0)
        for factor in factors:
            size = factor * size
        return size


def _differ() -> Any:
    raise _Differ
