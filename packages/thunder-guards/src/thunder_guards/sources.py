"""Where external values come from, and how a prologue gets at them again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from thunder_guards.places import STEPS
from thunder_ir import Context, literal, quickly_made

COMPARABLE = ("attribute", "item", "kept item", "value", "cell")
Place: TypeAlias = tuple[Any, ...]
"""A way to a value that can be compared: the root, or the ``id`` of what is held, and the steps from there."""


@quickly_made
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A way from a root (the arguments, or an object that the compiled function holds) to a value.

    Args:
        base: where the step starts; ``None`` for a root.
        kind: of the step: ``"root"``, ``"call"``, or that of a place, by its name in
            :data:`~thunder_guards.places.STEPS`.
        key: name of the root or attribute, key or index of the item; of a call, its arguments: values or sources.
        kept: the object itself, for a root that the compiled function holds on to, and for whatever is guarded to
            be the very same object on every call; a weak reference to it, if ``is_weak``.
        is_held: whether there is such an object.
        is_weak: whether it is not to be kept alive, as the modules and functions among the arguments are not.
    """

    base: Source | None
    kind: str
    key: Any
    kept: Any = None
    is_held: bool = False
    is_weak: bool = False
    _text: str | None = field(default=None, init=False, repr=False)

    @property
    def held(self) -> Any:
        """The object that is the very same on every call."""
        return self.kept() if self.is_weak else self.kept

    def is_of_the_call(self) -> bool:
        """Return whether the way begins at the arguments, not at something that the compiled function holds."""
        here = self
        while here.base is not None and (not here.is_held or here.is_weak):
            here = here.base
        return not here.is_held or here.is_weak

    @property
    def place(self) -> Place | None:
        """What tells whether two sources are the same way; ``None`` for one that is more than steps."""
        if self.is_held:
            return (id(self.held),)
        if self.base is None:
            return (self.key,)
        base = self.base.place
        if base is None or self.kind not in COMPARABLE:
            return None
        return (*base, self.kind, None if self.kind == "cell" else _as_key(self.key))  # a cell has one

    @property
    def question(self) -> Place | None:
        """What tells whether two sources ask the same: the place, or a call of the same function on the same."""
        if self.is_held or self.base is None:
            return self.place
        base = self.base.question
        if base is None or self.kind not in (*COMPARABLE, "call"):
            return None
        return (*base, self.kind, None if self.kind == "cell" else _as_key(self.key))

    def expression(self, context: Context) -> str:
        """Return Python source that evaluates to the value, for use in a prologue."""
        if self.is_held and not self.is_weak:
            return context.object(self.held, type(self.held).__name__.lower())
        if self.base is None:
            return f"{context.object(self.kept, 'alive')}()" if self.is_weak else str(self.key)
        base = self.base.expression(context)
        if self.kind == "call":
            return f"{base}({', '.join([_argument(a, context) for a in self.key])})"
        return STEPS[self.kind].expression(base, self.key, context)

    def evaluate(self, roots: dict[str, Any]) -> Any:
        """Return the value now. Raises whatever a step raises."""
        if self.is_held and not self.is_weak:
            return self.held
        if self.base is None:
            return self.held if self.is_weak else roots[self.key]
        base = self.base.evaluate(roots)
        if self.kind == "call":
            return base(*[a.evaluate(roots) if isinstance(a, Source) else a for a in self.key])
        return STEPS[self.kind].read(base, self.key)

    def __str__(self) -> str:
        text = self._text
        if text is None:
            text = self._written()
            object.__setattr__(self, "_text", text)  # what lies behind it asks for it, too
        return text

    def _written(self) -> str:
        if self.base is None:
            return str(self.key)
        if self.kind == "call":
            return f"{self.base}({', '.join(map(str, self.key))})"
        return STEPS[self.kind].shown(str(self.base), self.key)


def _as_key(key: object) -> Hashable:
    """Return what tells a key, or what a call is given, from others: its value, or else which object it is."""
    if isinstance(key, Source) and (found := key.question) is not None:
        return found
    if type(key) is tuple:
        return tuple(map(_as_key, key))
    return type(key), key if type(key) in (str, int, bool, bytes, type(None), type(...)) else id(key)


def _argument(value: object, context: Context) -> str:
    return value.expression(context) if isinstance(value, Source) else literal(value, context)


def held(value: object, name: str) -> Source:
    """Return the source of an object that the compiled function holds on to."""
    return Source(None, "root", name, value, True)
