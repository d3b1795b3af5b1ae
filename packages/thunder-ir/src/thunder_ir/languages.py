"""Languages: what the operators and methods of proxies mean while a program is recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from thunder_ir.errors import DuplicateRuleError

F = TypeVar("F", bound=Callable[..., Any])


class Language:
    """A namespace of methods for proxies.

    Args:
        name: for messages, ``"core"``.
        base: where a method is looked up that this language does not define.
        instead: attributes of proxies that are methods in this language.

    Example:
        >>> from thunder_ir import Language
        >>> loud = Language("loud")
        >>> @loud.method("add")
        ... def add(a, b):
        ...     return f"{a} PLUS {b}"
        >>> loud.resolve("add")(1, 2)
        '1 PLUS 2'
    """

    __slots__ = ("_attributes", "_methods", "base", "instead", "name")

    def __init__(self, name: str, base: Language | None = None, instead: Iterable[str] = ()) -> None:
        self.name = name
        self.base = base
        self.instead = frozenset(instead)
        self._methods: dict[str, Callable[..., Any]] = {}
        self._attributes: set[str] = set()

    def method(self, *names: str) -> Callable[[F], F]:
        """Define the decorated function as the method of these names.

        Raises:
            DuplicateRuleError: this language has one of them already.
        """

        def define(function: F) -> F:
            for name in names:
                if name in self._methods:
                    raise DuplicateRuleError(f"the {self.name} language defines the method {name!r} already")
                self._methods[name] = function
            return function

        return define

    def attribute(self, *names: str) -> Callable[[F], F]:
        """Define what the decorated function returns for a proxy as its attributes of these names.

        Raises:
            DuplicateRuleError: this language has one of them already.
        """
        self._attributes.update(names)
        return self.method(*names)

    def is_attribute(self, name: str) -> bool:
        """Whether ``name`` is computed on access, without a call."""
        if name in self._methods:
            return name in self._attributes
        return self.base is not None and self.base.is_attribute(name)

    def find(self, name: str) -> Callable[..., Any] | None:
        """Return the method of that name, or ``None``."""
        found = self._methods.get(name)
        if found is None and self.base is not None:
            return self.base.find(name)
        return found

    def resolve(self, name: str) -> Callable[..., Any]:
        """Return the method of that name.

        Raises:
            AttributeError: neither this language nor its base has one.
        """
        found = self.find(name)
        if found is None:
            raise AttributeError(f"the {self.name} language has no method {name!r}")
        return found

    def names(self) -> frozenset[str]:
        """Return the names of all methods, the base's included."""
        inherited = self.base.names() if self.base is not None else frozenset()
        return inherited | frozenset(self._methods)

    def __repr__(self) -> str:
        return f"Language({self.name!r}, {len(self.names())} methods)"
