"""What a guard is: one fact about external state that a program relies on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Self, TypeAlias

from thunder_guards.sources import Source
from thunder_ir import Context

Aspect: TypeAlias = str | Callable[[Any], Any]
"""What is looked at of a value: Python source with a place for it, or a function. Equal ones look at the same."""
Told: TypeAlias = tuple[Hashable, Callable[[Context], str], Any]
"""What tells programs apart: a question that can be compared, Python source that asks it, and the answer."""

GONE = (LookupError, AttributeError, TypeError, ValueError, ArithmeticError, OSError, ReferenceError, RuntimeError)
"""What is raised on the way to a value that is not there any more, or by a tensor that has no shape."""


class Guard:
    """A fact about external state that must hold for a program to be valid.

    Args:
        source: what it is about.
        slot: where that is kept, as a container that the compiled function holds and the key in it; then the
            prologue checks it together with all others of its kind in one call.
    """

    __slots__ = ("slot", "source")

    def __init__(self, source: Source, slot: tuple[Any, Any] | None = None) -> None:
        self.source = source
        self.slot = slot

    @property
    def sources(self) -> tuple[Source, ...]:
        """The ways that it speaks of."""
        return (self.source,)

    def condition(self, context: Context) -> str:
        """Return a Python expression that is true while the fact holds."""
        raise NotImplementedError(f"{type(self).__qualname__} has no condition")

    def problem(self, value: object) -> str | None:
        """Say what is wrong with ``value``, the one that ``source`` leads to now; ``None`` if nothing is."""
        raise NotImplementedError(f"{type(self).__qualname__} does not say what is wrong")

    def moved(self, source: Source) -> Self:
        """Return a guard that says the same of another source."""
        made = object.__new__(self.__class__)
        for name in _fields(self.__class__):  # type: ignore[arg-type]
            setattr(made, name, getattr(self, name))
        made.source = source
        return made

    def facts(self) -> Iterable[tuple[Aspect, Any]]:
        """Return what can be looked up in a dict: what is looked at of the value, and what is seen."""
        return ()

    def told(self) -> Iterable[Told]:
        """Return what tells programs apart that have guards of this kind."""
        question = self.source.question
        if question is not None:
            for aspect, answer in self.facts():
                yield (question, aspect), partial(_look, self.source, aspect), answer

    def failure(self, roots: Mapping[str, Any]) -> str | None:
        """Say how the fact fails to hold now, with old and new value; ``None`` if it holds."""
        try:
            value = self.slot[0][self.slot[1]] if self.slot is not None else self.source.evaluate(dict(roots))
        except GONE as error:
            return f"{self.source} is gone ({type(error).__name__}: {error})"
        try:
            problem = self.problem(value)
        except GONE:  # what is asked of it, it does not have
            problem = f"is of type {type(value).__qualname__}, which it was not"
        return None if problem is None else f"{self.source} {problem}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.source}>"


def _look(source: Source, aspect: Aspect, context: Context) -> str:
    """Return the Python source that looks at a value."""
    here = source.expression(context)
    return aspect.format(here) if isinstance(aspect, str) else f"{context.object(aspect, 'aspect')}({here})"


class SeveralGuard(Guard):
    """A fact about what several ways lead to.

    Args:
        source, others: the ways.
    """

    __slots__ = ("others",)

    def __init__(self, source: Source, *others: Source) -> None:
        super().__init__(source)
        self.others = others

    @property
    def sources(self) -> tuple[Source, ...]:
        return (self.source, *self.others)

    @property
    def places(self) -> str:
        """The ways as text, for messages."""
        return ", ".join(map(str, self.sources))

    def condition(self, context: Context) -> str:
        return self.condition_of([s.expression(context) for s in self.sources], context)

    def condition_of(self, values: Sequence[str], context: Context) -> str:
        """Return a Python expression that is true while the fact holds of what is found under these expressions."""
        raise NotImplementedError(f"{type(self).__qualname__} has no condition")

    def difference(self, *values: Any) -> str | None:
        """Say which of the ways leads to what it should not, and to what; ``None`` if the fact holds."""
        raise NotImplementedError(f"{type(self).__qualname__} does not say what is wrong")

    def failure(self, roots: Mapping[str, Any]) -> str | None:
        values = []
        for source in self.sources:
            try:
                values.append(source.evaluate(dict(roots)))
            except GONE as error:
                return f"{source} is gone ({type(error).__name__}: {error})"
        try:
            return self.difference(*values)
        except GONE:  # what is asked of one, it does not have
            return f"{self.places}: one is of another type than it was"


@cache
def _fields(cls: type) -> tuple[str, ...]:
    return tuple([name for base in cls.__mro__ for name in getattr(base, "__slots__", ())])


def shown(value: object, limit: int = 60) -> str:
    """Return a short text for a value in a message."""
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"
