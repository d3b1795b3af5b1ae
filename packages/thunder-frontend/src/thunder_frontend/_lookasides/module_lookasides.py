"""What is run in place of the methods of ``nn.Module``: shortcuts past what they do in Python, which guard the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._library_code import module_calls
from thunder_frontend._library_code.module_calls import (
    FORWARD_HOOKS,
    GLOBAL_HOOKS,
    HOOKS,
    IMPLEMENTATIONS,
    MODULE_CALL,
    MODULE_CALL_IMPL,
    MODULES,
    call_module,
    has_hooks,
    may_matter,
    runs_forward_alone,
)
from thunder_frontend._lookasides.lazy_modules import INFER, infer_parameters
from thunder_guards.errors import AcquisitionError
from thunder_guards.sources import held
from thunder_interpreter import Interpreted
from thunder_tracing.derivatives.backward_hooks import ModuleHooks

OF_ALL_MODULES = held(MODULES.__dict__, MODULES.__name__)
MODULE_GETATTR = torch.nn.Module.__getattr__
BACKWARD_HOOK = torch.utils.hooks.BackwardHook
TABLES = ("_parameters", "_buffers", "_modules")
ALWAYS_CALLED, GLOBAL_ALWAYS_CALLED = "_forward_hooks_always_called", "_global_forward_hooks_always_called"
"""Where PyTorch notes hooks that it calls whatever happens."""


def forms_of_hooks(hooks: Mapping[int, Any], with_kwargs: Mapping[int, bool]) -> str:
    """Return how many hooks there are, and which of them take keyword arguments."""
    return "".join(["k" if number in with_kwargs else "a" for number in hooks])


FORMS = held(forms_of_hooks, "forms_of_hooks")


class ModuleLookasides:
    """Stands in for the methods of modules.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Acquiring) -> None:
        self._calls = calls
        self._external = calls.external

    def lookasides(self) -> dict[Any, Any]:
        """Return what is run in place of which functions."""
        return {
            MODULE_GETATTR: self._getattr,
            MODULE_CALL: Interpreted(call_module),
            runs_forward_alone: self._runs_forward_alone,
            module_calls.runs_forward_hooks_alone: self._runs_forward_hooks_alone,
            module_calls.hooks_of: self._hooks_of,
            module_calls.begin_module: self._calls.begin_module,
            module_calls.end_module: self._calls.end_module,
            module_calls.enter_hooks: self._enter_hooks,
            module_calls.leave_hooks: self._leave_hooks,
            BACKWARD_HOOK: partial(ModuleHooks, self._calls),
            INFER: infer_parameters(self._calls),
        }

    def _getattr(self, module: torch.nn.Module, name: str) -> Any:
        own = module.__dict__
        for table in TABLES:
            held_in = own.get(table)
            if held_in is not None and name in held_in:
                return self._table_item(module, table, held_in, name)
        if self._external.source_of(module) is not None:
            containers = self._external.containers
            for table in TABLES:
                if table in own:
                    containers.membership(containers.table(module, table), name, False)
        raise AttributeError(f"'{type(module).__name__}' object has no attribute '{name}'")

    def _table_item(self, module: torch.nn.Module, table: str, held_in: dict[str, Any], name: str) -> Any:
        external = self._external
        source = external.source_of(module)
        if source is None or external.mutations.written_at(held_in, "item", name) or external.mutations.wrote(held_in):
            return external.stand_ins.of(held_in[name])
        external.containers.table(module, table)
        return external.read(source, "attribute", name, held_in[name], (held_in, name))

    def _runs_forward_alone(self, module: torch.nn.Module) -> bool:
        not_full = module._backward_hooks and not module._is_full_backward_hook
        not_full = not_full or MODULES._global_backward_hooks and not MODULES._global_is_full_backward_hook
        if not_full and torch.is_grad_enabled():
            raise AcquisitionError(
                f"{type(module).__name__} has backward hooks of the old kind, which have no place in a compiled "
                "program; use register_full_backward_hook"
            )
        return not has_hooks(module) and self._is_called_plainly(module, HOOKS, GLOBAL_HOOKS)

    def _runs_forward_hooks_alone(self, module: torch.nn.Module) -> bool:
        own, changed = module.__dict__, self._external.mutations.changed
        others, of_all = [ALWAYS_CALLED, *HOOKS], [GLOBAL_ALWAYS_CALLED, *GLOBAL_HOOKS]
        for name in FORWARD_HOOKS:
            others.remove(name)
            if changed(own[name]) or changed(own[f"{name}_with_kwargs"]):
                return False
        if any([own[name] for name in others]) or any([getattr(MODULES, name) for name in of_all]):
            return False
        return self._is_called_plainly(module, others, of_all)

    def _is_called_plainly(self, module: torch.nn.Module, empty: Iterable[str], of_all: Iterable[str]) -> bool:
        """Whether PyTorch's own code calls a module, and guard that, and that there are no hooks of these kinds."""
        own, external = module.__dict__, self._external
        if any([name in own for name in IMPLEMENTATIONS]):
            return False
        if external.classes.lookup(type(module), "_call_impl") is not MODULE_CALL_IMPL:
            return False
        if external.classes.lookup(type(module), "_compiled_call_impl") is not None:
            return False
        source = external.source_of(module)
        if source is not None:
            here = held(own, f"{source}.__dict__")
            external.own_dict(module, source)
            for name in IMPLEMENTATIONS:
                external.not_shadowed(module, name)
            for name in filter(may_matter, empty):
                external.containers.empty_at(here, own, name)
            for name in filter(may_matter, of_all):
                external.containers.empty_at(OF_ALL_MODULES, OF_ALL_MODULES.held, name)
        return True

    def _hooks_of(self, module: torch.nn.Module, table: str) -> list[tuple[Any, bool]]:
        """Guard hooks by their order: the number by which PyTorch knows one is another whenever it is registered."""
        external = self._external
        names = table, f"{table}_with_kwargs"
        hooks, with_kwargs = [module.__dict__[name] for name in names]
        if external.source_of(module) is not None:
            found = [external.source_of(external.containers.table(module, name)) for name in names]
            sources = [source for source in found if source is not None]
            external.read(FORMS, "call", tuple(sources), forms_of_hooks(hooks, with_kwargs))
            for index, hook in enumerate(hooks.values()):
                external.read(sources[0], "value", index, hook)
        return [(hook, number in with_kwargs) for number, hook in hooks.items()]

    def _enter_hooks(self, module: torch.nn.Module) -> bool:
        """PyTorch leaves out hooks that run whatever happens if it is told that something captures the program."""
        before: bool = self._calls.tells
        if module._forward_hooks_always_called or MODULES._global_forward_hooks_always_called:
            self._calls.tells = False
        return before

    def _leave_hooks(self, before: bool) -> None:
        self._calls.tells = before
