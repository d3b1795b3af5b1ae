"""What the interpreter does not interpret: PyTorch's own code, and the shortcuts through ``nn.Module``."""

from __future__ import annotations

import functools
import logging
import types
from typing import Any

import torch
import torch.utils.checkpoint
from torch.optim.optimizer import _get_value
from torch.utils._python_dispatch import _push_mode

from thunder_frontend import module_calls, transformer_encoders
from thunder_frontend.branches import Branches
from thunder_frontend.control_flow import OPERATORS, WHILE_LOOP, choose
from thunder_frontend.errors import AcquisitionError
from thunder_frontend.foreach import of_lists
from thunder_frontend.kinds import VALUES
from thunder_frontend.lazy_modules import INFER, infer_parameters
from thunder_frontend.metadata_calls import reduced
from thunder_frontend.module_calls import GLOBAL_HOOKS, HOOKS, MODULES, call_module, has_hooks, runs_forward_alone
from thunder_frontend.open_numbers import open_number_lookasides
from thunder_frontend.other_transforms import (
    compiled_by_torch,
    leave_uncompiled,
    transforms,
)
from thunder_frontend.queries import as_positional
from thunder_frontend.seeds import Seeds
from thunder_frontend.sources import held
from thunder_interpreter import Interpreted
from thunder_ir import Symbol

OF_ALL_MODULES = held(MODULES.__dict__, MODULES.__name__)
MODULE_GETATTR, MODULE_CALL = torch.nn.Module.__getattr__, torch.nn.Module._wrapped_call_impl
MODULE_CALL_IMPL = torch.nn.Module._call_impl
CHECKPOINT, BACKWARD_HOOK = torch.utils.checkpoint.checkpoint, torch.utils.hooks.BackwardHook
RECORD_FUNCTION = torch.autograd.profiler.record_function
AUTOGRAD_GRAD, AUTOGRAD_BACKWARD = torch.autograd.grad, torch.autograd.backward
FUNCTION_APPLY, TORCH_COMPILE = torch.autograd.Function.apply.__func__, torch.compile


def lookasides(acquisition: Any) -> list[Any]:
    """Return what is run in place of which callables."""
    world = acquisition.world

    def module_getattr(self: torch.nn.Module, name: str) -> Any:
        own = self.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            held_in = own.get(table)
            if held_in is not None and name in held_in:
                return table_item(self, table, held_in, name)
        source = world.source_of(self)
        if source is not None:
            for table in ("_parameters", "_buffers", "_modules"):
                if table in own:
                    world.containers.membership(world.containers.table(self, table), name, False)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def table_item(self: torch.nn.Module, table: str, held_in: dict[str, Any], name: str) -> Any:
        source = world.source_of(self)
        if source is None:
            return held_in[name]
        if world.journal.written_at(held_in, "item", name) or world.journal.wrote(held_in):
            return held_in[name]
        world.containers.table(self, table)
        return world.read(source, "attribute", name, held_in[name], (held_in, name))

    def no_hooks(self: torch.nn.Module) -> bool:
        own = self.__dict__
        not_full = own["_backward_hooks"] and not own["_is_full_backward_hook"]
        not_full = not_full or MODULES._global_backward_hooks and not MODULES._global_is_full_backward_hook
        if not_full and torch.is_grad_enabled():
            raise AcquisitionError(
                f"{type(self).__name__} has backward hooks of the old kind, which have no place in a compiled program; "
                "use register_full_backward_hook"
            )
        if has_hooks(self):
            return False
        if world.classes.lookup(type(self), "_call_impl") is not MODULE_CALL_IMPL:
            return False
        source = world.source_of(self)
        if source is not None and not own.get("_compiled_call_impl"):
            here = held(own, f"{source}.__dict__")
            world.own_dict(self, source)
            for name in HOOKS:
                world.containers.empty_at(here, own, name)
            for name in GLOBAL_HOOKS:
                world.containers.empty_at(OF_ALL_MODULES, OF_ALL_MODULES.held, name)
        return True

    def number_of_steps(step: Any) -> Any:
        """Return the number of steps of an optimizer in the precision of Python's numbers, which eager makes of it."""
        if not isinstance(step, torch.Tensor):
            return step
        with torch._C.DisableTorchFunction():
            return acquisition(torch.Tensor.to, (step, torch.float64), {})

    def autograd_backward(
        tensors: Any,
        grad_tensors: Any = None,
        retain_graph: Any = None,
        create_graph: bool = False,
        *rest: Any,
        **kwargs: Any,
    ) -> None:
        acquisition.inner_backward(tensors, grad_tensors, retain_graph, create_graph, kwargs.get("inputs"))

    def no_saved_tensors_hooks(self: Any, *exception: Any) -> Any:
        if isinstance(self, torch.autograd.graph.save_on_cpu):  # it changes where values are kept, and no value
            return None
        raise AcquisitionError(
            "saved_tensors_hooks inside of a compiled program are not called, for the program itself decides what to "
            "save; enter them around the call of the compiled function"
        )

    def no_dispatch_modes(mode: Any) -> None:
        raise AcquisitionError(
            f"{type(mode).__name__}, a TorchDispatchMode, inside of a compiled program would not see the "
            "operations that its calls run; enter it around the call of the compiled function"
        )

    def compiling() -> bool:
        """Answer libraries that ask whether their program is being captured as a whole."""
        acquisition.asked_about_capture = True
        return acquisition.tells  # type: ignore[no-any-return]

    def enter_hooks(self: torch.nn.Module) -> bool:
        """PyTorch leaves out hooks that run whatever happens if it is told that something captures the program."""
        before = acquisition.tells
        if self._forward_hooks_always_called or MODULES._global_forward_hooks_always_called:
            acquisition.tells = False
        return before  # type: ignore[no-any-return]

    def leave_hooks(before: bool) -> None:
        acquisition.tells = before

    branches, seeds = Branches(acquisition), Seeds(acquisition)
    table: dict[Any, Any] = {
        MODULE_GETATTR: module_getattr,
        MODULE_CALL: Interpreted(call_module),
        runs_forward_alone: no_hooks,
        module_calls.begin_module: acquisition.begin_module,
        module_calls.end_module: acquisition.end_module,
        CHECKPOINT: Interpreted(module_calls.checkpoint),
        module_calls.enter_checkpoint: acquisition.enter_checkpoint,
        module_calls.leave_checkpoint: acquisition.leave_checkpoint,
        logging.LogRecord: logging.LogRecord,  # the time in it is nothing that programs compute with
        FUNCTION_APPLY: acquisition.custom_functions.apply,
        AUTOGRAD_GRAD: acquisition.inner_gradients,
        torch.autograd.graph.saved_tensors_hooks.__enter__: no_saved_tensors_hooks,
        torch.autograd.graph.saved_tensors_hooks.__exit__: no_saved_tensors_hooks,
        _push_mode: no_dispatch_modes,
        BACKWARD_HOOK: acquisition.module_hooks,
        RECORD_FUNCTION.__enter__: lambda self: self,  # what happens when a program is acquired is not its profile
        RECORD_FUNCTION.__exit__: lambda self, *exception: None,
        AUTOGRAD_BACKWARD: autograd_backward,
        _get_value: number_of_steps,
        torch.Tensor._make_subclass: acquisition.as_class,
        torch.nn.Parameter.__reduce_ex__: lambda self, protocol: reduced(acquisition, self, protocol),
        torch.compiler.is_compiling: compiling,
        torch.compiler.is_dynamo_compiling: compiling,
        module_calls.is_acquired: lambda: True,
        module_calls.enter_hooks: enter_hooks,
        module_calls.leave_hooks: leave_hooks,
        INFER: infer_parameters(acquisition),
        TORCH_COMPILE: leave_uncompiled,
        transformer_encoders.ORIGINAL_QUESTION: transformer_encoders.is_causal_mask,
        transformer_encoders.ORIGINAL_FORWARD: Interpreted(transformer_encoders.encode),
        print: acquisition.prints,
        **transforms(acquisition),
        **seeds.lookasides(),
        **OPERATORS,
        choose: branches.cond,
        WHILE_LOOP: branches.while_loop,
    }

    def operator_in_place_of(function: Any) -> Any:
        return lambda *args, **kwargs: acquisition.symbol_call(acquisition.replacements[function], args, kwargs)

    table.update({f: operator_in_place_of(f) for f in acquisition.replacements if isinstance(f, types.FunctionType)})
    if acquisition.opens:
        table.update(open_number_lookasides(acquisition))

    def symbols(function: Any) -> Any:
        if not isinstance(function, Symbol):
            return None
        return lambda *args, **kwargs: acquisition.symbol_call(function, args, kwargs)

    def compiled_before(function: Any) -> Any:
        compiles = getattr(type(function), "compiles", None)
        inner = compiles(function) if compiles is not None else compiled_by_torch(function)
        if inner is None:
            return None
        if world.source_of(function) is not None:
            world.hold(inner, getattr(function, "__name__", "compiled"))
        return Interpreted(inner)

    def cached_call(function: Any) -> Any:
        """A function with a cache answers from its cache, by tensors that are none of this program's."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if not all(isinstance(a, VALUES) or world.is_held(a) for a in (*args, *kwargs.values())):
                return acquisition.interpreted(function.__wrapped__)(*args, **kwargs)
            with torch._C.DisableTorchFunction():
                answer = function(*args, **kwargs)
            return world.answers.result_of(as_positional(function, kwargs), args, answer)

        return called

    def cached_before(function: Any) -> Any:
        return cached_call(function) if type(function) is functools._lru_cache_wrapper else None

    def lists_of_tensors(function: Any) -> Any:
        return of_lists(acquisition, function)

    return [table, symbols, compiled_before, cached_before, lists_of_tensors]
