"""The compiled function: what ``thunder.jit`` returns for a callable."""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import torch
from torch.autograd import forward_ad
from torch.utils._device import DeviceContext

from thunder_executors import replacements
from thunder_frontend.attempts import acquire
from thunder_frontend.check import FirstCallCheck
from thunder_frontend.codegen.dispatch import Dispatcher
from thunder_frontend.codegen.specialise import Specialisation
from thunder_frontend.compile_data import CompileData
from thunder_frontend.dynamo import left_alone_by_dynamo
from thunder_frontend.errors import because_of_builtins, with_state
from thunder_frontend.one_way import OtherWay
from thunder_frontend.options import Options
from thunder_frontend.outside.left_open import LeftOpen
from thunder_frontend.pipeline import Compiled, compile_program
from thunder_frontend.program import Program
from thunder_frontend.stats import CompileStats, Timer
from thunder_frontend.tracebacks import tell_the_user, users_stacklevel
from thunder_ir import ThunderError, Trace, collector_paused
from thunder_ir.passes import verifying

LOGGER = logging.getLogger("thunder")

ATTEMPTS = 6
"""How often a call is compiled for at most, where what it was compiled for is no more when it comes to run."""

MANY = 32
"""After how often compiling a function its user is warned, once: that most calls compile it may not be meant."""

EXPLAINED = 8
"""Why how many specialisations do not serve is told of a miss: asking all would make each miss dearer than the last."""


def watched_from_outside() -> bool:
    """Whether each operation must be seen by somebody: a functorch transform, ``torch.jit.trace``, derivatives in
    forward mode, or a mode that functions or operators are dispatched to.

    A program would hide its operations from them, so under them the callable runs as it is. The mode that
    ``torch.device`` and ``torch.set_default_device`` put in place is part of what programs are compiled for.
    """
    if torch._C._are_functorch_transforms_active() or torch._C._get_tracing_state() is not None:
        return True
    if torch._C._len_torch_dispatch_stack() or forward_ad._current_level >= 0:
        return True
    modes = range(torch._C._len_torch_function_stack())
    return any(not isinstance(torch._C._get_function_stack_at(i), DeviceContext) for i in modes)


class CompiledFunction(CompileData):
    """A callable that compiles a specialisation for each kind of call and runs it.

    Args:
        function: what is compiled.
        options: how.
    """

    def __init__(self, function: Callable[..., Any], options: Options) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.options = options
        self.compiled: list[Compiled] = []
        self._lock = threading.RLock()
        self._mortal: dict[int, list[weakref.ref[Any]]] = {}
        self._dead: deque[int] = deque()
        self._left_open = LeftOpen(options.cache == "symbolic values")
        self._dispatcher = Dispatcher(self._miss, self._left_open.symbolic)
        self.stats = CompileStats(lambda: self._dispatcher.calls, self.compiled)
        self._dispatch = self._dispatcher.call if options.cache != "same input" else self.same_input

    @left_alone_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._dispatch(args, kwargs)
        except OtherWay:
            return self.function(*args, **kwargs)
        except Exception as error:
            tell_the_user(error, self.programs())
            raise

    def programs(self) -> list[Trace]:
        """Return the programs that calls run, of all specialisations."""
        return [c.traces[-1] for c in self.compiled]

    def same_input(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the one specialisation without checking anything: what ``cache="same input"`` means."""
        self._dispatcher.calls += 1
        if not self.compiled:
            return self._miss(args, kwargs)
        return self.compiled[-1].specialisation.call(args, kwargs, self._refused)

    def compiles(self) -> Callable[..., Any]:
        """Return what is compiled: inside of another compiled program, that is what runs."""
        return self.function

    def __reduce__(self) -> Any:
        """Copies and pickles are made of what is compiled, and compile it anew."""
        return type(self), (self.function, self.options)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any], attempts: int = ATTEMPTS) -> Any:
        """Compile a specialisation for this call, and call it; if it is not good for it, there are more attempts."""
        refused = self._refused
        if attempts > 1:  # another thread, or the collector, may change something meanwhile
            refused = functools.partial(self._miss, attempts=attempts - 1)
        self.stats.unserved += 1
        if watched_from_outside():
            return self.function(*args, **kwargs)
        known = len(self.compiled) if attempts == ATTEMPTS else 0
        with self._lock:
            for other in self.compiled[known:]:  # another thread compiled it while this one waited
                if self.options.cache != "no caching" and other.specialisation.failure(args, kwargs) is None:
                    self.stats.unserved -= 1
                    return other.specialisation.call(args, kwargs, refused)
            self._drop_dead()
            newest = self.compiled[-EXPLAINED:]
            reasons = [r for c in newest if (r := c.specialisation.failure(args, kwargs)) is not None]
            with collector_paused():
                compiled = self._compile(args, kwargs)
            if compiled.program.raises is not None:  # nothing that another call could use
                state = compiled.specialisation.call(args, kwargs, refused)
                raise with_state(compiled.program.raises, state)
            if self.options.cache == "no caching":
                self.compiled.clear()
            else:
                self._left_open.exchanged(compiled.program.exchanges)
                self._dispatcher.add(compiled.specialisation, args, kwargs)
                self._watch_over(compiled.specialisation)
            if self.compiled:
                self.stats.reasons.append(reasons)
                self._report(reasons)
            self.compiled.append(compiled)
            self.stats.cache_misses += 1
        if self.stats.cache_misses == MANY and self.options.cache != "no caching":
            self._warn_of_many(reasons)
        if self.options.extra.get("check") == "first-call":
            return self._checked(compiled, args, kwargs)
        return compiled.specialisation.call(args, kwargs, refused)

    def _watch_over(self, specialisation: Specialisation) -> None:
        """Drop a specialisation when something dies that it was compiled for: a module among the arguments."""
        place, dead = id(specialisation), self._dead

        def died(reference: Any) -> None:
            dead.append(place)

        references = [weakref.ref(value, died) for value in specialisation.relies_on()]
        if references:
            self._mortal[place] = references

    def _drop_dead(self) -> None:
        """Drop the specialisations that no call can use any more; of the last one, the traces are kept."""
        while self._dead:
            place = self._dead.popleft()
            if self._mortal.pop(place, None) is None:
                continue
            for specialisation in [s for s in self._dispatcher.specialisations if id(s) == place]:
                self._dispatcher.drop(specialisation)
                specialisation.forget()
            self.compiled[:] = [c for c in self.compiled if id(c.specialisation) != place]

    def _checked(self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a specialisation for the first time, with eager beside it."""
        check = FirstCallCheck(self.function, args, kwargs)
        result = compiled.specialisation.call(args, kwargs, self._refused)
        check.compare(result)
        return result

    def acquired(self, args: tuple[Any, ...], kwargs: dict[str, Any], left_open: LeftOpen | None = None) -> Program:
        """Return a call as a program, without running it; ``left_open`` tells what it leaves open."""
        return acquire(
            self.function,
            args,
            kwargs,
            self.options.sharp_edges,
            self.options.keeps_log or self.options.debug.show_interpreter_progress,
            left_open,
            replacements(self.options.executors),
        )

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Compiled:
        try:
            return self._compiled_for(args, kwargs, self._left_open or None)
        except ThunderError:  # all else is the program's own
            if not self._left_open.any_changed():
                raise
            # not all can be done with open sizes and numbers
            return self._compiled_for(args, kwargs, self._left_open.without_changing())

    def _compiled_for(self, args: tuple[Any, ...], kwargs: dict[str, Any], left_open: LeftOpen | None) -> Compiled:
        timer = Timer()
        with timer("acquisition"):
            program = self.acquired(args, kwargs, left_open)
        if self.options.debug.show_interpreter_progress:
            print(f"{self._name}: {len(program.log.entries)} calls interpreted or made", file=sys.stderr)
        with torch.no_grad(), verifying(bool(self.options.debug.check_traces)):
            try:
                compiled = compile_program(program, self.options, timer)
            except Exception as error:
                refusal = because_of_builtins(error)
                if refusal is None:
                    raise
                raise refusal from error
        self.stats.phases.append(timer.seconds)
        return compiled

    def _refused(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        reason = self.compiled[-1].specialisation.failure(args, kwargs) if self.compiled else "of an exception"
        raise RuntimeError(
            f"a specialisation does not accept the call that it was compiled for: {reason}; if the program sets that "
            "itself while it runs, set it before the call; if not, this is an error in Thunder"
        )

    @property
    def _name(self) -> str:
        """What is compiled, for messages."""
        return str(getattr(self.function, "__qualname__", type(self.function).__qualname__))

    def _report(self, reasons: list[str]) -> None:
        if os.environ.get("THUNDER_LOG_MISSES"):
            LOGGER.warning("%s is compiled again: %s", self._name, "; ".join(reasons) or "another kind of arguments")

    def _warn_of_many(self, reasons: list[str]) -> None:
        last = reasons[-1] if reasons else "the arguments are of another kind"
        warnings.warn(
            f"{self._name} was compiled {MANY} times, the last time because {last}. Pass what changes from call to "
            "call as a tensor, or leave numbers and sizes open by cache='symbolic values'; what takes a number's "
            "value, such as a text, a key or range(), is best done outside. thunder.explain_misses tells why it was "
            "compiled each time",
            stacklevel=users_stacklevel(),
        )

    def __repr__(self) -> str:
        return f"<thunder.jit of {self.function!r}: {len(self.compiled)} specialisations>"
