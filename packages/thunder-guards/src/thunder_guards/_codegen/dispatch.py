"""Finding the specialisation for a call without trying them in turn.

Where there is one specialisation, its guards are asked. Where there are more, a call is first sorted by how it is
written and by the types of its arguments. For each combination, a function is generated that takes a key from the
arguments: what tells the specialisations apart, of shapes, dtypes, numbers and strings. What they differ in besides is
looked at as :mod:`thunder_guards._codegen.choice` says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_guards._codegen.choice import Node, added, candidates
from thunder_guards._codegen.specialise import Specialisation
from thunder_guards._guards import ArgumentsGuard
from thunder_ir import Context

Call = Callable[[tuple[Any, ...], dict[str, Any], Callable[..., Any]], Any]
_BY_VALUE = (bool, int, str, bytes, type(None), torch.dtype, torch.device)


class Shelf:
    """Specialisations that are found by a key, made of what tells them apart.

    Args:
        arguments: guards of which kind the calls are.
        told_by: Python expressions for what may tell specialisations apart.
    """

    __slots__ = ("_all_aspects", "_arguments", "_aspects", "_table", "_telling", "members")

    def __init__(self, arguments: ArgumentsGuard, told_by: list[str]) -> None:
        self._arguments = arguments
        self._aspects = told_by
        self._all_aspects = self._key_function(range(len(told_by)))
        self.members: list[tuple[Sequence[Any], Specialisation]] = []
        self._telling: tuple[int, ...] = ()
        self._table: tuple[Callable[..., Any], dict[Any, Node]] | None = None  # which one alone does without

    def add(self, specialisation: Specialisation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add a specialisation for calls like this one."""
        self.members.append((self._all_aspects(args, kwargs), specialisation))
        columns = enumerate(zip(self.members[0][0], self.members[-1][0], strict=True))
        telling = tuple([i for i, (first, last) in columns if i in self._telling or first != last])
        if self._table is not None and telling == self._telling:
            self._file(self._table[1], *self.members[-1])
        elif len(self.members) > 1:
            self._telling = telling
            self._file_all()

    def drop(self, specialisation: Specialisation) -> None:
        """Take out a specialisation. Others may be looking for one meanwhile: they find the tables before or after."""
        self.members = [m for m in self.members if m[1] is not specialisation]
        self._file_all()

    def prefer(self, specialisation: Specialisation) -> None:
        """Let a specialisation be tried first where nothing tells it from others."""
        first = [m for m in self.members if m[1] is specialisation]
        self.members = [*[m for m in self.members if m[1] is not specialisation], *first]
        self._file_all()

    def proposed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialisation, ...]:
        """Return the specialisations that may serve a call: one, unless nothing tells them apart."""
        if self._table is None:
            return tuple([specialisation for _, specialisation in self.members])
        key, entries = self._table
        try:
            found = entries.get(key(args, kwargs))
        except RuntimeError:  # a tensor that has no shape
            return ()
        return (found,) if found.__class__ is Specialisation else candidates(found, args, kwargs)

    def _file_all(self) -> None:
        entries: dict[Any, Node] = {}
        for member in self.members:
            self._file(entries, *member)
        self._table = (self._key_function(self._telling), entries)

    def _file(self, entries: dict[Any, Node], values: Sequence[Any], specialisation: Specialisation) -> None:
        key = tuple([values[i] for i in self._telling])
        entries[key] = added(entries.get(key), specialisation)

    def _key_function(self, telling: Sequence[int]) -> Callable[..., Any]:
        """Return a function from arguments to these of their aspects; to ``None`` for calls of another kind."""
        context = Context()
        context.names.reserve(["args", "kwargs"])
        context.globals["grad"] = torch.is_grad_enabled
        key = f"({''.join([self._aspects[i] + ', ' for i in telling])})"
        alike = " and ".join(self._arguments.conditions(context))
        return eval(f"lambda args, kwargs: {key} if {alike} else None", context.globals)  # type: ignore[no-any-return]


class SignatureBucket:
    """The specialisations for calls that are written alike, with arguments of one combination of types.

    Args:
        args, kwargs: examples of the arguments.
        symbolic: whether shapes and numbers do not tell specialisations apart, because they may be symbolic.
    """

    __slots__ = ("_filled", "_of_many_sizes", "_of_one_size", "_symbolic", "serve")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], symbolic: bool) -> None:
        arguments = ArgumentsGuard(args, kwargs)
        self._symbolic = symbolic
        self._of_many_sizes = Shelf(arguments, aspects(args, kwargs, symbolic=True))
        """Those with symbolic sizes or numbers: asked where no other one is found."""
        self._of_one_size = self._of_many_sizes if symbolic else Shelf(arguments, aspects(args, kwargs, symbolic=False))
        self._filled: tuple[Shelf, ...] = ()
        """Those to be asked, in order."""
        self.serve: Call = self._find
        """Calls the specialisation for a call."""

    @property
    def specialisations(self) -> list[Specialisation]:
        """All of them, of each kind the oldest first."""
        return [specialisation for shelf in self._shelves() for _, specialisation in shelf.members]

    def add(self, specialisation: Specialisation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add a specialisation for calls like this one."""
        shelf = self._of_many_sizes if self._symbolic or specialisation.is_symbolic() else self._of_one_size
        shelf.add(specialisation, args, kwargs)
        self._settle()

    def drop(self, specialisation: Specialisation) -> None:
        """Take out a specialisation."""
        self._shelf_of(specialisation).drop(specialisation)
        self._settle()

    def prefer(self, specialisation: Specialisation) -> None:
        """Let a specialisation be tried first where nothing tells it from others."""
        self._shelf_of(specialisation).prefer(specialisation)

    def proposed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialisation, ...]:
        """Return the specialisations that may serve a call: one, unless nothing tells them apart."""
        return tuple([found for shelf in self._shelves() for found in shelf.proposed(args, kwargs)])

    def _shelves(self) -> tuple[Shelf, ...]:
        return (self._of_one_size,) if self._symbolic else (self._of_one_size, self._of_many_sizes)

    def _shelf_of(self, specialisation: Specialisation) -> Shelf:
        return next(s for s in self._shelves() if any([m is specialisation for _, m in s.members]))

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any], miss: Callable[..., Any]) -> Any:
        for shelf in self._filled:
            for specialisation in shelf.proposed(args, kwargs):
                result = specialisation.call(args, kwargs, missed)
                if result is not MISSED:
                    return result
        return miss(args, kwargs)

    def _settle(self) -> None:
        those = self.specialisations
        self._filled = tuple([shelf for shelf in self._shelves() if shelf.members])
        self.serve = those[0].call if len(those) == 1 else self._find


def aspects(args: tuple[Any, ...], kwargs: dict[str, Any], symbolic: bool) -> list[str]:
    """Return Python expressions for what may tell specialisations for arguments of these types apart."""
    found = ["grad()"]
    for place, value in [(f"args[{i}]", a) for i, a in enumerate(args)] + [
        (f"kwargs[{k!r}]", v) for k, v in kwargs.items()
    ]:
        if isinstance(value, torch.Tensor):
            found += [f"{place}.dim()" if symbolic else f"{place}.shape", f"{place}.dtype", f"{place}.requires_grad"]
        elif symbolic and type(value) in (int, float):
            continue
        elif type(value) in _BY_VALUE:
            found.append(place)
        elif type(value) is float:
            found.append(f"({place} if {place} == {place} else 'nan')")
    return found


class Dispatcher:
    """The specialisations of a compiled function.

    Args:
        miss: ``(args, kwargs) -> result``: compiles a specialisation, adds it, and calls it.
        symbolic: whether shapes and numbers of programs may be symbolic.
    """

    __slots__ = ("_buckets", "_miss", "_serve", "_symbolic", "calls")

    def __init__(self, miss: Callable[[tuple[Any, ...], dict[str, Any]], Any], symbolic: bool = False) -> None:
        self._symbolic = symbolic
        self._buckets: dict[Any, SignatureBucket] = {}
        self._miss = miss
        self._serve: Call | None = None
        """That of the bucket, where there is one only."""
        self.calls = 0

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the specialisation for these arguments; without one, compile it."""
        self.calls += 1
        serve = self._serve
        if serve is None:
            bucket = self._buckets.get(_kind_of(args, kwargs))
            if bucket is None:
                return self._miss(args, kwargs)
            serve = bucket.serve
        return serve(args, kwargs, self._miss)

    @property
    def specialisations(self) -> list[Specialisation]:
        """All of them."""
        return [specialisation for bucket in self._buckets.values() for specialisation in bucket.specialisations]

    def proposed(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Specialisation, ...]:
        """Return the specialisations that may serve a call: one, unless nothing tells them apart."""
        bucket = self._buckets.get(_kind_of(args, kwargs))
        return () if bucket is None else bucket.proposed(args, kwargs)

    def add(self, specialisation: Specialisation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add a specialisation for calls like this one."""
        kind = _kind_of(args, kwargs)
        if kind not in self._buckets:
            self._buckets[kind] = SignatureBucket(args, kwargs, self._symbolic)
        self._buckets[kind].add(specialisation, args, kwargs)
        self._settle()

    def prefer(self, specialisation: Specialisation) -> None:
        """Let a specialisation be tried first where nothing tells it from others."""
        for bucket in list(self._buckets.values()):
            if specialisation in bucket.specialisations:
                bucket.prefer(specialisation)

    def drop(self, specialisation: Specialisation) -> None:
        """Take out a specialisation."""
        for kind, bucket in list(self._buckets.items()):
            if specialisation in bucket.specialisations:
                bucket.drop(specialisation)
                if not bucket.specialisations:
                    del self._buckets[kind]
        self._settle()

    def _settle(self) -> None:
        buckets = list(self._buckets.values())
        self._serve = buckets[0].serve if len(buckets) == 1 else None


def _kind_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    types = tuple(map(type, args))
    return (types, tuple(kwargs), *map(type, kwargs.values())) if kwargs else types


MISSED = object()


def missed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Say that a specialisation does not serve a call."""
    return MISSED
