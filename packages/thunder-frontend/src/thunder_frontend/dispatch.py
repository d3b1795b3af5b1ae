"""Finding the specialisation for a call without trying them in turn.

A call is first sorted by the types of its arguments. Where there is one specialisation for a combination of types, its
guards are asked. Where there are more, a function that was generated for the combination takes a key from the
arguments, of what tells specialisations apart most of the time: shapes, dtypes, numbers, strings. What they differ in
besides is looked at as :mod:`thunder_frontend.choice` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend.choice import Node, added, candidates, members
from thunder_frontend.specialise import Specialisation

Call = Callable[[tuple[Any, ...], dict[str, Any], Callable[..., Any]], Any]
_BY_VALUE = (bool, int, str, bytes, type(None), torch.dtype, torch.device)


class Family:
    """The specialisations for arguments of one combination of types."""

    __slots__ = ("entries", "key", "only")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], symbolic: bool) -> None:
        self.key = key_function(args, kwargs, symbolic)
        self.entries: dict[Any, Node] = {}
        self.only: Specialisation | None = None
        """The one that there is, where there is one only."""

    def settle(self) -> None:
        """Find out whether there is one specialisation only."""
        nodes = list(self.entries.values())
        self.only = nodes[0] if len(nodes) == 1 and isinstance(nodes[0], Specialisation) else None


def key_function(args: tuple[Any, ...], kwargs: dict[str, Any], symbolic: bool = False) -> Callable[..., Any]:
    """Return a function from arguments of these types to what tells specialisations apart.

    Args:
        args, kwargs: examples of the arguments.
        symbolic: whether shapes and numbers do not tell, because programs may leave them open.
    """
    parts = ["grad()"]
    for place, value in [(f"args[{i}]", a) for i, a in enumerate(args)] + [
        (f"kwargs[{k!r}]", v) for k, v in kwargs.items()
    ]:
        if isinstance(value, torch.Tensor):
            parts += [f"{place}.dim()" if symbolic else f"{place}.shape", f"{place}.dtype", f"{place}.requires_grad"]
        elif symbolic and type(value) in (int, float):
            continue
        elif type(value) in _BY_VALUE:
            parts.append(place)
        elif type(value) is float:
            parts.append(f"({place} if {place} == {place} else 'nan')")
    scope: dict[str, Any] = {"grad": torch.is_grad_enabled}
    return eval(f"lambda args, kwargs: ({', '.join(parts)},)", scope)  # type: ignore[no-any-return]


class Dispatcher:
    """The specialisations of a compiled function.

    Args:
        miss: ``(args, kwargs) -> result``: compiles a specialisation, adds it, and calls it.
        symbolic: whether programs leave shapes and numbers open.
    """

    __slots__ = ("_families", "_miss", "_symbolic", "calls", "specialisations")

    def __init__(self, miss: Callable[[tuple[Any, ...], dict[str, Any]], Any], symbolic: bool = False) -> None:
        self._symbolic = symbolic
        self._families: dict[Any, Family] = {}
        self._miss = miss
        self.specialisations: list[Specialisation] = []
        self.calls = 0

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        self.calls += 1
        types = tuple(map(type, args))
        family = self._families.get((types, tuple(kwargs), *map(type, kwargs.values())) if kwargs else types)
        if family is None:
            return self._miss(args, kwargs)
        only = family.only
        if only is not None:
            return only.call(args, kwargs, self._miss)
        try:
            found = family.entries.get(family.key(args, kwargs))
        except RuntimeError:  # a tensor that has no shape
            return self._miss(args, kwargs)
        if found is None:
            return self._miss(args, kwargs)
        if type(found) is Specialisation:
            return found.call(args, kwargs, self._miss)
        for specialisation in candidates(found, args, kwargs):
            result = specialisation.call(args, kwargs, _missed)
            if result is not _MISSED:
                return result
        return self._miss(args, kwargs)

    def add(self, specialisation: Specialisation, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Add a specialisation for calls like this one."""
        types: Any = tuple(map(type, args))
        if kwargs:
            types = (types, tuple(kwargs), *map(type, kwargs.values()))
        family = self._families.get(types)
        if family is None:
            family = self._families[types] = Family(args, kwargs, self._symbolic)
        key = family.key(args, kwargs)
        family.entries[key] = added(family.entries.get(key), specialisation)
        family.settle()
        self.specialisations.append(specialisation)

    def drop(self, specialisation: Specialisation) -> None:
        """Take out a specialisation. Others may be looking for one meanwhile: they find the tree before or after."""
        self.specialisations.remove(specialisation)
        for family in self._families.values():
            for key, node in list(family.entries.items()):
                those = members(node)
                if specialisation not in those:
                    continue
                rest: Node | None = None
                for other in reversed(those):
                    if other is not specialisation:
                        rest = added(rest, other)
                if rest is None:
                    del family.entries[key]
                else:
                    family.entries[key] = rest
            family.settle()


_MISSED = object()


def _missed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _MISSED
