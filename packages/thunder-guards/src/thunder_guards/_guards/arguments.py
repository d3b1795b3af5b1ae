"""The guard of a call's arguments: how many there are, what they are called, and of what types they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from thunder_guards._guards.held import FEW
from thunder_ir import Context, literal


class ArgumentsGuard:
    """A call has as many arguments as the one that was compiled for, under these names, of these types.

    Args:
        args, kwargs: of that call.
    """

    __slots__ = ("named", "types")

    def __init__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self.types = tuple(map(type, args))
        self.named = {name: type(value) for name, value in kwargs.items()}

    def conditions(self, context: Context, taken: Sequence[str] = (), seen: Sequence[str] = ()) -> list[str]:
        """Return Python expressions that are true for such calls, in the order in which to ask them.

        Args:
            context: takes the names that they use.
            taken: names that the positional arguments were assigned to before, which told how many there are.
            seen: those of which something else tells the types.
        """
        names = f"tuple(kwargs) == {literal(tuple(self.named), context)}" if self.named else "not kwargs"
        if taken:
            made = [is_of(name, cls, context) for name, cls in zip(taken, self.types, strict=True) if name not in seen]
        elif len(self.types) <= FEW:
            made = [f"len(args) == {len(self.types)}"]
            made += [is_of(f"args[{i}]", cls, context) for i, cls in enumerate(self.types)]
        else:
            made = [f"tuple(map(type, args)) == {context.object(self.types, 'types')}"]
        return [*made, names, *[is_of(f"kwargs[{name!r}]", cls, context) for name, cls in self.named.items()]]

    def failure(self, roots: Mapping[str, Any]) -> str | None:
        """Say in what the arguments differ; ``None`` if they do not."""
        args, kwargs = roots["args"], roots["kwargs"]
        if len(args) != len(self.types):
            return f"there are {len(args)} positional arguments, compiled for {len(self.types)}"
        if tuple(kwargs) != tuple(self.named):
            return f"the arguments given by name are {list(kwargs)}, compiled for {list(self.named)}"
        given = {**{f"args[{i}]": a for i, a in enumerate(args)}, **{f"kwargs[{k!r}]": a for k, a in kwargs.items()}}
        for (place, value), cls in zip(given.items(), (*self.types, *self.named.values()), strict=True):
            if type(value) is not cls:
                return f"{place} is of type {type(value).__qualname__}, compiled for {cls.__qualname__}"
        return None


def is_of(value: str, cls: type, context: Context) -> str:
    """Return a Python expression that is true while the type of what ``value`` stands for is a class."""
    return f"type({value}) is {context.object(cls, cls.__name__)}"
