"""What is run in place of which callables while a program is acquired."""

from __future__ import annotations

import functools
import types
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.checkpoint
from torch.optim.optimizer import _get_value
from torch.overrides import TorchFunctionMode
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import _push_mode

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._library_code import in_python, module_calls
from thunder_frontend._library_code.beneath_torch import is_replaced
from thunder_frontend._library_code.control_flow import OPERATORS, WHILE_LOOP, choose, without_index_mode
from thunder_frontend._library_code.distributed_calls import COLLECTIVES
from thunder_frontend._library_code.other_compilers import compiled_by_torch, leave_uncompiled, why_as_it_is
from thunder_frontend._lookasides import transformer_encoders
from thunder_frontend._lookasides.branches import Branches
from thunder_frontend._lookasides.cached_functions import with_cache
from thunder_frontend._lookasides.checks import checks
from thunder_frontend._lookasides.clocks import clocks
from thunder_frontend._lookasides.draws import Draws
from thunder_frontend._lookasides.identities import identities
from thunder_frontend._lookasides.in_place import IN_PLACE
from thunder_frontend._lookasides.module_lookasides import ModuleLookasides
from thunder_frontend._lookasides.old_constructors import of_old_constructors
from thunder_frontend._lookasides.other_transforms import transforms
from thunder_frontend._lookasides.own_operations import in_place_of, own_operation
from thunder_frontend._lookasides.seeds import Seeds
from thunder_frontend._lookasides.symbolic_numbers import SymbolicNumbers, ufunc_of_numbers
from thunder_frontend._torch_versions import FUNCTION_APPLY
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import held_by_class
from thunder_guards.own_code import package_of
from thunder_guards.sources import Source
from thunder_interpreter import DECLINED, Interpreted
from thunder_tracing.tensors.constants import variable
from thunder_tracing.tensors.foreach import of_lists
from thunder_tracing.tensors.metadata_calls import reduced

CHECKPOINT, SAVED_TENSORS_HOOKS = torch.utils.checkpoint.checkpoint, torch.autograd.graph.saved_tensors_hooks
RECORD_FUNCTION = torch.autograd.profiler.record_function
PROFILERS = (
    torch.profiler.profile.__enter__, torch.profiler.profile.start, torch.profiler._KinetoProfile.start,  # type: ignore[attr-defined]
    torch.autograd.profiler.profile.__enter__, torch.autograd.profiler.emit_nvtx.__enter__,
    torch.autograd.profiler.emit_itt.__enter__,
)  # fmt: skip
ASK_FOR_OVERRIDES = (
    torch._C._has_torch_function, torch._C._has_torch_function_unary, torch._C._has_torch_function_variadic,
)  # fmt: skip
ENTER_FUNCTION_MODE = TorchFunctionMode.__enter__
AUTOGRAD_GRAD, AUTOGRAD_BACKWARD = torch.autograd.grad, torch.autograd.backward
L1_LOSS = torch.nn.functional.l1_loss
TORCH_COMPILE = torch.compile


def lookasides(acquisition: Acquiring) -> list[Any]:
    """Return what is run in place of which callables.

    Args:
        acquisition: does what they do in a program.

    Returns:
        a table of replacements, and functions that return the replacement of a callable that is not in it, or ``None``.
    """
    seeds, draws = Seeds(acquisition), Draws(acquisition)
    table = {
        **(_of_symbolic_numbers(acquisition) if acquisition.allows_unknown else {}),
        **ModuleLookasides(acquisition).lookasides(),
        **_of_autograd(acquisition),
        **_of_capture(acquisition),
        **_of_overrides(acquisition),
        **checks(acquisition),
        **_of_single_functions(acquisition),
        **of_old_constructors(acquisition),
        **transforms(acquisition),
        **seeds.lookasides(),
        **draws.lookasides(),
        **clocks(acquisition),
        **acquisition.inference_modes.lookasides(),
        **identities(acquisition),
        **_of_control_flow(acquisition),
        **_of_executors(acquisition),
        **COLLECTIVES,
        **IN_PLACE,
    }
    return [
        table,
        seeds.of_wrapper,
        draws.of_numpys,
        *[
            functools.partial(p, acquisition)
            for p in (
                _left_as_it_is,
                _cannot_be_held,
                own_operation,
                _compiled_before,
                with_cache,
                of_lists,
                _handed_on,
                without_index_mode,
                ufunc_of_numbers,
            )
        ],
    ]


def _of_symbolic_numbers(acquisition: Acquiring) -> dict[Any, Any]:
    table = SymbolicNumbers(acquisition).lookasides()
    return table | {function: _with_all_arguments(acquisition, function) for function in table if is_replaced(function)}


def _of_autograd(acquisition: Acquiring) -> dict[Any, Any]:
    def backward(
        tensors: Any,
        grad_tensors: Any = None,
        retain_graph: Any = None,
        create_graph: bool = False,
        *rest: Any,
        **kwargs: Any,
    ) -> None:
        acquisition.inner_backward(tensors, grad_tensors, retain_graph, create_graph, kwargs.get("inputs"))

    return {
        AUTOGRAD_GRAD: acquisition.autograd_grad,
        AUTOGRAD_BACKWARD: backward,
        FUNCTION_APPLY: acquisition.custom_functions.apply,
        SAVED_TENSORS_HOOKS.__enter__: _no_saved_tensors_hooks,
        SAVED_TENSORS_HOOKS.__exit__: _no_saved_tensors_hooks,
        CHECKPOINT: Interpreted(module_calls.checkpoint),
        module_calls.enter_checkpoint: acquisition.enter_checkpoint,
        module_calls.leave_checkpoint: acquisition.leave_checkpoint,
    }


def _no_saved_tensors_hooks(hooks: object, *exception: Any) -> None:
    if not isinstance(hooks, torch.autograd.graph.save_on_cpu):  # which changes where values are kept, and no value
        raise AcquisitionError(
            "saved_tensors_hooks inside of a compiled program are not called, for the program itself decides what to "
            "save; enter them around the call of the compiled function"
        )


def _of_capture(acquisition: Acquiring) -> dict[Any, Any]:
    """What libraries ask, and ask for, where something captures or compiles their program as a whole."""

    def compiling() -> bool:
        acquisition.asked_about_capture = True
        return acquisition.tells

    return {
        torch.compiler.is_compiling: compiling,
        torch.compiler.is_dynamo_compiling: compiling,
        module_calls.is_acquired: lambda: True,
        TORCH_COMPILE: leave_uncompiled,
        _push_mode: _no_dispatch_modes,
        ENTER_FUNCTION_MODE: _devices_only,
        RECORD_FUNCTION.__enter__: lambda self: self,  # what happens when a program is acquired is not its profile
        RECORD_FUNCTION.__exit__: lambda self, *exception: None,
        **dict.fromkeys(PROFILERS, _no_profilers),
    }


def _of_overrides(acquisition: Acquiring) -> dict[Any, Any]:
    """Whether operations are another's: code of PyTorch's that is interpreted is to go its way on plain tensors.

    It is interpreted where user code replaced what it calls.
    """

    def answer(original: Callable[..., Any]) -> Any:
        return lambda *args: not acquisition.goes_beneath and original(*args)

    return {f: answer(f) for f in ASK_FOR_OVERRIDES}


def _no_profilers(profiler: object) -> None:
    raise AcquisitionError(
        f"{type(profiler).__name__}, started inside of a compiled program, would profile how it is acquired; start it "
        "around the call of the compiled function"
    )


def _no_dispatch_modes(mode: object) -> None:
    raise AcquisitionError(
        f"{type(mode).__name__}, a TorchDispatchMode, inside of a compiled program would not see the "
        "operations that its calls run; enter it around the call of the compiled function"
    )


def _devices_only(mode: TorchFunctionMode) -> TorchFunctionMode:
    if not isinstance(mode, DeviceContext):
        raise AcquisitionError(
            f"{type(mode).__name__}, a TorchFunctionMode, inside of a compiled program would be called as it is "
            "acquired, and not on later calls; call what it does by name"
        )
    return ENTER_FUNCTION_MODE(mode)  # type: ignore[no-any-return, no-untyped-call]


def _of_single_functions(acquisition: Acquiring) -> dict[Any, Any]:
    def number_of_steps(step: float | torch.Tensor) -> Any:
        """Return the number of steps of an optimizer in the precision of Python's numbers, which eager makes of it."""
        if not isinstance(step, torch.Tensor):
            return step
        with torch._C.DisableTorchFunction():
            return acquisition(torch.Tensor.to, (step, torch.float64), {})

    return {
        _get_value: number_of_steps,
        torch.Tensor._make_subclass: acquisition.as_class,
        torch.Tensor.as_subclass: acquisition.as_subclass,
        torch.nn.Parameter.__reduce_ex__: lambda self, protocol: reduced(acquisition, self, protocol),
        transformer_encoders.ORIGINAL_QUESTION: transformer_encoders.is_causal_mask,
        transformer_encoders.ORIGINAL_FORWARD: Interpreted(transformer_encoders.encode),
        functools.reduce: Interpreted(in_python.reduce),
        print: acquisition.prints,
        in_python.bound: types.MethodType,
        in_python.remade: in_python.remade,
        warnings.warn_explicit: acquisition.prints.warn,
        **acquisition.prints.to_streams(),
        torch.autograd.Variable: functools.partial(variable, acquisition),
    }


def _of_control_flow(acquisition: Acquiring) -> dict[Any, Any]:
    branches = Branches(acquisition)
    return {**OPERATORS, choose: branches.cond, WHILE_LOOP: branches.while_loop}


def _of_executors(acquisition: Acquiring) -> dict[Any, Any]:
    """What executors replace of functions written in Python."""
    replaced = acquisition.replacements.items()
    return {f: in_place_of(acquisition, symbol) for f, symbol in replaced if isinstance(f, types.FunctionType)}


def _left_as_it_is(acquisition: Acquiring, function: Any) -> Any:
    """Return what ends the program before a call that is made as it is, as :func:`why_as_it_is` says."""
    splits = acquisition.settings.splits
    reason = why_as_it_is(function) if splits is not None else None
    if splits is None or reason is None:
        return None
    inner = function._torchdynamo_orig_callable

    def call(*args: Any, **kwargs: Any) -> Any:
        found = acquisition.paused(function, args, kwargs)
        if found is DECLINED:  # code in C waits for it
            return acquisition.interpreted(inner)(*args, **kwargs)
        splits.report.asked_for(inner.__qualname__, reason)
        return found

    return call


def _cannot_be_held(acquisition: Acquiring, function: Any) -> Any:
    """Return what ends the program before a call of a function whose frame no program can hold."""
    splits = acquisition.settings.splits
    if splits is None or type(function) is not types.FunctionType or function.__code__ not in splits.lost:
        return None
    code = function.__code__

    def call(*args: Any, **kwargs: Any) -> Any:
        lost = splits.lost.holds(code, next(iter(args), None))
        return acquisition.paused(function, args, kwargs) if lost else DECLINED

    return call


def _handed_on(acquisition: Acquiring, function: Any) -> Any:
    """Return what a call of PyTorch's own function does where what is handed on to tensors is not that call.

    User code replaced it, and it is found no more, as other code kept it; or PyTorch hands on only a part.
    """
    loses = function is L1_LOSS and function not in acquisition.settings.interprets  # PyTorch hands on no weights
    return _with_all_arguments(acquisition, function) if loses or is_replaced(function) else None


def _with_all_arguments(acquisition: Acquiring, function: Any) -> Any:
    """Return what a call of one of PyTorch's functions does, whatever of it PyTorch would hand on to tensors."""

    def called(*args: Any, **kwargs: Any) -> Any:
        with torch._C.DisableTorchFunction():
            return acquisition(function, args, kwargs)

    return called


def _compiled_before(acquisition: Acquiring, function: Any) -> Any:
    """Return what a function was compiled from, by Thunder or by PyTorch: it becomes part of this program."""
    compiles = held_by_class(type(function), "compiles")
    ours = type(compiles) is types.FunctionType and package_of(compiles.__module__) == "thunder_frontend"
    inner = compiles(function) if ours else compiled_by_torch(function)
    if inner is None:
        return None
    external, source = acquisition.external, acquisition.external.source_of(function)
    if source is not None and ours and isinstance(inner, types.MethodType):  # read again it is another
        external.read(source, "attribute", "__self__", inner.__self__)
        external.read(Source(source, "attribute", "__func__"), "attribute", "function", inner.__func__)
    elif external.stays(function):
        external.hold(inner, getattr(function, "__name__", "compiled"))
    return Interpreted(inner)
