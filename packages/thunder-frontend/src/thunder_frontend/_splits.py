"""Runs a frame in Python, and the calls that it makes as programs of their own.

The frame of a function of which no program can be made is run by the interpreter, on real values, as Python runs it.
Each call that it makes of a module, or of a function that is given tensors, is a call of a compiled callable; if no
program can be made of that one either, its frame is run in the same way. What is lost is the smallest such frame: the
programs of those that call it end before that call, and others go on behind it, so that every effect happens where
eager has it. Where the frames of the callers cannot be handed over, they are run in Python, too.
"""

from __future__ import annotations

import inspect
import sys
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from thunder_frontend._library_code.module_calls import MODULE_CALL, MODULE_CALL_IMPL, has_hooks
from thunder_frontend._library_code.native_code import is_own_operation, module_runs_natively
from thunder_frontend._library_code.other_compilers import why_as_it_is
from thunder_frontend._report import Report
from thunder_frontend._stats import CompileStats
from thunder_frontend._suspensions import CannotPause, Continuation, Pause, Paused, pause
from thunder_guards.own_code import PACKAGES, name_in, package_of
from thunder_interpreter import interpret, resume_raising

Made = Callable[[Callable[..., Any]], Callable[..., Any]]

UNLIKELY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
MOST = 64
"""How many frames may be lost before the callers of another one are, too."""
ALONE = 2
"""After how many runs of which nothing was compiled a frame is left to CPython."""
DEPTH = 2
"""How deep containers among the arguments are searched for tensors."""
VAIN = 12
"""Programs of a function, none of which served a second call, after which it is not compiled any more."""


class Lost:
    """The frames that no program can hold: by their code, and for PyTorch's own, which all share, by their module."""

    def __init__(self) -> None:
        self._of_all: set[types.CodeType] = set()
        self._of_modules: dict[types.CodeType, weakref.WeakSet[torch.nn.Module]] = {}

    def __len__(self) -> int:
        return len(self._of_all) + sum([len(modules) for modules in self._of_modules.values()])

    def __contains__(self, code: types.CodeType) -> bool:
        return code in self._of_all or code in self._of_modules

    def add(self, code: types.CodeType, owner: torch.nn.Module | None, is_shared: bool) -> bool:
        """Note a frame, unless it is known, or of no function in particular.

        Args:
            code: of the frame.
            owner: the module whose method it is.
            is_shared: whether it is code of PyTorch's.
        """
        if self.holds(code, owner):
            return False
        if not is_shared:
            self._of_all.add(code)
        elif owner is not None:
            self._of_modules.setdefault(code, weakref.WeakSet()).add(owner)
        return not is_shared or owner is not None

    def holds(self, code: types.CodeType, owner: object) -> bool:
        """Whether no program can hold frames of some code, called with this first."""
        if code in self._of_all:
            return True
        return isinstance(owner, torch.nn.Module) and owner in self._of_modules.get(code, ())


class Splits:
    """The compiled callables that frames run in Python call.

    Args:
        function: what was to be compiled as a whole.
        make: makes a compiled callable of one.
    """

    def __init__(self, function: object, make: Made) -> None:
        self.report = Report()
        self._make = make
        self._root = function
        self._modules: dict[int, Callable[..., Any]] = {}
        self._functions: dict[Any, Callable[..., Any]] = {}
        self._met: weakref.WeakKeyDictionary[torch.nn.Module, int] = weakref.WeakKeyDictionary()
        """In which run modules were met first."""
        self._runs = 0
        self._now = threading.local()
        self.lost = Lost()
        self._alone: dict[frozenset[types.CodeType], int] = {}
        """How often frames ran of which nothing that they called was compiled."""
        self._pauses: dict[Pause, int] = {}
        self._behind: dict[int, tuple[Pause, Any]] = {}
        self._lock = threading.Lock()

    def parts(self) -> list[Any]:
        """Return what is compiled."""
        return [*self._modules.values(), *self._functions.values(), *[made for _, made in self._behind.values()]]

    def loses(self, error: Exception, function: Any) -> bool:
        """Note that there is no program, because of a frame that a callable calls; whether there may be one now.

        Args:
            error: why there is none.
            function: what was to be compiled.
        """
        behind = isinstance(function, Continuation)
        entry = None if behind else _entry(function)
        roots = {p.code for p in function.places} if behind else set() if entry is None else set(_codes(entry))
        for code, package, owner in getattr(error, "frames", ()):
            if code in roots or len(self.lost) >= MOST:
                return False
            unlikely = code.co_flags & UNLIKELY or code.co_name.startswith("<")
            if not unlikely and self.lost.add(code, owner, package == "torch"):
                self.report.note(code.co_qualname.removesuffix(".forward"), error)
                return True
        return False

    def pause(
        self,
        function: Any,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        found: Any,
        is_outside: Callable[[Any], bool],
    ) -> Paused | None:
        """Return what a program returns that ends before a call; ``None`` if it cannot.

        Args:
            function, args, kwargs: the call.
            found: what the interpreter says of the frames that wait for it.
            is_outside: tells whether an object was there before the program.
        """

        def was_there(value: object) -> bool:
            return is_outside(value) or isinstance(value, types.FunctionType) and _is_found_by_name(value)

        try:
            where, values = pause(function, found, was_there)
        except CannotPause:
            return None
        with self._lock:
            key = self._pauses.setdefault(where, len(self._pauses))
            if key not in self._behind:
                self._behind[key] = where, self._make(Continuation(where))
        return Paused(key, args, kwargs, values)

    def go_on(self, paused: Paused) -> Any:
        """Make the call that a program ended before, and what comes behind it; which may end before a call, too."""
        where, behind = self._behind[paused.key]
        try:
            if why_as_it_is(where.function) is not None:
                result = where.function(*paused.args, **paused.kwargs)
            else:
                result = self.run(where.function, paused.args, paused.kwargs)
        except BaseException as error:
            return self.run(Continuation(where, resume_raising), (*paused.values, error), {})
        return behind.first_part((*paused.values, result), {})

    def run(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the frame of a callable in Python."""
        entry = _entry(function)
        if entry is None:
            return function(*args, **kwargs)
        codes = frozenset(_codes(entry))
        if self._alone.get(codes, 0) >= ALONE:
            return function(*args, **kwargs)
        depth = getattr(self._now, "depth", 0)
        self._runs += not depth
        self._now.depth = depth + 1
        try:
            return self._run(function, entry, codes, args, kwargs)
        finally:
            self._now.depth = depth

    def _run(
        self, function: Any, entry: Any, codes: frozenset[types.CodeType], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        replaced = []

        def replacement(called: object) -> Callable[..., Any] | None:
            found = self._replacement(called, codes)
            if found is not None:
                replaced.append(called)
            return found

        result = interpret(entry, lookasides=replacement, opaque=lambda f: f.__code__ not in codes)(*args, **kwargs)
        if not replaced and not isinstance(function, Continuation):
            self._alone[codes] = self._alone.get(codes, 0) + 1
        return result

    def _replacement(self, called: object, codes: frozenset[types.CodeType]) -> Callable[..., Any] | None:
        if called is MODULE_CALL:
            return self._call_module
        if is_own_operation(called):
            return self._call_operation(called)
        if type(called) is not types.FunctionType or called.__code__ in codes or not _may_compile(called):
            return None

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._call_function(called, args, kwargs)

        return call

    def _call_operation(self, operation: Any) -> Callable[..., Any]:
        """Return what runs a call of one of Thunder's own operations: a program of that alone."""
        made = self._functions.get(operation)
        if made is None:
            made = self._functions[operation] = self._make(operation)
        return made

    def _call_module(self, module: torch.nn.Module, /, *args: Any, **kwargs: Any) -> Any:
        entry = _entry(module)
        if entry is not None and any([self.lost.holds(code, module) for code in _codes(entry)]):
            return self.run(module, args, kwargs)
        return self._of_module(module)(*args, **kwargs)

    def _of_module(self, module: torch.nn.Module) -> Callable[..., Any]:
        """Return what runs a call of a module."""
        made = self._modules.get(id(module))
        if made is not None:
            return made
        if package_of(type(module).__module__) == "torch" and not has_hooks(module) and not module._modules:
            return module  # one operation: a program of its own would not pay
        if not self._stays(module):
            return module
        made = self._modules[id(module)] = self._make(module)  # which holds the module, so that its id stays its own
        return made

    def _stays(self, module: torch.nn.Module) -> bool:
        """Whether later calls will meet a module again, too: a part of the root, or one met in an earlier run."""
        if isinstance(self._root, torch.nn.Module) and any(m is module for m in self._root.modules()):
            return True
        return self._met.setdefault(module, self._runs) < self._runs

    def _call_function(self, function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.lost.holds(function.__code__, next(iter(args), None)):
            return self.run(function, args, kwargs)
        made = self._functions.get(function)
        if made is None:
            given = (*args, *kwargs.values())
            if not any(_holds_tensors(value, DEPTH) for value in given) or any(map(_is_special_container, given)):
                return function(*args, **kwargs)
            if not _is_found_by_name(function):
                return self.run(function, args, kwargs)
        if any([isinstance(value, torch.nn.Module) and not self._stays(value) for value in (*args, *kwargs.values())]):
            return function(*args, **kwargs)  # no later call is given these
        if made is None:
            made = self._functions[function] = self._make(function)
        elif _is_in_vain(made):
            return self.run(function, args, kwargs)
        return made(*args, **kwargs)


def _is_in_vain(made: Any) -> bool:
    """Whether a function was compiled again for each of many calls, such as one that gets objects of one call alone."""
    stats: CompileStats = made.stats
    return stats.cache_misses >= VAIN and stats.unserved >= stats.calls


def _entry(function: object) -> Any:
    """Return the Python function or method whose frame a call runs; ``None`` if there is none to run."""
    if isinstance(function, torch.nn.Module):
        plain = type(function).__call__ is MODULE_CALL and function._compiled_call_impl is None
        if not plain or type(function)._call_impl is not MODULE_CALL_IMPL:
            return None
        return function._call_impl if has_hooks(function) else function.forward
    if isinstance(function, types.MethodType):
        return function if isinstance(function.__func__, types.FunctionType) else None
    if isinstance(function, types.FunctionType):
        return None if function.__code__.co_flags & UNLIKELY else function
    call = getattr(type(function), "__call__", None)  # noqa: B004
    return types.MethodType(call, function) if isinstance(call, types.FunctionType) else None


def _codes(entry: object) -> Iterator[types.CodeType]:
    """Yield the code of a frame, and that of functions that are written within it."""
    function = entry.__func__ if isinstance(entry, types.MethodType) else entry
    if isinstance(entry, types.MethodType) and function is MODULE_CALL_IMPL:
        forward = entry.__self__.forward  # type: ignore[attr-defined]
        yield from _codes(forward)
    if isinstance(function, types.FunctionType):
        yield from _within(function.__code__)
    if function is DistributedDataParallel.forward:
        yield from _within(DistributedDataParallel._run_ddp_forward.__code__)


def _within(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _within(constant)


def _may_compile(function: types.FunctionType) -> bool:
    """Whether a program may be made of a function: the user's own, and those of libraries but for the usual ones.

    What ``torch.no_grad()`` and the like, as decorators, make of such a function is one, too.
    """
    while not _is_users(function):
        inner = getattr(function, "__wrapped__", None)
        if type(inner) is not types.FunctionType or why_as_it_is(function) is not None:
            return False
        function = inner
    return True


def _is_users(function: types.FunctionType) -> bool:
    module = name_in(function.__globals__)
    if function.__code__.co_flags & UNLIKELY:
        return False
    if function.__name__.startswith("__") and function.__name__ != "__call__":
        return False  # makes an object, or reads or writes one
    package = package_of(module)
    if package in PACKAGES:
        return False
    return package != "torch" and package not in sys.stdlib_module_names and not module_runs_natively(module)


def _is_found_by_name(function: types.FunctionType) -> bool:
    """Whether a function is what its name says, and so no closure that is made for one call."""
    found: Any = sys.modules.get(function.__module__)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


def _is_special_container(value: object) -> bool:
    """Whether a value is a container of a class of its own, whose methods do little but keep what they are given."""
    return isinstance(value, (dict, list, tuple, set)) and type(value) not in (dict, list, tuple, set, torch.Size)


def _holds_tensors(value: object, depth: int) -> bool:
    if isinstance(value, (torch.Tensor, torch.nn.Module)):
        return True
    if depth and isinstance(value, (tuple, list)):
        return any([_holds_tensors(item, depth - 1) for item in value])
    if depth and isinstance(value, dict):
        return any([_holds_tensors(item, depth - 1) for item in value.values()])
    return False
