"""The one class of rule tables: what a transform or an executor knows about each symbol."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

from thunder_ir.errors import DuplicateRuleError, MissingRuleError


class Revision:
    """Counts the changes of what programs are compiled by, beside themselves: rules, and what executors run."""

    __slots__ = ("number",)

    def __init__(self) -> None:
        self.number = 0

    def changed(self) -> None:
        """Note a change: what was compiled before may be compiled in another way now."""
        self.number += 1


REVISION = Revision()


class HasId(Protocol):
    """What a rule can be filed under: anything with a printable identity."""

    @property
    def id(self) -> str: ...


K = TypeVar("K", bound=HasId)
R = TypeVar("R", bound=Callable[..., Any])


class RuleTable(Generic[K, R]):
    """A table from symbols to rules that refuses duplicates and explains its gaps.

    Args:
        kind: what its rules are, for messages: ``"vjp"``.
        decorator: what fills a gap, as users write it: ``"@vjp_rule"``.

    Example:
        >>> from thunder_ir import RuleTable, Symbol
        >>> twice = RuleTable("doubling", "@doubling_rule")
        >>> sin, cos = (Symbol(name, "prims", meta=lambda a: a) for name in ("sin", "cos"))
        >>> @twice(sin)
        ... def sin_twice(a):
        ...     return 2 * a
        >>> twice[sin](21)
        42
        >>> twice[cos]
        Traceback (most recent call last):
        thunder_ir.errors.MissingRuleError: prims.cos has no doubling rule; add one with @doubling_rule(prims.cos)
    """

    __slots__ = ("_rules", "decorator", "kind")

    def __init__(self, kind: str, decorator: str) -> None:
        self.kind = kind
        self.decorator = decorator
        self._rules: dict[K, R] = {}

    def __call__(self, *symbols: K) -> Callable[[R], R]:
        """File the decorated function as the rule of ``symbols``.

        Raises:
            DuplicateRuleError: one of them has a rule already.
        """

        def register(rule: R) -> R:
            for symbol in symbols:
                if symbol in self._rules:
                    raise DuplicateRuleError(f"{symbol.id} has a {self.kind} rule already: {self._rules[symbol]}")
                self.replace(symbol, rule)
            return rule

        return register

    def replace(self, symbol: K, rule: R) -> None:
        """File ``rule`` for ``symbol`` whether or not there was one before."""
        self._rules[symbol] = rule
        REVISION.changed()

    def remove(self, symbol: K) -> None:
        """Forget the rule of ``symbol``, if there is one."""
        self._rules.pop(symbol, None)
        REVISION.changed()

    def get(self, symbol: K) -> R | None:
        """Return the rule of ``symbol``, or ``None``."""
        return self._rules.get(symbol)

    def __getitem__(self, symbol: K) -> R:
        rule = self._rules.get(symbol)
        if rule is None:
            raise MissingRuleError(f"{symbol.id} has no {self.kind} rule; add one with {self.decorator}({symbol.id})")
        return rule

    def __contains__(self, symbol: K) -> bool:
        return symbol in self._rules

    def __iter__(self) -> Iterator[K]:
        return iter(self._rules)

    def __len__(self) -> int:
        return len(self._rules)

    def __repr__(self) -> str:
        return f"RuleTable({self.kind!r}, {len(self)} rules, filled by {self.decorator})"
