"""Acquisition: from a Python callable and one call's arguments to a program."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from types import CodeType, FunctionType, MappingProxyType
from typing import Any

import torch

from thunder_frontend._evaluation import Evaluation
from thunder_frontend._lookasides.beneath_torch import Beneath
from thunder_frontend._lookasides.distributed_calls import refuse_wrappers
from thunder_frontend._lookasides.inference_modes import InferenceModes
from thunder_frontend._lookasides.lookasides import lookasides
from thunder_frontend._lookasides.module_calls import Again, call_module, has_hooks
from thunder_frontend._lookasides.native_code import is_of_torch, runs_natively
from thunder_frontend._lookasides.torch_warnings import asks_for_overrides, may_warn, unless_it_warns
from thunder_frontend._outcomes import Outcomes, Path
from thunder_frontend._outside.handed_over import HandedOver
from thunder_frontend._outside.left_open import LeftOpen
from thunder_frontend._outside.process_settings import Values
from thunder_frontend._outside.watch import Watch, WatchOpen
from thunder_frontend._outside.world import World
from thunder_frontend._printing import Prints
from thunder_frontend._repeated.repeats import Repeats
from thunder_frontend._repeated.replay import Recording, Run
from thunder_frontend._splits import Splits
from thunder_frontend._suspensions import Continuation
from thunder_frontend._tracebacks import users_stacklevel
from thunder_guards import (
    ArgumentsGuard,
    EnvironmentGuard,
)
from thunder_guards.errors import (
    AcquisitionError,
    DataDependentError,
    SharpEdgeError,
    SharpEdgeWarning,
    in_users_code,
    state_of,
)
from thunder_guards.own_code import PACKAGES, name_in, package_of
from thunder_guards.program import Effect, Program
from thunder_guards.sources import Source, held
from thunder_guards.templates import Outside
from thunder_interpreter import DECLINED, Left, interpret, truth_that_raises
from thunder_ir import (
    Symbol,
    ThunderError,
    UnknownNumberError,
    is_unknown,
    recording,
)
from thunder_ir.passes import dead_code_elimination
from thunder_torch import view_argument
from thunder_tracing.one_way import is_single_and_unknown
from thunder_tracing.tensors.known_values import Looks
from thunder_tracing.tensors.tensor_classes import asks_for_functions
from thunder_tracing.tensors.traced_tensor import AcquisitionMode
from thunder_tracing.tensors.under_settings import UnderSettings
from thunder_tracing.tracer import ARGS, KWARGS, Tracer

T = torch.Tensor


class Acquisition(Tracer):
    """Everything that is known while one call is acquired.

    Args:
        sharp_edges: ``"allow"``, ``"warn"`` or ``"error"``: what to do about effects that a compiled program does not
            repeat; ``None`` allows them, but for values that would be another one on each call.
        written: storages to which the program writes and which several inputs share.
        left_open: tells which dimensions and numbers are left open; ``None`` leaves none.
        replacements: which functions executors replace, by which operators.
        opens: whether user code may get hold of numbers that only the run of the program tells.
        looks: at what it may look of values that are computed of integers among the inputs, which are then guarded.
        tells: whether libraries that ask are told that something captures the program.
        interprets: functions of PyTorch that are interpreted, as they warn.
        mortal: objects that the program is not to keep alive.
        path: what Python is to see first of values that only the run tells, after which it sees those of the call at
            hand; ``None`` lets it see none.
        splits: knows before which calls the program ends; ``None`` if before none.
    """

    def __init__(
        self,
        sharp_edges: str | None = None,
        written: Collection[int] = (),
        left_open: LeftOpen | None = None,
        replacements: Mapping[Any, Symbol] = MappingProxyType({}),
        opens: bool = False,
        looks: Looks = Looks.AT_NOTHING,
        tells: bool = False,
        interprets: frozenset[Any] = frozenset(),
        mortal: Collection[Any] = (),
        path: Path | None = None,
        splits: Splits | None = None,
    ) -> None:
        self.left_open = left_open
        self.world = World(self.input, self.number, self.known_input, left_open, mortal)
        symbolic = left_open is not None and left_open.any_numbers()
        super().__init__(self.world, written, replacements, symbolic, opens, looks)
        self.tells = tells
        self.interprets = interprets
        self.asked_about_capture = False
        self.beneath = Beneath(lambda: self.world.journal.version)
        self.goes_beneath = False
        self.path = path
        self.splits = splits
        evaluation = Evaluation(lambda: self.builder.bound_symbols, lambda: self.inputs, lambda: self.numbers)
        self.outcomes = None if path is None else Outcomes(self, path, evaluation)
        self._sharp_edges = sharp_edges
        self._bridge: Callable[[Any], Callable[..., Any]] | None = None
        self.inference_modes = InferenceModes()
        self.prints = Prints(self)
        self.answered_by_cache: dict[Any, Any] = {}
        recording = Recording(self.world, self.builder, self.known_input, self.wrap, self.layouts)
        self._repeats = Repeats(recording, lambda: (self.changes, self.world.process.calls))

    def __call__(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a torch function does."""
        if self.outcomes is None:
            return self._called(function, args, kwargs)
        with self.outcomes.silent():
            try:
                return self._called(function, args, kwargs)
            except DataDependentError:
                if not self.outcomes.any_unknown((args, kwargs)):
                    raise
                args, kwargs = self.outcomes.fixed((args, kwargs))
                return self._called(function, args, kwargs)

    def _called(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if may_warn(function) and function not in self.interprets and not any(map(asks_for_functions, args)):
            return unless_it_warns(super().__call__, function, args, kwargs)
        return super().__call__(function, args, kwargs)

    # --- tensors ---------------------------------------------------------------------------------------------------

    def open_dimensions(self, tensor: torch.Tensor, source: Source) -> frozenset[int]:
        """Return the dimensions of an input that are left open."""
        return frozenset() if self.left_open is None else self.left_open.dims(tensor, source)

    def under_settings(self, function: Any) -> Any:
        """Return ``function`` such that it runs as the program has set PyTorch here, if that matters to kernels."""
        settings = self.world.process.of_kernels()
        if not settings or isinstance(function, Symbol) or view_argument(function) is not None:
            return function
        return UnderSettings(function, settings)

    def handed_over(self, name: str, given: object, tensor: Callable[[torch.Tensor], Any] | None = None) -> Any:
        """Return what one of Thunder's own operations gets for what the program gives it.

        Args:
            name: of the operation.
            given: its arguments.
            tensor: returns what it gets in the place of a tensor; of itself, the proxy of what that holds.
        """
        return HandedOver(self.world, tensor or self.value, f"{name}()").now(given)

    def check_generator(self, generator: torch.Generator) -> None:
        """Refuse a generator of random numbers that the program made: the next call would go on with it."""
        if self.world.source_of(generator) is None:
            raise AcquisitionError(
                "the program makes a torch.Generator, whose numbers would go on from call to call; "
                "make it outside and pass it"
            )

    def begin_module(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Run | Again | None:
        """Answer a call of a module by what an equal one did, or begin to remember what this one does."""
        self.world.classes.lookup(type(module), "__call__")
        code: Any = getattr(getattr(type(module), "forward", None), "__code__", None)
        if self.splits is None or has_hooks(module) or not self.splits.lost.holds(code, module):
            refuse_wrappers(module)
        if (
            self._log
            or self.levels.stack
            or self.looks is Looks.AT_ALL
            or (self.splits is not None and self.splits.lost)
        ):
            return None
        with torch._C.DisableTorchFunction():
            return self._repeats.begin(module, args, kwargs)

    def end_module(self, run: Run, result: object) -> None:
        """Remember what a call of a module did."""
        with torch._C.DisableTorchFunction():
            self._repeats.end(run, result)

    # --- running ---------------------------------------------------------------------------------------------------

    def runs_natively(self, function: Any) -> bool:
        """Whether a Python function is called as it is."""
        if not runs_natively(function):
            return False
        if not is_of_torch(function):
            return True
        if function in self.interprets or self.beneath.was_replaced(function):
            self.goes_beneath = True
            return False
        return asks_for_overrides(function) or not may_warn(function)

    def interpreted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` such that it runs interpreted when it is called from here."""
        assert self._bridge is not None
        return self._bridge(function)

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

    def known_truth(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return what a tensor holds, for Python to look at; ``None`` if it may not."""
        known = super().known_truth(tensor)
        if known is not None or self.outcomes is None:
            return known
        found: torch.Tensor = self.outcomes.value(self.value(self.traced(tensor)))
        return found

    def truth(self, tensor: torch.Tensor) -> bool | None:
        """Return whether a tensor is true, for Python to branch on; ``None`` if only the run of the program tells."""
        known = super().known_truth(tensor)
        if known is not None or self.outcomes is None:
            return None if known is None else bool(known)
        proxy = self.value(self.traced(tensor))
        if is_unknown(proxy.numel) or proxy.numel == 1:
            return self.outcomes.truth(proxy)
        return bool(torch.empty(proxy.numel))  # which raises what eager raises

    def sharp(self, what: str, varies: bool = False) -> None:
        """Deal with an effect that the compiled program will not repeat as it is.

        Args:
            what: happens, as a clause.
            varies: whether the program gets a value by it that would be another one on each call.
        """
        self.changes += 1
        if varies and self._sharp_edges is None:
            raise AcquisitionError(
                f"the program asks for what is another value on each call ({what}), and would get the same one from "
                'then on: pass the value as an argument, or allow that by sharp_edges="allow"'
            )
        message = f"the program has a sharp edge: {what}"
        if self._sharp_edges == "error":
            raise SharpEdgeError(message)
        if self._sharp_edges == "warn":
            warnings.warn(message, SharpEdgeWarning, stacklevel=users_stacklevel())

    def run(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], log: bool = False
    ) -> Program:
        """Interpret a call and return it as a program. The outside world is left as it was."""
        now, arguments = EnvironmentGuard(), ArgumentsGuard(args, kwargs)
        self._log = log
        self.world.hold(function, getattr(function, "__name__", "function"))
        for needed in function.held if isinstance(function, Continuation) else ():
            self.world.hold(needed, needed.__name__)
        watch = (WatchOpen if self.opens else Watch)(self.world, self.sharp, self.branch, self.arrays)
        run = interpret(
            function,
            lookasides=lookasides(self),
            callbacks=watch,
            opaque=self.runs_natively,
            log=log,
        )
        self._suspended = run.suspended
        watch.waiting = lambda: waiting(run.frames())
        self._bridge = run.bridge
        self.builder.oracle = self.outcomes
        self.builder.locate = run.location
        with ExitStack() as stack:
            stack.callback(self._let_go)
            stack.callback(self.world.journal.undo)
            stack.enter_context(recording(self.builder))
            traced_args = tuple(self.world.argument(a, Source(ARGS, "item", i)) for i, a in enumerate(args))
            traced_kwargs = {k: self.world.argument(a, Source(KWARGS, "item", k)) for k, a in kwargs.items()}
            mode = stack.enter_context(AcquisitionMode(self))
            stack.callback(self.world.process.restore)
            stack.callback(self.inference_modes.restore)
            raised: Exception | None = None
            state: tuple[Any, dict[str, Any]] = ((), {})
            try:
                result = run(*traced_args, **traced_kwargs)
            except ThunderError as error:
                raise blamed(refused(error), watch.frames) from error.__cause__
            except Exception as error:  # the program's own: what it wrote before stays written
                raised, result = error, (state := state_of(error))
            if watch.refusal is not None:  # and the program's handler took it for an error of its own
                raise blamed(refused(watch.refusal), watch.frames) from watch.refusal.__cause__
            with torch._C.DisableTorchFunction():
                self.inference_modes.check()
                settings = self.world.process.left()
                mode.check()
                self.arrays.check()
                self.shared.require_apart()
                self.world.objects_apart()
                if self.known is not None and (seen := self.known.guard()) is not None:
                    self.world.require(seen, "values that Python has seen")
                self.world.keeps_none_alive()
                program = self._program(now, arguments, result, settings, run.log if self._log else None)
            if raised is not None and not (program.effects or any(state) or _runs(program)):  # nothing comes before
                raise raised
            return replace(program, raises=raised)

    def paused(self, function: object, args: object, kwargs: object) -> Any:
        """Return what the program returns if it ends before a call, or ``DECLINED``."""
        if self.splits is None or self.levels.stack:
            return DECLINED
        found = self.splits.pause(
            function, args, kwargs, self._suspended(), lambda value: self.world.source_of(value) is not None
        )
        return DECLINED if found is None else Left(found)

    def _let_go(self) -> None:
        """Keep nothing of the outside world alive any more."""
        self.world.let_go()
        self.let_go()

    def _program(
        self, now: EnvironmentGuard, arguments: ArgumentsGuard, result: object, settings: Values, log: object
    ) -> Program:
        computation, outcome = self.finish(result)
        outcome.effects += [Effect("setting", Outside(held(s, "setting")), None, value) for s, value in settings]
        return Program(
            tuple(self.inputs),
            tuple(self.world.guards),
            now,
            arguments,
            computation,
            outcome.result,
            tuple(outcome.effects),
            self.custom_functions.rules,
            tuple(self.numbers),
            log,
            unseen=self.unseen,
            path=() if self.outcomes is None else tuple(self.outcomes.met),
            exchanges=self.world.exchanges(),
            views=outcome.views,
        )


def _runs(program: Program) -> bool:
    """Whether a program that returns nothing has anything to compute."""
    return bool(dead_code_elimination(program.computation).bound_symbols)


def blamed(error: Exception, frames: tuple[Any, ...]) -> Exception:
    """Return a refusal with the frames that it went through, innermost first."""
    if isinstance(error, AcquisitionError):
        error.frames = frames
    return error


def waiting(frames: Sequence[Any]) -> tuple[tuple[CodeType, str, Any], ...]:
    """Return the code of frames, the package that it is of, and the module whose method it is, if it is one's.

    In place of the one that calls a module is what that runs.
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
            found.append((code, package, owner))
    return tuple(found)


def refused(error: ThunderError) -> Exception:
    """Return the error with the user's line, and as a kind that says what is the matter."""
    if isinstance(error, UnknownNumberError):
        return in_users_code(DataDependentError(str(error)).with_traceback(error.__traceback__))
    return in_users_code(error) if isinstance(error, AcquisitionError) else error
