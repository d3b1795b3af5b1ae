"""What calls that ask for the state of others answered: guarded by asking again."""

from __future__ import annotations

import contextvars
import decimal
import sys
import types
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from thunder_frontend._external_state.known import Known
from thunder_frontend._external_state.queries import as_positional, decimal_context, failing, warning_filters
from thunder_guards import MembershipGuard
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import is_value
from thunder_guards.mutations import MISSING
from thunder_guards.sources import Source, held


class Answers:
    """Guards what calls answered.

    Args:
        known: takes the guards.
    """

    def __init__(self, known: Known) -> None:
        self._known = known

    def result_of(self, function: object, args: tuple[Any, ...], result: object) -> Any:
        """Guard what a call of a query returned: one without effects, whose answer may be another one next time."""
        reference = function if isinstance(function, weakref.ref) else getattr(function, "__self__", None)
        if isinstance(reference, weakref.ref) and self._known.source_of(reference) is None:
            return result  # the program made it, of what it has
        self._known.weakly_held.answered(function, result)
        given = tuple([a if is_value(a) else self._known.source_of(a) for a in args])
        if any(g is None and a is not None for g, a in zip(given, args, strict=True)):
            return result
        return self._known.read(self._way_to(function), "call", given, result)

    def _way_to(self, function: object) -> Source:
        """Return how a program gets at a function; at the method of an external object in C by that object."""
        source, name = self._known.source_of(function), getattr(function, "__name__", type(function).__name__)
        if source is None and isinstance(function, types.BuiltinMethodType):
            owner = self._known.source_of(function.__self__)
            source = None if owner is None else Source(owner, "attribute", name)
        if source is None:
            source = held(function, name)
            self._known.know(function, source)
        return source

    def asked(self, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Guard whether a query, about to be made, raises something."""
        fails = failing(as_positional(function, kwargs))
        raised = fails(*args)
        if raised is not None:
            self.result_of(fails, tuple(args), raised)

    def computes_decimals(self, operands: Sequence[Any]) -> None:
        """Guard what a computation with decimal numbers depends on, which is about to be made."""
        contexts = [c for c in operands if isinstance(c, decimal.Context)]
        if any(map(self._known.mutations.touches, (decimal.getcontext(), *contexts))):
            raise AcquisitionError(
                "the program computes with decimal numbers in a context that it changes itself; change it before"
            )
        self.result_of(decimal_context, (), decimal_context())
        for context in contexts:
            self.result_of(decimal_context, (context,), decimal_context(context))

    def warns(self) -> None:
        """Guard what becomes of a warning that is about to be given, which may be an error."""
        mutations = self._known.mutations
        if not mutations.written_at(warnings, "attribute", "filters") and not mutations.wrote(warnings.filters):
            self.result_of(warning_filters, (), warning_filters())

    def registered(self, cls: type, other: type, answer: bool) -> None:
        """Guard whether a class counts as derived from an abstract one."""
        self._known.know_classes((cls, other))
        self.result_of(issubclass, (cls, other), answer)

    def unset(self, variable: contextvars.ContextVar[Any]) -> None:
        """Guard that a context variable, which is asked for its value, has none."""
        if variable.get(...) is ...:
            self.result_of(variable.get, (...,), ...)

    def imported(self, module: object, name: str) -> None:
        """Guard a module that an import statement of the program found."""
        for known in (name, name.partition(".")[0], getattr(module, "__name__", None)):
            if known is not None and sys.modules.get(known) is module:
                self._known.read(held(sys.modules, "sys.modules"), "item", known, module, (sys.modules, known))
                return

    def not_imported(self, name: str) -> None:
        """Guard that an import statement of the program did not find a module."""
        found = sys.modules.get(name, MISSING)
        if found is MISSING:
            source = held(sys.modules, "sys.modules")
            self._known.require(MembershipGuard(source, (name,), False), id(sys.modules), name, "absent")
        elif found is None:
            self._known.read(held(sys.modules, "sys.modules"), "item", name, None, (sys.modules, name))
