"""Programs that end where a frame is called that no program can hold, and those that go on behind it.

The frames that wait for that call are data of the interpreter: a program returns them as it returns anything else, and
the one behind takes them as its arguments. So the call is made between two programs, on real values: all that the
caller did before has happened, and what it finds afterwards is guarded as arguments are.
"""

from __future__ import annotations

import contextvars
import gc
import operator
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, NamedTuple

import torch

from thunder_frontend._library_code.in_python import bound, remade
from thunder_frontend._library_code.module_calls import call_module
from thunder_guards.kinds import is_value
from thunder_guards.own_code import name_in, package_of
from thunder_interpreter import Place, ReportedIterator, resume
from thunder_tracing.made_objects import overridden

NESTED = 0x10
"""The flag of code that was written within that of a function."""

MODULE_CALL_CODE = call_module.__code__


class Paused(NamedTuple):
    """What a program returns that ends before a call.

    Args:
        key: of the :class:`Pause`.
        args, kwargs: of the call.
        values: what the frames go on with.
    """

    key: int
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Where programs end before a call.

    Args:
        function: what is called.
        places: where the frames that wait for it go on.
        recipes: how the values of these are made of those that are handed over.
    """

    function: types.FunctionType
    places: tuple[Place, ...]
    recipes: tuple[Recipe, ...]

    @property
    def name(self) -> str:
        """What comes behind the call, for messages."""
        called = self.function.__qualname__
        outer = next((p.code.co_qualname for p in self.places if p.code is not MODULE_CALL_CODE), called)
        return f"{outer.removesuffix('.forward')} after {called.removesuffix('.forward')}"

    def held(self) -> list[types.FunctionType]:
        """Return what the programs behind the call go by without being given it."""
        return [p.function for p in self.places] + [f for r in self.recipes for f in r.functions()]


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a value of a frame is made of what is handed over.

    Args:
        make: makes it; ``None`` hands it over as it is.
        given: what it is given first.
        parts: how the rest of its arguments is made.
    """

    make: Callable[..., Any] | None = None
    given: tuple[Any, ...] = ()
    parts: tuple[Recipe, ...] = ()

    def functions(self) -> list[types.FunctionType]:
        """Return the functions that it goes by."""
        own = [g for g in self.given if isinstance(g, types.FunctionType)]
        return own + [f for part in self.parts for f in part.functions()]


def made(recipe: Recipe, handed: Any) -> Any:
    """Return the value of a frame; ``handed`` yields what was handed over."""
    make = recipe.make
    if make is None:
        return next(handed)
    return make(*recipe.given, *[made(part, handed) for part in recipe.parts])


def all_made(recipes: Sequence[Recipe], state: Sequence[Any]) -> list[Any]:
    """Return the values of frames."""
    handed = iter(state)
    return [made(recipe, handed) for recipe in recipes]


class Continuation:
    """What comes behind a call, as a callable of what frames go on with and of what the call returned.

    Args:
        pause: where it goes on.
        go_on: how: :func:`resume_raising` behind a call that raised, of which the error comes last.
    """

    def __init__(self, pause: Pause, go_on: Callable[..., Any] = resume) -> None:
        self.places, self.recipes, self.held, self.go_on = pause.places, pause.recipes, pause.held(), go_on
        self.__qualname__ = pause.name

    def __call__(self, *state: Any) -> Any:
        return self.go_on(self.places, all_made(self.recipes, state), state[-1])


OWN_FRAMES = frozenset({Continuation.__call__.__code__})


class CannotPause(Exception):
    """Frames cannot be handed over."""


def is_lasting(function: FunctionType, is_outside: Callable[[Any], bool]) -> bool:
    """Whether a function is no object of a single call."""
    return is_outside(function) or not function.__code__.co_flags & NESTED


def pause(
    function: types.FunctionType,
    found: tuple[tuple[Place, ...], list[Any]] | None,
    is_outside: Callable[[Any], bool],
) -> tuple[Pause, tuple[Any, ...]]:
    """Return where frames wait for a call, and what they go on with.

    Args:
        function: what is called.
        found: what the interpreter says of the frames.
        is_outside: tells whether an object was there before the program.

    Raises:
        CannotPause: they are more than can be handed over.
    """
    if found is None or not is_lasting(function, is_outside):
        raise CannotPause
    places, values = found
    if places and places[0].code in OWN_FRAMES:
        values, places = values[places[0].count :], places[1:]
    for place in places:
        ours = package_of(name_in(place.function.__globals__)) == "thunder_frontend"
        if (ours and place.code is not MODULE_CALL_CODE) or not is_lasting(place.function, is_outside):
            raise CannotPause
    if not places:
        raise CannotPause
    handed: list[Any] = []
    unfinished = [flag for place in places for flag in place.displays]
    recipes = tuple(
        [
            _recipe_of_display(value, handed) if is_display else _recipe(value, handed, is_outside)
            for value, is_display in zip(values, unfinished, strict=True)
        ]
    )
    return Pause(function, places, recipes), tuple(handed)


def _recipe(value: object, handed: list[Any], is_outside: Callable[[Any], bool]) -> Recipe:
    if isinstance(value, types.MethodType) and isinstance(value.__func__, types.FunctionType):
        if not is_lasting(value.__func__, is_outside):
            raise CannotPause
        return Recipe(bound, (value.__func__,), (_recipe(value.__self__, handed, is_outside),))
    if isinstance(value, types.BuiltinMethodType) and not isinstance(value.__self__, types.ModuleType | type):
        if value.__self__ is not None:
            return Recipe(_method, (value.__name__, overridden(value)), (_recipe(value.__self__, handed, is_outside),))
    if isinstance(value, types.FunctionType) and is_lasting(value, is_outside):
        return Recipe(_itself, (value,))
    if isinstance(value, types.BuiltinFunctionType | types.ModuleType | type):
        return Recipe(_itself, (value,))
    if type(value) in SETTINGS and not is_outside(value) and all(map(is_value, vars(value).values())):
        return Recipe(remade, (type(value), tuple(vars(value).items())))
    if isinstance(value, contextvars.Token) and not is_outside(value):
        raise CannotPause  # which takes back the write of this very call
    if isinstance(value, ReportedIterator):
        return _recipe_of_iterator(value.iterator, handed, is_outside)
    if isinstance(value, (*ITERATORS, enumerate, zip)):
        return _recipe_of_iterator(value, handed, is_outside)
    if isinstance(value, torch.nn.Module) and not is_outside(value):
        raise CannotPause  # the program behind the call would be for this very module, which no later call has
    handed.append(value)
    return Recipe()


def _recipe_of_display(value: object, handed: list[Any]) -> Recipe:
    """Return how a container is made that the program behind the call goes on to fill, as an object of its own."""
    handed.append(value)
    return Recipe(type(value), (), (Recipe(),))


def _recipe_of_iterator(value: Any, handed: list[Any], is_outside: Callable[[Any], bool]) -> Recipe:
    dicts = [part for part in gc.get_referents(value) if type(part) is dict] if type(value) in OVER_DICTS else []
    if dicts:
        handed += [dicts[0], len(dicts[0]) - operator.length_hint(value)]
        return Recipe(_advanced, (OVER_DICTS[type(value)],), (Recipe(), Recipe()))
    make, given, *state = value.__reduce__()
    if isinstance(value, (enumerate, zip)):
        if state:
            raise CannotPause
        return Recipe(make, (), tuple([_recipe(part, handed, is_outside) for part in given]))
    handed += [given[0], (state[0] if state else None) or 0]  # since Python 3.12 what a range has left says it all
    return Recipe(_advanced, (make,), (Recipe(), Recipe()))


EMPTY: dict[Any, Any] = {}


def _over_values(table: dict[Any, Any]) -> Any:
    return iter(table.values())


def _over_items(table: dict[Any, Any]) -> Any:
    return iter(table.items())


OVER_DICTS: dict[type, Callable[[Any], Any]] = {type(make(EMPTY)): make for make in (iter, _over_values, _over_items)}
"""How iterators over dicts are made: what they have still to come to may change, as what is in the dict does."""
ITERATORS: tuple[type, ...] = (*map(type, map(iter, (list(EMPTY), (), range(0), range(1 << 70)))), *OVER_DICTS)
SETTINGS = (torch.no_grad, torch.enable_grad, torch.set_grad_enabled, torch.autocast)
"""Context managers that are what their attributes say."""


def _itself(value: object) -> Any:
    return value


def _method(name: str, descriptor: Any, owner: object) -> Any:
    return getattr(owner, name) if descriptor is None else descriptor.__get__(owner, type(owner))


def _advanced(make: Callable[[Any], Any], over: object, count: int) -> Any:
    """Return an iterator that has come some way."""
    iterator = make(over)
    for _ in range(count):
        next(iterator, None)
    return iterator
