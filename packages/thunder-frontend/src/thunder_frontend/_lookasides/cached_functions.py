"""Functions with a cache: what they answer from it is asked of them again before each call, as in eager.

What a program computes is new to the cache on each call, so that then the function becomes part of the program. So it
does for numbers that the program makes dynamic, if it computes nothing but numbers of them.
"""

from __future__ import annotations

import functools
import gc
import types
from collections.abc import Callable, Iterable
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_guards import PartGuard
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import CODE, NOTHING_INSIDE, as_fact, is_value
from thunder_guards.mutations import MISSING, contents_of
from thunder_guards.sources import Source, held
from thunder_ir import NumberProxy, Proxy, flat_proxies, is_unknown, map_values, reached
from thunder_tracing.tensors.sizes import fixed
from thunder_tracing.tensors.traced_tensor import TracedTensor

LOOKED_INTO = 20_000
"""How many objects are looked at for tensors of the program."""

LEAD_NOWHERE = (type, types.ModuleType, types.CodeType)


def with_cache(acquisition: Acquiring, function: object) -> Callable[..., Any] | None:
    """Return what a call of a function with a cache does; ``None`` for others.

    It must not answer by tensors that are of this program, nor keep any: then the function itself is run.
    """
    if type(function) is not functools._lru_cache_wrapper:
        return None
    keys = Keys(acquisition.external)

    def called(*args: Any, **kwargs: Any) -> Any:
        if (open_numbers := flat_proxies((args, kwargs))) and not any(map(is_unknown, open_numbers)):
            found = _for_symbolic_numbers(acquisition, function, args, kwargs)
            if found is not None:
                return found
            args, kwargs = fixed(args), {name: fixed(value) for name, value in kwargs.items()}
        given = (*args, *kwargs.values())
        if acquisition.levels.stack or not all(map(keys.is_key, given)) or keys.lead_to_tensors(given):
            return _as_part_of_program(acquisition, function, args, kwargs)
        for value in given:
            _refuse_written(function, value)
        return _asked(keys, function, given, tuple(kwargs))

    return called


def _for_symbolic_numbers(acquisition: Acquiring, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what the function computes, with numbers that depend on symbolic ones; ``None`` where that is no more.

    It must be what the cache answers for the values at hand, of nothing that could have been another thing when that
    was computed: its arguments, what these hold, and code.

    Raises:
        AcquisitionError: the function writes to something, which the cache does once.
    """
    external, values = acquisition.external, (*args, *kwargs.values())
    begin, version = len(external.log), external.mutations.version
    if external.source_of(function) is not None:
        external.hold(function.__wrapped__, _name_of(function))
    found = acquisition.interpreted(function.__wrapped__)(*args, **kwargs)
    if external.mutations.version != version:
        raise AcquisitionError(f"{_name_of(function)}(), which has a cache, writes to what the program finds")
    own = [source for v in values if (source := external.source_of(v)) is not None]
    reads = [entry for entry in external.log[begin:] if entry[0] == "read"]
    if not all([isinstance(e[4], LASTS) or _leads_from(own, e[1]) for e in reads]) or not _is_of_numbers(found):
        return None
    with torch._C.DisableTorchFunction():
        answer = function(*_at_hand(args), **_at_hand(kwargs))
    return found if type(answer) is type(found) and answer == _at_hand(found) else None


LASTS = (*CODE, type, types.ModuleType)


def _leads_from(those: list[Source], source: Source | None) -> bool:
    """Whether a way goes by one of others."""
    while source is not None:
        if any([source is other for other in those]):
            return True
        source = source.base
    return False


def _is_of_numbers(value: Any) -> bool:
    """Whether something is a number or a string, or holds nothing else."""
    if type(value) in (tuple, list, dict):
        return all(map(_is_of_numbers, value.values() if type(value) is dict else value))
    return isinstance(value, NumberProxy) or type(value) in (int, float, str, bool, type(None))


def _at_hand(value: object) -> Any:
    """Return numbers with their values at hand in place of the symbolic ones."""
    return map_values(lambda v: v.value if isinstance(v, NumberProxy) else v, value)


class Keys:
    """Tells of arguments whether a cache finds equal ones on the next call.

    Args:
        external: knows which objects are outside.
    """

    def __init__(self, external: GuardedState) -> None:
        self.external = external

    def is_there(self, value: Any) -> bool:
        """Whether the next call gets at the value before it computes anything."""
        if isinstance(value, TracedTensor):
            return value.source is not None and value.given is not None
        return is_value(value) or self.external.source_of(value) is not None

    def is_key(self, value: Any) -> bool:
        """Whether the next call gets at the value, or makes one that is equal to it."""
        if self.is_there(value):
            return True
        if isinstance(value, TracedTensor):
            return False
        if type(value) in (tuple, frozenset):
            return all(map(self.is_key, value))
        return type(value).__hash__ not in (None, object.__hash__)  # type: ignore[comparison-overlap]

    def lead_to_tensors(self, values: Iterable[Any]) -> bool:
        """Whether objects that the program makes hold tensors of its own, or what stands for numbers."""
        found = reached([v for v in values if not self.is_there(v)], self._leads_to)
        return any([isinstance(v, (TracedTensor, Proxy)) or i > LOOKED_INTO for i, v in enumerate(found)])

    def _leads_to(self, value: object) -> list[Any]:
        """Return what an object of the program's own refers to that may lead to tensors."""
        if self.external.source_of(value) is not None or isinstance(value, (TracedTensor, Proxy, *LEAD_NOWHERE)):
            return []
        return [v for v in _inside(value) if type(v) not in NOTHING_INSIDE and not isinstance(v, LEAD_NOWHERE)]

    def source(self, value: Any) -> Any:
        """Return the value itself if it never changes, or how the next call gets at it, or at one that is equal."""
        if isinstance(value, TracedTensor):
            return value.source
        if is_value(value):
            return value
        source = self.external.source_of(value)
        return held(value, "key") if source is None else source


def _inside(value: object) -> list[Any]:
    """Return what an object refers to; of a function, the variables that it shares, but not its module's globals."""
    if isinstance(value, types.FunctionType):
        shared = [contents_of(cell) for cell in value.__closure__ or ()]
        return [*[v for v in shared if v is not MISSING], *(value.__defaults__ or ())]
    return gc.get_referents(value)


def _refuse_written(function: object, value: object) -> None:
    if isinstance(value, TracedTensor) and value._memory.version:
        raise AcquisitionError(
            f"the program passes a tensor that it has written to {_name_of(function)}(), which has a cache: what that "
            "keeps is asked before the program runs; call it before the tensor is written, or pass it a copy"
        )


def _asked(keys: Keys, function: Any, given: tuple[Any, ...], names: tuple[str, ...]) -> Any:
    """Call the function now, and let each call of the program do so; return what the program shall see."""
    external = keys.external
    by_name = functools.partial(_call_by_name, function, names) if names else function
    source = external.source_of(by_name)
    if source is None:
        source = held(by_name, _name_of(function))
        external.know(by_name, source)
    with torch._C.DisableTorchFunction():
        answer = by_name(*[a.given if isinstance(a, TracedTensor) else a for a in given])
    sources = tuple(map(keys.source, given))
    if isinstance(answer, torch.Tensor):  # inputs are taken after all guards, some of which rely on what the call did
        external.require(PartGuard(Source(source, "call", sources), answer, "type"), source, sources)
    return external.read(source, "call", sources, answer)


def _name_of(function: object) -> str:
    return getattr(function, "__name__", "a function")  # of a partial there is none


def _call_by_name(function: Any, names: tuple[str, ...], *values: Any) -> Any:
    """Call a function with its last arguments given by these names."""
    count = len(values) - len(names)
    return function(*values[:count], **dict(zip(names, values[count:], strict=True)))


def _as_part_of_program(acquisition: Acquiring, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Do what the function does, once for each combination of arguments."""
    external, cache = acquisition.external, acquisition.answered_by_cache
    if external.source_of(function) is not None:
        external.hold(function.__wrapped__, _name_of(function))
    key = (function, tuple(map(_fact, args)), tuple([(name, _fact(a)) for name, a in kwargs.items()]))
    if key not in cache or function.cache_parameters()["maxsize"] == 0:
        cache[key] = acquisition.interpreted(function.__wrapped__)(*args, **kwargs), (args, kwargs)
    return cache[key][0]


def _fact(value: object) -> Any:
    return as_fact(value) if is_value(value) else id(value)
