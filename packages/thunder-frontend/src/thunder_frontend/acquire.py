"""Acquisition: from a Python callable and one call's arguments to a program."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import CodeType, MappingProxyType
from typing import Any

import torch

from thunder_frontend.derivatives.backward_hooks import HookHandle, ModuleHooks, hook_tensor
from thunder_frontend.derivatives.batch_levels import Batches
from thunder_frontend.derivatives.custom_functions import CustomFunctions, rule_for_higher_derivatives
from thunder_frontend.derivatives.inner_backward import inner_backward
from thunder_frontend.derivatives.inner_gradients import autograd_grad, inner_gradients
from thunder_frontend.derivatives.outside_hooks import nobody_changes_what_is_saved
from thunder_frontend.errors import (
    AcquisitionError,
    DataDependentError,
    SharpEdgeError,
    SharpEdgeWarning,
    in_users_code,
    state_of,
)
from thunder_frontend.guards import (
    ArgumentsGuard,
    EnvironmentGuard,
    SameTensorGuard,
    ValueGuard,
    metadata_of,
)
from thunder_frontend.lookasides.beneath_torch import Beneath
from thunder_frontend.lookasides.distributed_calls import refuse_wrappers
from thunder_frontend.lookasides.lookasides import lookasides
from thunder_frontend.lookasides.module_calls import Again
from thunder_frontend.lookasides.native_code import is_of_torch, runs_natively
from thunder_frontend.lookasides.torch_warnings import asks_for_overrides, may_warn, unless_it_warns
from thunder_frontend.one_way import TAGS, Check, is_single_and_unknown
from thunder_frontend.outcome import Outcome
from thunder_frontend.outside.left_open import LeftOpen
from thunder_frontend.outside.watch import Watch, WatchOpen
from thunder_frontend.outside.world import World
from thunder_frontend.printing import Prints
from thunder_frontend.program import OWN_NAMES, Input, Program
from thunder_frontend.repeated.repeats import Repeats
from thunder_frontend.repeated.replay import Recording, Run
from thunder_frontend.sources import Source
from thunder_frontend.tensors.constants import Arrays
from thunder_frontend.tensors.examples import Examples
from thunder_frontend.tensors.histories import base_of, is_stale
from thunder_frontend.tensors.known_values import KnownValues, Looks
from thunder_frontend.tensors.layouts import Layouts
from thunder_frontend.tensors.leaves import Leaves, leaf_for_nobody
from thunder_frontend.tensors.levels import Levels
from thunder_frontend.tensors.open_numbers import NumbersMet
from thunder_frontend.tensors.overwrites import record_overwritten
from thunder_frontend.tensors.shared_memory import SharedMemory
from thunder_frontend.tensors.storage import own_storage
from thunder_frontend.tensors.symbolic import ContiguousGuard, NumberInput, opened
from thunder_frontend.tensors.tensor_classes import asks_for_functions, check_tensor
from thunder_frontend.tensors.traced_tensor import AcquisitionMode, TracedTensor
from thunder_frontend.tensors.write_calls import WriteCalls
from thunder_frontend.tracebacks import users_stacklevel
from thunder_interpreter import interpret, truth_that_raises
from thunder_ir import (
    Builder,
    NumberProxy,
    Symbol,
    TensorProxy,
    ThunderError,
    Trace,
    UnknownNumberError,
    number_proxy,
    recording,
)
from thunder_ir.passes import dead_code_elimination, keep_failures, may_fail
from thunder_torch import opaque_call, torch_language
from thunder_torch.convert import proxy_of
from thunder_torch.kernels import lacks_kernel
from thunder_torch.unknown_gradients import rules_for_unknown_sizes

T = torch.Tensor
ARGS = Source(None, "root", "args")
KWARGS = Source(None, "root", "kwargs")


class Acquisition(WriteCalls):
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
    ) -> None:
        self.left_open = left_open
        self.symbolic = left_open is not None and left_open.any_numbers()
        self.world = World(self.input, self.number, self.known_input, left_open, mortal)
        self.opens = opens or self.symbolic
        self.met_numbers = False
        self.tells = tells
        self.interprets = interprets
        self.asked_about_capture = False
        self.beneath = Beneath(lambda: self.world.journal.version)
        self.goes_beneath = False
        self.numbers: list[NumberInput] = []
        super().__init__(Builder(language=torch_language), self.known_input, replacements)
        self.builder.names.reserve(OWN_NAMES)
        self.inputs: list[Input] = []
        self.looks = looks
        self.known = None if looks is Looks.AT_NOTHING else KnownValues(lambda: self.inputs)
        self._tensors: dict[int, TracedTensor] = {}
        self._sharp_edges = sharp_edges
        examples = Examples(self.builder, self.inputs)
        self.layouts = Layouts(self, examples)
        self._bridge: Callable[[Any], Callable[..., Any]] | None = None
        self.custom_functions = CustomFunctions(self, self.interpreted)
        self.levels = Levels(self, examples.rewritten)
        self.batches = Batches(self)
        self.shared = SharedMemory(self, written)
        self._unseen: Input | None = None
        self.leaves = Leaves(self)
        self.prints = Prints(self)
        self.arrays = Arrays(self)
        self.spent: set[str] = set()
        self.answered_by_cache: dict[Any, Any] = {}
        self._repeats = Repeats(
            Recording(self.world, self.builder, self.known_input, self.wrap, self.layouts), lambda: self.changes
        )

    def __call__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a torch function does."""
        for value in args:
            if asks_for_functions(value):
                with AcquisitionMode(self):  # which is not in force while it handles a function
                    return self.interpreted(type(value).__torch_function__)(function, (type(value),), args, kwargs)
        if may_warn(function) and function not in self.interprets:
            return unless_it_warns(super().__call__, function, args, kwargs)
        return super().__call__(function, args, kwargs)

    # --- tensors ---------------------------------------------------------------------------------------------------

    def input(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        """Take in a tensor of the outside world."""
        known = self.known_input(tensor)
        if known is not None:
            self._require_same(known, source)
            return known
        with torch._C.DisableTorchFunction():
            return self._new_input(tensor, source, slot)

    def _new_input(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        if isinstance(tensor, TracedTensor):
            return tensor
        check_tensor(tensor, source)
        traced = self.shared.new(tensor, source, slot)
        self.take_in(tensor, traced)
        return traced

    def take_in(self, tensor: torch.Tensor, traced: TracedTensor) -> None:
        """Let ``traced`` stand for a tensor of the outside world."""
        self._tensors[id(tensor)] = traced
        traced.__dict__.update(tensor.__dict__)

    def known_input(self, tensor: torch.Tensor) -> TracedTensor | None:
        """Return what stands for a tensor of the outside world, if that was read before."""
        return self._tensors.get(id(tensor))

    def root(self, tensor: torch.Tensor, source: Source, slot: tuple[Any, Any] | None) -> TracedTensor:
        """Make a tensor of the outside world an input, with memory of its own."""
        proxy = proxy_of(tensor, self.builder.names.take(_input_name(source)))
        # what programs do may depend on strides, which are known of open sizes where all is laid out in order
        open_ = self.left_open is not None and tensor.is_contiguous()
        dims = self.left_open.dims(tensor, source) if open_ else frozenset()
        if dims:
            self.numbers += opened(proxy, dims, self.builder.names.fresh, source)
            self.world.require(ContiguousGuard(source), str(source), "contiguous")
        traced = self.new_traced(proxy, type(tensor))
        own_storage(traced, tensor)
        traced._input = Input(proxy, source, slot, metadata_of(tensor, dims), tensor)
        self.inputs.append(traced._input)
        return traced

    def within(self, given: Input, whole: Input) -> Input:
        """Say of an input that it is a part of the memory that another covers."""
        made = replace(given, memory=whole.proxy)
        self.inputs[:] = [made if i is given else i for i in self.inputs]
        return made

    def number(self, value: Any, source: Source) -> NumberProxy:
        """Take in a number of the outside world, and leave it open."""
        proxy = number_proxy(value, self.builder.names.take(_input_name(source)))
        self.numbers.append(NumberInput(proxy, source))
        return proxy

    def _require_same(self, known: TracedTensor, source: Source) -> None:
        first = known.source
        if str(first) != str(source):
            self.world.require(SameTensorGuard(source, first), str(source), str(first), "same tensor")

    def is_forgotten(self, tensor: TracedTensor) -> bool:
        """Whether autograd, which writes the history of a view again, finds none of what it views.

        So it is where that was written to and detached in place, or is a leaf and itself a view: autograd looks at what
        that views.
        """
        if not is_stale(tensor):
            return False
        base = base_of(tensor)
        if self.stages.was_detached(base):
            return True
        if base._leaf is not None:
            return bool(base._leaf.is_view)
        return base.given is not None and base.given.is_leaf and self.is_view(base)

    def unconnected(self, value: TensorProxy) -> TensorProxy:
        """Return ``value`` such that it requires grad, and its gradient goes nowhere."""
        if self._unseen is None:
            self._unseen = leaf_for_nobody(self.builder)
            self.inputs.append(self._unseen)
        return record_overwritten(self.builder, self._unseen.proxy, value, True)

    def ask(self, tensor: TracedTensor, name: str, value: Any, call: bool = False) -> Any:
        """Guard what PyTorch says of a tensor of the outside world, and return it."""
        source = tensor.source
        if source is not None:
            said = Source(source, "attribute", name)
            self.world.require(ValueGuard(Source(said, "call", ()) if call else said, value), str(source), name)
        return value

    def is_view(self, tensor: TracedTensor) -> bool:
        """Whether autograd takes a tensor of the outside world for a view."""
        given = tensor.given
        return given is not None and bool(self.ask(tensor, "_is_view", given._is_view(), call=True))

    def check_generator(self, generator: torch.Generator) -> None:
        """Refuse a generator of random numbers that the program made: the next call would go on with it."""
        if self.world.source_of(generator) is None:
            raise AcquisitionError(
                "the program makes a torch.Generator, whose numbers would go on from call to call; "
                "make it outside and pass it"
            )

    def hand_out_number(self) -> None:
        """Prepare for user code that holds a number which only the run of the program tells: begin again, if need be.

        Raises:
            NumbersMet: what user code does with such numbers is not looked after in this attempt.
        """
        if not self.opens:
            self.met_numbers = True
            raise NumbersMet

    def begin_module(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Run | Again | None:
        """Answer a call of a module by what an equal one did, or begin to remember what this one does."""
        self.world.classes.lookup(type(module), "__call__")
        refuse_wrappers(module)
        if self._log or self.levels.stack or self.looks is Looks.AT_ALL:
            return None
        with torch._C.DisableTorchFunction():
            return self._repeats.begin(module, args, kwargs)

    def end_module(self, run: Run, result: Any) -> None:
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

    def module_hooks(self, module: torch.nn.Module, after: Any, before: Any) -> ModuleHooks:
        """Do what PyTorch's ``BackwardHook`` does for one call of a module with backward hooks."""
        return ModuleHooks(self, self.custom_functions.rules, module, after, before)

    def hook_tensor(self, tensor: TracedTensor, hook: Callable[..., Any]) -> HookHandle:
        """Do what ``Tensor.register_hook`` does."""
        return hook_tensor(
            self, self.custom_functions.rules, tensor, hook, lambda v: self.world.source_of(v) is not None
        )

    def autograd_grad(self, outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """Do what ``torch.autograd.grad`` does where user code calls it."""
        nobody_changes_what_is_saved(self)
        return autograd_grad(self, outputs, inputs, *args, **kwargs)

    def inner_gradients(self, *args: Any, is_grads_batched: bool = False, **kwargs: Any) -> Any:
        """Record gradients, asked for as of ``torch.autograd.grad``."""
        if is_grads_batched:
            return self.batches.gradients(*args, **kwargs)
        self.changes += 1  # it depends on all that was recorded before
        rules = self.custom_functions.rules
        rule_of = rules_for_unknown_sizes(
            self.builder.bound_symbols, lambda bound: rule_for_higher_derivatives(rules, bound)
        )
        return inner_gradients(self, rule_of, *args, **kwargs)

    def inner_backward(self, *args: Any, **kwargs: Any) -> None:
        """Do what ``torch.autograd.backward`` does."""
        if self.levels.stack:
            raise AcquisitionError("backward() inside of a function that torch.func transforms is not supported")
        self.changes += 1
        nobody_changes_what_is_saved(self)
        inner_backward(self, *args, **kwargs)

    def from_outside(self) -> list[TracedTensor]:
        """Return what stands for tensors of the outside world."""
        return [*self._tensors.values(), *self.shared.wholes()]

    def branch(self, value: Any, code: CodeType, offset: int) -> Any:
        """Decide for the way on that does not just raise, and let the program check that it is the right one."""
        if not is_single_and_unknown(value):
            return NotImplemented
        raising = truth_that_raises(code, offset)
        return not raising if raising is not None and self.expect(value, not raising) else NotImplemented

    def expect(self, value: Any, truth: bool) -> bool:
        """Let the program check the truth of a value; return whether it can, where the value is used."""
        if self.levels.stack:
            return False
        with torch._C.DisableTorchFunction(), self.builder.tagged(*TAGS):
            opaque_call(Check(truth), self.value(value) if isinstance(value, TracedTensor) else value)
        return True

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
        watch = (WatchOpen if self.opens else Watch)(self.world, self.sharp, self.branch, self.arrays)
        run = interpret(
            function,
            lookasides=lookasides(self),
            callbacks=watch,
            opaque=self.runs_natively,
            log=log,
        )
        self._bridge = run.bridge
        self.builder.locate = run.location
        with ExitStack() as stack:
            stack.callback(self._let_go)
            stack.callback(self.world.journal.undo)
            stack.enter_context(recording(self.builder))
            traced_args = tuple(self.world.argument(a, Source(ARGS, "item", i)) for i, a in enumerate(args))
            traced_kwargs = {k: self.world.argument(a, Source(KWARGS, "item", k)) for k, a in kwargs.items()}
            stack.enter_context(AcquisitionMode(self))
            raised: Exception | None = None
            state: tuple[Any, dict[str, Any]] = ((), {})
            try:
                result = run(*traced_args, **traced_kwargs)
            except ThunderError as error:
                raise refused(error) from error.__cause__
            except Exception as error:  # the program's own: what it wrote before stays written
                raised, result = error, (state := state_of(error))
            if watch.refusal is not None:  # and the program's handler took it for an error of its own
                raise refused(watch.refusal) from watch.refusal.__cause__
            with torch._C.DisableTorchFunction():
                self.arrays.check()
                self.shared.require_apart()
                self.world.objects_apart()
                if self.known is not None and (seen := self.known.guard()) is not None:
                    self.world.require(seen, "values that Python has seen")
                self.world.keeps_none_alive()
                program = self._program(now, arguments, result, run.log if self._log else None)
            if raised is not None and not (program.effects or any(state) or _runs(program)):  # nothing comes before
                raise raised
            return replace(program, raises=raised)

    def _let_go(self) -> None:
        """Keep nothing of the outside world alive any more."""
        self.world.let_go()
        for traced in self._tensors.values():
            traced.__dict__.pop("_input", None)
        self._tensors.clear()
        self.inputs.clear()

    def _program(self, now: EnvironmentGuard, arguments: ArgumentsGuard, result: Any, log: Any) -> Program:
        outcome = Outcome(self, result)
        self.levels.check(outcome.proxies)
        inputs = tuple([i.proxy for i in (*self.inputs, *self.numbers)])
        names = {p.name for p in inputs}
        computation = Trace(
            "computation",
            inputs,
            tuple(self.builder.bound_symbols),
            tuple([p for p in outcome.proxies if p.name not in names]),
            tuple(self.builder.constraints),
        )
        computation = keep_failures(computation, lambda bound: may_fail(bound) or lacks_kernel(bound))
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
            exchanges=self.world.exchanges(),
        )


def _runs(program: Program) -> bool:
    """Whether a program that returns nothing has anything to compute."""
    return bool(dead_code_elimination(program.computation).bound_symbols)


def refused(error: ThunderError) -> Exception:
    """Return the error with the user's line, and as a kind that says what is the matter."""
    if isinstance(error, UnknownNumberError):
        return in_users_code(DataDependentError(str(error)).with_traceback(error.__traceback__))
    return in_users_code(error) if isinstance(error, AcquisitionError) else error


def _input_name(source: Source) -> str:
    steps = []
    here: Source | None = source
    while here is not None and here.base is not None:
        if here.key not in ("_parameters", "_buffers", "_modules", "__dict__"):
            steps.append("of_tensor" if isinstance(here.key, torch.Tensor) else str(here.key))
        here = here.base
    if here is ARGS and len(steps) == 1:
        return f"a{steps[0]}"
    return "_".join(reversed(steps)) or str(source.key)
