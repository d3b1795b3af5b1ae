"""The builder: the one piece of state of recording, held in one context variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from thunder_ir.errors import OutsideTraceError
from thunder_ir.languages import Language
from thunder_ir.names import Names
from thunder_ir.polynomials import Bounds, decided, difference, is_next_to_least, narrowed, polynomial_of

if TYPE_CHECKING:
    from thunder_ir.symbols import BoundSymbol

_CURRENT: ContextVar[Builder | None] = ContextVar("thunder_builder", default=None)


@dataclass(frozen=True, slots=True)
class Constraint:
    """What a comparison of symbolic numbers came out as; the program holds only where it comes out so again.

    Args:
        relation: ``"eq"``, ``"ne"``, ``"lt"``, ``"le"``, ``"gt"``, ``"ge"``, or ``"same"``: equal, and zeros of one
            sign.
        left, right: an :class:`~thunder_ir.IntegerProxy` or a number each.
        holds: the outcome for the values at hand while recording.
    """

    relation: str
    left: Any
    right: Any
    holds: bool


class Oracle(Protocol):
    """Who tells, while a program is recorded, what numbers will be that only its run tells."""

    def value(self, proxy: Any) -> Any:
        """Return what a number will be."""

    def truth(self, proxy: Any) -> bool:
        """Return whether a number will be true."""

    def compare(self, relation: str, left: Any, right: Any) -> bool:
        """Return how a comparison will come out."""


class Builder:
    """Records bound symbols in order.

    Args:
        names: allocator of the trace's names.
        language: what operators and methods of proxies mean.
        locate: returns what stands for the user's current position (kept as it is, resolved when printed), or ``None``.
        recording: whether calls of symbols are kept. Without it only metadata are computed.
    """

    __slots__ = (
        "__weakref__",
        "_bounds",
        "_constrained",
        "bound_symbols",
        "constraints",
        "language",
        "locate",
        "names",
        "oracle",
        "recording",
        "tags",
    )

    def __init__(
        self,
        names: Names | None = None,
        language: Language | None = None,
        locate: Callable[[], Any] | None = None,
        recording: bool = True,
    ) -> None:
        self.names = names if names is not None else Names()
        self.language = language
        self.locate = locate
        self.recording = recording
        self.bound_symbols: list[BoundSymbol] = []
        self.constraints: list[Constraint] = []
        self._constrained: set[Any] = set()
        self._bounds: Bounds = {}
        self.tags: frozenset[Any] = frozenset()
        self.oracle: Oracle | None = None
        """Tells of numbers that only the run of the program tells, where Python needs them."""

    def constrain(self, relation: str, left: Any, right: Any, holds: bool) -> bool:
        """Record, once, that ``left <relation> right`` came out as ``holds``; return ``holds``."""
        key = (relation, _mention(left), _mention(right), holds)
        if key not in self._constrained:
            self._constrained.add(key)
            self.constraints.append(Constraint(relation, left, right, holds))
        return holds

    def compared(self, relation: str, left: Any, right: Any, holds: bool) -> bool:
        """Record that integers compare so, unless they do whatever they are, by what was recorded; return ``holds``.

        Where sizes of 0 and 1 are told from the others one by one, those from 2 on are recorded at once.
        """
        polynomial = difference(polynomial_of(left), polynomial_of(right))
        if decided(relation, polynomial, self._bounds) is None:
            noted, comes = relation, holds
            if (relation == "ne") == holds and relation in ("eq", "ne") and is_next_to_least(polynomial, self._bounds):
                noted, comes = ("gt" if _value(left) > _value(right) else "lt"), True
            self.constrain(noted, left, right, comes)
            narrowed(noted, comes, polynomial, self._bounds)
        return holds

    @contextmanager
    def tagged(self, *tags: Any) -> Iterator[None]:
        """Give every bound symbol recorded inside these tags (a checkpointed region, say)."""
        before = self.tags
        self.tags = before | frozenset(tags)
        try:
            yield
        finally:
            self.tags = before


def _mention(number: Any) -> Any:
    """A proxy by its name, a number by type and value."""
    name = getattr(number, "name", None)
    return name or id(number) if name is not None else (type(number), number)


def _value(number: Any) -> Any:
    return getattr(number, "value", number)


def current_builder() -> Builder:
    """Return the builder that records now.

    Raises:
        OutsideTraceError: none does.
    """
    builder = _CURRENT.get()
    if builder is None:
        raise OutsideTraceError("operations on proxies work only while a trace is recorded; see thunder_ir.recording")
    return builder


def active_method(name: str) -> Callable[..., Any]:
    """Return what the active language means by a method of proxies.

    Raises:
        OutsideTraceError: no language is active.
    """
    language = current_builder().language
    if language is None:
        raise OutsideTraceError(f"no language is active that could say what {name!r} means")
    return language.resolve(name)


def find_builder() -> Builder | None:
    """Return the builder that records now, or ``None``."""
    return _CURRENT.get()


class recording:  # noqa: N801  (used as a function is)
    """Make ``builder`` the one that records, within a ``with`` block."""

    __slots__ = ("_builder", "_token")

    def __init__(self, builder: Builder) -> None:
        self._builder = builder

    def __enter__(self) -> Builder:
        self._token = _CURRENT.set(self._builder)
        return self._builder

    def __exit__(self, *exception: object) -> None:
        _CURRENT.reset(self._token)


@contextmanager
def speaking(language: Language | None) -> Iterator[None]:
    """Give operators and methods of proxies the meaning of ``language``, within a ``with`` block."""
    builder = current_builder()
    before = builder.language
    builder.language = language
    try:
        yield
    finally:
        builder.language = before
