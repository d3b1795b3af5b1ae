"""Functions with a cache: what they answer from it is asked of them again before each call, as in eager."""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from thunder_frontend.journal import MISSING, contents_of
from thunder_frontend.kinds import NOTHING_INSIDE, VALUES
from thunder_frontend.open_numbers import fixed
from thunder_frontend.queries import as_positional
from thunder_frontend.traced_tensor import TracedTensor
from thunder_ir import Proxy, flat_proxies, is_unknown

LOOKED_INTO = 20_000
"""How many objects are looked at for tensors of the program."""

LEAD_NOWHERE = (type, types.ModuleType, types.CodeType)


def with_cache(acquisition: Any, function: Any) -> Callable[..., Any] | None:
    """Return what a call of a function with a cache does; ``None`` for others.

    It must not answer by tensors that are of this program, nor keep any: then the function itself is run.
    """
    if type(function) is not functools._lru_cache_wrapper:
        return None
    world, keys = acquisition.world, Keys(acquisition.world)

    def called(*args: Any, **kwargs: Any) -> Any:
        if not any(map(is_unknown, flat_proxies((args, kwargs)))):
            args, kwargs = fixed(args), {name: fixed(value) for name, value in kwargs.items()}
        given = (*args, *kwargs.values())
        if not all(map(keys.is_key, given)) or keys.lead_to_tensors(given):
            if world.source_of(function) is not None:
                world.hold(function.__wrapped__, function.__name__)
            return acquisition.interpreted(function.__wrapped__)(*args, **kwargs)
        with torch._C.DisableTorchFunction():
            answer = function(*args, **kwargs)
        if all(map(keys.is_there, given)):
            return world.answers.result_of(as_positional(function, kwargs), args, answer)
        return world.answers.result_of(functools.partial(function, *args, **kwargs), (), answer)

    return called


class Keys:
    """Tells of arguments whether a cache finds equal ones on the next call.

    Args:
        world: knows which objects are outside.
    """

    def __init__(self, world: Any) -> None:
        self._world = world

    def is_there(self, value: Any) -> bool:
        """Whether the next call has the very same."""
        return isinstance(value, VALUES) or self._world.is_held(value)

    def is_key(self, value: Any) -> bool:
        """Whether the next call has the very same, or makes one that is equal to it."""
        if self.is_there(value):
            return True
        if type(value) in (tuple, frozenset):
            return all(map(self.is_key, value))
        return self._world.source_of(value) is None and type(value).__hash__ not in (None, object.__hash__)

    def lead_to_tensors(self, values: Iterable[Any]) -> bool:
        """Whether objects that the program makes hold tensors of its own, or what stands for numbers."""
        todo, seen = [v for v in values if not self.is_there(v)], {}
        while todo:
            value = todo.pop()
            if isinstance(value, (TracedTensor, Proxy)) or len(seen) > LOOKED_INTO:
                return True
            if id(value) in seen or type(value) in NOTHING_INSIDE or isinstance(value, LEAD_NOWHERE):
                continue
            seen[id(value)] = value
            if self._world.source_of(value) is None:
                todo += _inside(value)
        return False


def _inside(value: Any) -> list[Any]:
    """Return what an object refers to; of a function, the variables that it shares, but not its module's globals."""
    if isinstance(value, types.FunctionType):
        shared = [contents_of(cell) for cell in value.__closure__ or ()]
        return [*[v for v in shared if v is not MISSING], *(value.__defaults__ or ())]
    return gc.get_referents(value)


__all__ = ["with_cache"]
