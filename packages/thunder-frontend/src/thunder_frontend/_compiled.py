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
from dataclasses import replace
from typing import Any

import torch
from torch.autograd import forward_ad

from thunder_executors import replacements
from thunder_frontend._attempts import acquire
from thunder_frontend._check import FirstCallCheck
from thunder_frontend._compile_data import CompileData
from thunder_frontend._dynamo import left_alone_by_dynamo
from thunder_frontend._external_state.dynamic_values import DynamicValues
from thunder_frontend._fallback import Fallback
from thunder_frontend._outcome_tree import OUTCOMES, OutcomeTree
from thunder_frontend._outcomes import LONGEST, OtherOutcome, Path, is_prefix
from thunder_frontend._pipeline import Compiled, compile_program
from thunder_frontend._progress import progress
from thunder_frontend._report import SplitOff
from thunder_frontend._settings import Settings
from thunder_frontend._splits import Splits
from thunder_frontend._stats import CompileStats, Timer
from thunder_frontend._suspensions import Continuation, Paused
from thunder_frontend._tracebacks import because_of_builtins, tell_the_user, users_stacklevel
from thunder_frontend.options import Options
from thunder_guards import MISSED, Dispatcher, Specialisation, missed, only_choose_devices
from thunder_guards.errors import AcquisitionError, with_state
from thunder_guards.program import Program
from thunder_ir import ThunderError, Trace, collector_paused
from thunder_ir.passes import verifying
from thunder_tracing.bailouts import Bailout
from thunder_tracing.tensors.array_calls import DynamicArrayError

LOGGER = logging.getLogger("thunder")

ATTEMPTS = 6
"""How often a call is compiled for at most, where what it was compiled for is no more when it comes to run."""

MANY = 32
"""After how often compiling a function its user is warned, once: that most calls compile it may not be meant. If each
call changed what its own program had been compiled for, later calls run in Python."""

AFTER_CALLS = 64
"""How many programs are made for what comes after one call that no program can hold, to which a loop may come often."""

EXPLAINED = 8
"""Why how many specialisations do not serve is told of a miss: asking all would make each miss dearer than the last."""


def watched_from_outside() -> bool:
    """Whether each operation must be seen by another: a functorch transform, ``torch.jit.trace``, derivatives in
    forward mode, or a mode that functions or operators are dispatched to.

    A program would hide its operations from them, so under them the callable runs as it is. The mode that
    ``torch.device`` and ``torch.set_default_device`` put in place is part of what programs are compiled for.
    """
    if torch._C._are_functorch_transforms_active() or torch._C._get_tracing_state() is not None:
        return True
    if torch._C._len_torch_dispatch_stack() or forward_ad._current_level >= 0:
        return True
    return not only_choose_devices()


class CompiledFunction(CompileData):
    """A callable that compiles a specialisation for each kind of call and runs it.

    Args:
        function: what is compiled.
        options: how.
        splits: what runs the frames in Python of which no program can be made; ``None`` makes it.
    """

    def __init__(self, function: Callable[..., Any], options: Options, splits: Splits | None = None) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function = function
        self.options = options
        self._splits = Splits(function, self._part) if splits is None else splits
        self._spent = 0  # how many calls changed what they had been compiled for
        self._tree = OutcomeTree(options.extra.get("outcomes", OUTCOMES))
        self._fallback = Fallback(function, self.name, options.fallback, self._splits)
        self.compiled: list[Compiled] = []
        self._lock = threading.RLock()
        self._weakly_held: dict[int, list[weakref.ref[Any]]] = {}
        self._dead: deque[int] = deque()
        self._dynamic = DynamicValues(options.cache == "symbolic values", waits=options.cache == "auto")
        self._dispatcher = Dispatcher(self._miss if options.cache != "same input" else self._first_miss)
        self.stats = CompileStats(lambda: self._dispatcher.calls, self.compiled)

    @left_alone_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        dispatcher = self._dispatcher
        try:
            dispatcher.calls += 1  # what follows is Dispatcher.call, without the time that a call of it takes
            serve = dispatcher.serve
            result = serve(args, kwargs, dispatcher.miss)
            return self.go_on(result) if result.__class__ is Paused else result
        except Bailout as other:
            bailout: Bailout = other
        except Exception as error:
            tell_the_user(error, self.programs())
            raise
        return self.go_on(self.bail_out(bailout, args, kwargs))

    def first_part(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it, as far as its program goes: what that returns may be the call of a frame that it cannot hold."""
        try:
            return self._dispatcher.call(args, kwargs)
        except Bailout as bailout:
            return self.bail_out(bailout, args, kwargs)

    def go_on(self, result: object) -> Any:
        """Return what a call comes to of which a program returned this."""
        while result.__class__ is Paused:
            result = self._splits.go_on(result)
            self._fallback.tell()
        return result

    def bail_out(self, bailout: Bailout, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Begin a call anew that goes another way than the program which was tried first."""
        try:
            for _ in range(LONGEST):
                if not isinstance(bailout, OtherOutcome):
                    break
                try:
                    return self._along(bailout.path, args, kwargs)
                except Bailout as other:
                    bailout = other
            return self.function(*args, **kwargs)
        except Exception as error:
            tell_the_user(error, self.programs())
            raise

    def _along(self, path: Path, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the program in which Python sees first what it sees in this call; without one, compile it."""
        for compiled in self._tree.along(path):
            result = compiled.specialisation.call(args, kwargs, missed)
            if result is not MISSED:
                if self._tree.is_preferred(compiled, self._dispatcher.calls):
                    with self._lock:
                        self._dispatcher.prefer(compiled.specialisation)
                return result
        if self._tree.is_full:
            refusal = self._tree.refusal(path)
            if not self._fallback.takes(refusal):
                raise refusal
            self._fallback.note(refusal, args, kwargs)
            with self._lock:
                self._forget_programs()
            return self._fallback.run(args, kwargs)
        return self._miss(args, kwargs, path=path)

    def programs(self) -> list[Trace]:
        """Return the programs that calls may run, of all specialisations: the last one, or what that was made of."""
        return [trace for c in self.compiled for trace in c.traces[-2:]]

    def _first_miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compile the one specialisation, which checks nothing: what ``cache="same input"`` means."""
        return self._refused(args, kwargs) if self.compiled else self._miss(args, kwargs)

    def compiles(self) -> Callable[..., Any]:
        """Return what is compiled: inside of another compiled program, that is what runs."""
        return self.function

    def __reduce__(self) -> Any:
        """Copies and pickles are made of what is compiled, and compile it anew."""
        return type(self), (self.function, self.options)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any], attempts: int = ATTEMPTS, path: Path = ()) -> Any:
        """Compile a specialisation for this call, and call it; if it is not good for it, there are more attempts."""
        refused = self._refused
        if attempts > 1:  # another thread, or the collector, may change something meanwhile
            refused = functools.partial(self._miss, attempts=attempts - 1, path=path)
        self.stats.unserved += 1
        if watched_from_outside():
            return self.function(*args, **kwargs)
        too_many = isinstance(self.function, Continuation) and len(self.compiled) >= AFTER_CALLS
        if too_many or self._fallback.knows(args, kwargs):
            return self._fallback.run(args, kwargs)
        known = len(self.compiled) if attempts == ATTEMPTS else 0
        with self._lock:
            for other in self.compiled[known:]:  # another thread compiled it while this one waited
                if self.options.cache == "no caching" or not is_prefix(path, other.program.path):
                    continue
                if other.specialisation.failure(args, kwargs) is None:
                    self.stats.unserved -= 1
                    return other.specialisation.call(args, kwargs, refused)
            self._drop_dead()
            self._dynamic.sees(args, kwargs)
            compiled = self._compile_or_note(args, kwargs, path)
            if compiled is not None:
                if compiled.program.raises is not None:  # nothing that another call could use
                    state = compiled.specialisation.call(args, kwargs, refused)
                    raise with_state(compiled.program.raises, state)
                self._keep(compiled, args, kwargs)
        if compiled is None:
            return self._fallback.run(args, kwargs)
        if self.options.extra.get("check") == "first-call":
            return self._checked(compiled, args, kwargs)
        result = compiled.specialisation.call(args, kwargs, refused)
        self._spent += compiled.specialisation.failure(args, kwargs) is not None
        return result

    def _compile_or_note(self, args: tuple[Any, ...], kwargs: dict[str, Any], path: Path) -> Compiled | None:
        """Compile a specialisation; return ``None`` where there is none and the call is to run in Python."""
        way = path or None
        while True:
            try:
                with collector_paused():
                    return self._compile(args, kwargs, way)
            except Exception as error:
                if not self._fallback.takes(error):
                    raise
                if not self._fallback.loses(error):
                    self._fallback.note(error, args, kwargs)
                    return None
                if isinstance(error, AcquisitionError) and error.sees:
                    way = path  # the other ways end before the frame that is lost, and would again

    @collector_paused()
    def _keep(self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let later calls use a specialisation."""
        newest = self.compiled[-EXPLAINED:]
        reasons = [r for c in newest if (r := c.specialisation.failure(args, kwargs)) is not None]
        if self.options.cache == "no caching":
            self.compiled.clear()
        else:
            self._dynamic.is_made()
            self._dynamic.exchanged(compiled.program.exchanges)
            self._dispatcher.add(compiled.specialisation, args, kwargs)
            self._watch_over(compiled.specialisation)
            self._tree.add(compiled)
        if self.compiled:
            self.stats.reasons.append(reasons)
            self._report(reasons)
        self.compiled.append(compiled)
        self.stats.cache_misses += 1
        of_user = self.options.cache != "no caching" and not isinstance(self.function, Continuation)
        if self.stats.cache_misses == MANY and of_user:
            self._tell_of_many(reasons)

    def _part(self, function: Callable[..., Any]) -> CompiledFunction:
        """Return what runs a call that a frame makes which runs in Python."""
        cache = "constant values" if self.options.cache == "same input" else self.options.cache
        extra = {name: value for name, value in self.options.extra.items() if name != "check"}  # done of the whole call
        return CompiledFunction(function, replace(self.options, cache=cache, extra=extra), self._splits)

    def parts(self) -> list[CompiledFunction]:
        """Return this and what is compiled in place of it, where its frame runs in Python."""
        return [self, *self._splits.parts()]

    def split_off(self) -> list[SplitOff]:
        """Return what calls ran in Python, since no program can be made of it."""
        return self._splits.report.split_off()

    def _watch_over(self, specialisation: Specialisation) -> None:
        """Drop a specialisation when something dies that it was compiled for: a module among the arguments."""
        place, dead = id(specialisation), self._dead

        def died(reference: object) -> None:
            dead.append(place)

        references = [weakref.ref(value, died) for value in specialisation.relies_on()]
        if references:
            self._weakly_held[place] = references

    def _drop_dead(self) -> None:
        """Drop the specialisations that no call can use any more; of the last one, the traces are kept."""
        while self._dead:
            place = self._dead.popleft()
            if self._weakly_held.pop(place, None) is None:
                continue
            for specialisation in [s for s in self._dispatcher.specialisations if id(s) == place]:
                self._dispatcher.drop(specialisation)
                specialisation.forget()
            self.compiled[:] = [c for c in self.compiled if id(c.specialisation) != place]

    def _checked(self, compiled: Compiled, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a specialisation for the first time, with eager beside it."""
        check = FirstCallCheck(self.function, args, kwargs)
        result = self.go_on(compiled.specialisation.call(args, kwargs, self._refused))
        check.compare(result)
        return result

    def acquired(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        dynamic: DynamicValues | None = None,
        path: Path | None = None,
    ) -> Program:
        """Return a call as a program, without running it.

        Args:
            args, kwargs: of the call.
            dynamic: tells what it makes dynamic.
            path: what Python is to see first of values that only the run tells; ``None`` where it sees them if it must.
        """
        settings = Settings(
            self.options.sharp_edges,
            self.options.keeps_log or self.options.debug.show_interpreter_progress,
            dynamic,
            replacements(self.options.executors),
            self._splits if self.options.fallback == "split" else None,
            path=path,
        )
        return acquire(self.function, args, kwargs, settings, self.options.extra.get("outcomes") != 0)

    def _compile(self, args: tuple[Any, ...], kwargs: dict[str, Any], path: Path | None) -> Compiled:
        found: ThunderError
        try:
            return self._compiled_for(args, kwargs, self._dynamic, path)
        except ThunderError as error:  # all else is the program's own
            found = error
        in_python = isinstance(found, DynamicArrayError) and self._fallback.takes(found)
        for dynamic in () if in_python else self._dynamic.fixing_more():  # not all can be done with symbolic numbers
            try:
                return self._compiled_for(args, kwargs, dynamic, path)
            except ThunderError as error:
                found = error
        raise found

    def _compiled_for(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], dynamic: DynamicValues | None, path: Path | None
    ) -> Compiled:
        with progress(self.name) as begins:
            timer = Timer(begins)
            with timer("acquisition"):
                program = self.acquired(args, kwargs, dynamic, path)
            if self.options.debug.show_interpreter_progress:
                print(f"{self.name}: {len(program.log.entries)} calls interpreted or made", file=sys.stderr)
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
        error = AcquisitionError(
            f"a specialisation does not accept the call that it was compiled for: {reason}; if the program sets that "
            "itself while it runs, set it before the call; if not, this is an error in Thunder"
        )
        if not self._fallback.takes(error):
            raise error
        self._fallback.note(error, args, kwargs)
        return self._fallback.run(args, kwargs)

    @property
    def name(self) -> str:
        """What is compiled, for messages."""
        return str(getattr(self.function, "__qualname__", type(self.function).__qualname__))

    def _report(self, reasons: list[str]) -> None:
        if os.environ.get("THUNDER_LOG_MISSES"):
            LOGGER.warning("%s is compiled again: %s", self.name, "; ".join(reasons) or "another kind of arguments")

    def _tell_of_many(self, reasons: list[str]) -> None:
        """Warn of many programs; if none serves the same call again, later calls run in Python, where they may."""
        last = reasons[-1] if reasons else "the arguments are of another kind"
        fixes = self.options.cache == "constant values"
        otherwise = ", or make numbers and sizes dynamic by cache='auto'" if fixes else ""
        message = (
            f"{self.name} was compiled {MANY} times, the last time because {last}. Pass what changes from call to "
            f"call as a tensor{otherwise}; what takes a number's value, such as a text, a key or range(), is best done "
            "outside. thunder.explain_misses tells why it was compiled each time"
        )
        in_vain = AcquisitionError(message)
        if self._spent >= MANY - 1 and self.stats.unserved >= self.stats.calls and self._fallback.takes(in_vain):
            self._fallback.give_up(in_vain)
            self._forget_programs()
        else:
            warnings.warn(message, stacklevel=users_stacklevel())

    def _forget_programs(self) -> None:
        for compiled in self._tree.cleared():
            self._dispatcher.drop(compiled.specialisation)

    def __repr__(self) -> str:
        return f"<thunder.jit of {self.function!r}: {len(self.compiled)} specialisations>"
