"""What is known while a call is acquired, and what lookasides do with it: how it is run stands in :mod:`_acquire`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from types import FunctionType
from typing import Any

import torch

from thunder_frontend._block_reuse.blocks import BlockReuse
from thunder_frontend._block_reuse.reusing import Recording, Run
from thunder_frontend._evaluation import Evaluation
from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_frontend._external_state.handed_over import HandedOver
from thunder_frontend._library_code.beneath_torch import Beneath
from thunder_frontend._library_code.distributed_calls import refuse_wrappers
from thunder_frontend._library_code.inference_modes import InferenceModes
from thunder_frontend._library_code.module_calls import Again, has_hooks
from thunder_frontend._library_code.torch_warnings import may_warn, unless_it_warns
from thunder_frontend._outcomes import Outcomes
from thunder_frontend._printing import Prints
from thunder_frontend._settings import Settings
from thunder_frontend._tracebacks import users_stacklevel
from thunder_guards.errors import AcquisitionError, DataDependentError, SharpEdgeError, SharpEdgeWarning
from thunder_guards.sources import Source
from thunder_interpreter import DECLINED, Left, unobserved
from thunder_ir import Symbol, is_unknown
from thunder_torch import view_argument
from thunder_torch.traits import Trait, has_trait
from thunder_tracing.tensors.known_values import ValueSpecialisation
from thunder_tracing.tensors.run_arrays import run_arrays_in
from thunder_tracing.tensors.symbolic_numbers import with_numbers
from thunder_tracing.tensors.tensor_classes import asked_for_functions
from thunder_tracing.tensors.under_settings import UnderSettings
from thunder_tracing.tracer import Tracer

TEXT = (torch.Tensor.__repr__, torch.Tensor.__format__)


class Acquiring(Tracer):
    """Everything that is known while one call is acquired.

    Args:
        settings: how it is acquired.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        dynamic = settings.dynamic
        self.external: GuardedState = GuardedState(
            self.input, self.number, self.known_input, dynamic, settings.weakly_held
        )
        symbolic = dynamic is not None and dynamic.any_numbers()
        super().__init__(
            self.external,
            settings.written,
            settings.replacements,
            symbolic,
            settings.allows_unknown,
            settings.specialised_on,
            settings.of_the_run,
        )
        self.tells = settings.tells
        self.asked_about_capture = False
        self.beneath = Beneath(lambda: self.external.mutations.version)
        self.goes_beneath = False
        self.outcomes = None if settings.path is None else Outcomes(self, settings.path, Evaluation(self))
        self._suspended: Callable[[], Any] = tuple
        self._bridge: Callable[[Any], Callable[..., Any]] | None = None
        self._is_tried: Callable[[], bool] = bool
        self.inference_modes = InferenceModes()
        self.prints = Prints(self, self.external, self.sharp)
        self.answered_by_cache: dict[Any, Any] = {}
        self.tried = False
        recording = Recording(self.external, self.builder, self.known_input, self.wrap, self.layouts)
        self._block_reuse = BlockReuse(recording, lambda: (self.changes, self.external.process.calls))

    def __call__(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Do what a torch function does."""
        return unobserved(self._done, function, args, kwargs)

    def _done(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if has_trait(function, Trait.DROPS_ONES) and len(args) in (1, 2) and isinstance(args[0], torch.Tensor):
            squeezed = self._without_ones(args[0], args[1] if len(args) == 2 else kwargs.get("dim"))
            args, kwargs = (args, kwargs) if squeezed is None else (squeezed, {})
        if self.outcomes is None:
            return self._called(function, args, kwargs)
        with self.outcomes.silent():
            try:
                return self._called(function, args, kwargs)
            except DataDependentError:
                splits = has_trait(function, Trait.SPLITS)
                args, kwargs = with_numbers(function, args, kwargs, self.number_of)
                fixed = self.outcomes.fixed((args, kwargs), self._of_known_sizes if splits else lambda tensor: tensor)
                if fixed is None:
                    raise
                return self._called(function, *fixed)

    def _without_ones(self, tensor: torch.Tensor, dim: Any) -> tuple[Any, ...] | None:
        """Return what is squeezed yet of a tensor some of whose sizes only the run tells; ``None`` if there are none.

        Whether such a size is 1 decides how many dimensions are left, so that a program holds for one answer.

        Args:
            tensor: what is squeezed.
            dim: its dimensions that are; ``None`` for all.
        """
        shape = self.value(self.traced(tensor)).shape
        dims = range(len(shape)) if dim is None else dim if isinstance(dim, (tuple, list)) else (dim,)
        if not all([isinstance(i, int) and -len(shape) <= i < len(shape) for i in dims]):
            return None
        rest = sorted({i % len(shape) for i in dims}, reverse=True)
        unknown = [i for i in rest if is_unknown(shape[i])]
        if unknown:
            self.hand_out_number()
        if not unknown or self.outcomes is None:
            return None
        for i in unknown:
            rest.remove(i)
            if shape[i] == 1:
                tensor = self._called(torch.select, (tensor, i, 0), {})
                rest = [r - (r > i) for r in rest]
        return tensor, tuple(rest)

    def _of_known_sizes(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor, or a view of all of it, with what its sizes are where only the run of the program tells."""
        assert self.outcomes is not None
        proxy = self.value(self.traced(tensor))
        if proxy.strides is not None and any(map(is_unknown, proxy.strides)):
            sizes, strides = ([*map(self.outcomes.known, numbers)] for numbers in (proxy.shape, proxy.strides))
            strided: torch.Tensor = self._called(torch.as_strided, (tensor, sizes, strides), {})
            return strided
        for dim, size in enumerate(proxy.shape):
            if is_unknown(size):
                tensor = self._called(torch.narrow, (tensor, dim, 0, self.outcomes.known(size)), {})
        return tensor

    def _called(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if may_warn(function) and function not in self.settings.interprets and not asked_for_functions(args, kwargs):
            return unless_it_warns(super().__call__, function, args, kwargs)
        result = super().__call__(function, args, kwargs)
        if function in TEXT:
            self.sharp("it makes text of a tensor, which asks the process for print options; later calls do not")
        return result

    # --- tensors ---------------------------------------------------------------------------------------------------

    def symbolic_dimensions(self, tensor: torch.Tensor, source: Source) -> frozenset[int]:
        """Return the dimensions of an input that are dynamic."""
        return frozenset() if self.settings.dynamic is None else self.settings.dynamic.dims(tensor, source)

    def under_settings(self, function: Any) -> Any:
        """Return ``function`` such that it runs as the program has set PyTorch here, if that matters to kernels."""
        settings = self.external.process.of_kernels()
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
        return HandedOver(self.external, tensor or self.value, f"{name}()").now(given)

    def check_generator(self, generator: torch.Generator) -> None:
        """Refuse a generator of random numbers that the program made: the next call would go on with it."""
        if self.external.source_of(generator) is None:
            raise AcquisitionError(
                "the program makes a torch.Generator, whose numbers would go on from call to call; "
                "make it outside and pass it"
            )

    def begin_module(
        self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Run | Again | None:
        """Answer a call of a module by what an equal one did, or begin to remember what this one does."""
        self.external.classes.lookup(type(module), "__call__")
        code: Any = getattr(getattr(type(module), "forward", None), "__code__", None)
        splits = self.settings.splits
        if splits is None or has_hooks(module) or not splits.lost.holds(code, module):
            refuse_wrappers(module)
        if (
            self.settings.log
            or self.levels.stack
            or self.specialised_on is ValueSpecialisation.ALL
            or (splits is not None and splits.lost)
        ):
            return None
        with torch._C.DisableTorchFunction():
            found = self._block_reuse.begin(module, args, kwargs)
        if found.__class__ is Again:
            self.note_try()
        return found

    def note_try(self) -> None:
        """Note whether the program might catch what is recorded here raises when it runs."""
        self.tried = self.tried or self._is_tried()

    def end_module(self, run: Run, result: object) -> None:
        """Remember what a call of a module did."""
        with torch._C.DisableTorchFunction():
            self._block_reuse.end(run, result)

    def interpreted(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` such that it runs interpreted when it is called from here."""
        assert self._bridge is not None
        return self._bridge(function)

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
        if varies and self.settings.sharp_edges is None:
            raise AcquisitionError(
                f"the program asks for what is another value on each call ({what}), and would get the same one from "
                'then on: pass the value as an argument, or allow that by sharp_edges="allow"'
            )
        message = f"the program has a sharp edge: {what}"
        if self.settings.sharp_edges == "error":
            raise SharpEdgeError(message)
        if self.settings.sharp_edges == "warn":
            warnings.warn(message, SharpEdgeWarning, stacklevel=users_stacklevel())

    def paused(self, function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the program returns if it ends before a call, or ``DECLINED``."""
        splits = self.settings.splits
        if splits is None or self.levels.stack or self.external.states.holds_locks():
            return DECLINED
        found = splits.pause(function, args, kwargs, self._suspended(), self._was_there)
        if found is None or run_arrays_in(found.values):  # whose values the program behind the call would rest on
            return DECLINED
        return Left(found)

    def _was_there(self, value: object) -> bool:
        """Whether an object was there before the program; of a function, whether it is the very same on each call."""
        if isinstance(value, FunctionType):
            return self.external.is_held(value)
        return self.external.source_of(value) is not None
