"""Acquisition: from a Python callable and one call's arguments to a program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import CodeType, FunctionType
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._external_state.process_settings import Values
from thunder_frontend._external_state.watch import Watch, WatchSymbolic
from thunder_frontend._library_code.module_calls import call_module
from thunder_frontend._library_code.native_code import is_of_torch, runs_natively
from thunder_frontend._library_code.torch_warnings import asks_for_overrides, may_warn
from thunder_frontend._lookasides.lookasides import lookasides
from thunder_frontend._suspensions import Continuation
from thunder_guards import ArgumentsGuard, EnvironmentGuard
from thunder_guards.errors import AcquisitionError, BeginAgain, DataDependentError, in_users_code, state_of
from thunder_guards.fixed_numbers import with_fixed_numbers_guarded
from thunder_guards.own_code import PACKAGES, name_in, of_library, package_of
from thunder_guards.program import Effect, Program
from thunder_guards.sources import Source, held
from thunder_guards.templates import External
from thunder_interpreter import Interpretation, interpret, truth_that_raises
from thunder_ir import ThunderError, UnknownNumberError, recording
from thunder_ir.passes import dead_code_elimination
from thunder_tracing.bailouts import is_single_and_unknown
from thunder_tracing.tensors.traced_tensor import AcquisitionMode
from thunder_tracing.tracer import ARGS, KWARGS


class Acquisition(Acquiring):
    """Acquires one call: interprets it, and makes a program of what that recorded."""

    def runs_natively(self, function: FunctionType) -> bool:
        """Whether a Python function is called as it is."""
        if not runs_natively(function):
            return False
        if not is_of_torch(function):
            return True
        if function in self.settings.interprets or self.beneath.was_replaced(function):
            self.goes_beneath = True
            return False
        return asks_for_overrides(function) or not may_warn(function)

    def branch(self, value: object, code: CodeType, offset: int) -> Any:
        """Decide for the way on that does not just raise, and let the program check that it is the right one."""
        if not is_single_and_unknown(value):
            return NotImplemented
        raising = truth_that_raises(code, offset)
        if raising is not None and self.expect(value, not raising):
            return not raising
        if self.outcomes is None or isinstance(value, torch.Tensor):  # which is asked for its truth
            return NotImplemented
        return self.outcomes.truth(value)

    def _located(self, run: Interpretation) -> Any:
        """Return where the program stands that records something, and note whether it might catch what that raises."""
        self.note_try()
        return run.location(of_library)

    def run(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Program:
        """Interpret a call and return it as a program. External state is left as it was."""
        now, arguments = EnvironmentGuard(), ArgumentsGuard(args, kwargs)
        self.external.hold(function, getattr(function, "__name__", "function"))
        for needed in function.held if isinstance(function, Continuation) else ():
            self.external.hold(needed, needed.__name__)
        watch = (WatchSymbolic if self.allows_unknown else Watch)(self.external, self.sharp, self.branch, self.arrays)
        run = interpret(
            function,
            lookasides=lookasides(self),
            callbacks=watch,
            opaque=self.runs_natively,
            log=self.settings.log,
        )
        self._suspended = run.suspended
        watch.waiting = lambda: waiting(run.frames(), self.external.source_of)
        self._bridge = run.bridge
        self._is_tried = lambda: run.is_tried(of_library)
        self.builder.oracle = self.outcomes
        self.builder.locate = lambda: self._located(run)
        with ExitStack() as stack:
            stack.callback(self._let_go)
            stack.callback(self.external.mutations.undo)
            stack.callback(run.abandon)
            stack.enter_context(recording(self.builder))
            traced_args = tuple(self.external.argument(a, Source(ARGS, "item", i)) for i, a in enumerate(args))
            traced_kwargs = {k: self.external.argument(a, Source(KWARGS, "item", k)) for k, a in kwargs.items()}
            mode = stack.enter_context(AcquisitionMode(self))
            stack.callback(self.external.process.restore)
            stack.callback(self.inference_modes.restore)
            stack.callback(self.external.states.give_back)
            raised: BaseException | None = None
            state: tuple[Any, dict[str, Any]] = ((), {})
            try:
                result = run(*traced_args, **traced_kwargs)
            except ThunderError as error:
                raise watch.signal or self._blamed(refused(error), watch.frames) from error.__cause__
            except (BeginAgain, KeyboardInterrupt):  # the user's own interrupt may come anywhere: nothing has happened
                raise
            except BaseException as error:  # the program's own: what it wrote before stays written
                raised, result = error, (state := state_of(error))
            if watch.signal is not None:  # and the program's handler took it for an error of its own
                raise watch.signal
            refusal = watch.refusal or self.refusal
            if refusal is not None:  # and the program's handler took it for an error of its own
                raise self._blamed(refused(refusal), watch.frames) from refusal.__cause__
            with torch._C.DisableTorchFunction():
                self.inference_modes.check()
                self.external.states.check()
                settings = self.external.process.left()
                mode.check()
                self.arrays.check()
                self.shared.require_apart()
                self.external.objects_apart()
                if self.known is not None and (seen := self.known.guard()) is not None:
                    self.external.require(seen, "values that Python has seen")
                self.external.keeps_none_alive()
                program = self._program(now, arguments, result, settings, run.log if self.settings.log else None)
            if raised is not None and not (program.effects or any(state) or _runs(program)):  # nothing comes before
                raise raised
            return with_fixed_numbers_guarded(replace(program, raises=raised))

    def _blamed(self, error: Exception, frames: tuple[Any, ...]) -> Exception:
        """Return a refusal with the frames that it went through, innermost first, and how far the program came."""
        if isinstance(error, AcquisitionError):
            error.frames, error.recorded = frames, len(self.builder.bound_symbols)
        return error

    def _let_go(self) -> None:
        """Keep nothing of external state alive any more."""
        self.external.let_go()
        self.let_go()

    def _program(
        self, now: EnvironmentGuard, arguments: ArgumentsGuard, result: object, settings: Values, log: object
    ) -> Program:
        computation, outcome = self.finish(result)
        outcome.effects += [Effect("setting", External(held(s, "setting")), None, value) for s, value in settings]
        return Program(
            tuple(self.inputs),
            tuple(self.external.guards),
            now,
            arguments,
            computation,
            outcome.result,
            tuple(outcome.effects),
            self.rules,
            tuple(self.numbers),
            log,
            unseen=self.unseen,
            path=() if self.outcomes is None else tuple(self.outcomes.met),
            exchanges=self.external.exchanges(),
            views=outcome.views,
            tried=self.tried,
        )


def _runs(program: Program) -> bool:
    """Whether a program that returns nothing has anything to compute."""
    return bool(dead_code_elimination(program.computation).bound_symbols)


def waiting(frames: Sequence[Any], source_of: Callable[[object], Any]) -> tuple[tuple[CodeType, str, Any], ...]:
    """Return the code of frames, the package that it is of, and the module whose method it is, if it is one's.

    In place of the one that calls a module is what that runs. A module that the program makes is another one each time.
    """
    found = []
    for frame in frames:
        code, scope = frame.f_code, frame.f_globals
        first = next(iter(frame.f_locals.values()), None)
        owner = first if isinstance(first, torch.nn.Module) else None
        forward = getattr(type(owner), "forward", None)
        if code is call_module.__code__ and isinstance(forward, FunctionType):
            code, scope = forward.__code__, forward.__globals__
        if (package := package_of(name_in(scope))) not in PACKAGES:
            found.append((code, package, None if owner is None or source_of(owner) is None else owner))
    return tuple(found)


def refused(error: ThunderError) -> Exception:
    """Return the error with the user's line, and as a kind that says what is the matter."""
    if isinstance(error, UnknownNumberError):
        return in_users_code(DataDependentError(str(error)).with_traceback(error.__traceback__))
    return in_users_code(error) if isinstance(error, AcquisitionError) else error
