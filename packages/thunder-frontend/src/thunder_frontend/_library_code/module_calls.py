"""What is interpreted in place of ``nn.Module.__call__`` and of ``torch.utils.checkpoint.checkpoint``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

FORWARD_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
HOOKS = ("_backward_hooks", "_backward_pre_hooks", *FORWARD_HOOKS)
GLOBAL_HOOKS = tuple([f"_global{name}" for name in HOOKS])
IMPLEMENTATIONS = ("_call_impl", "_compiled_call_impl")
"""What a call of a module runs: the second, if it is set, which ``Module.compile`` does."""
MODULES = torch.nn.modules.module
MODULE_CALL, MODULE_CALL_IMPL = torch.nn.Module._wrapped_call_impl, torch.nn.Module._call_impl


@dataclass(frozen=True, slots=True)
class Again:
    """A call of a module that was answered without running it."""

    result: Any


def has_hooks(module: torch.nn.Module) -> bool:
    """Whether calling a module means calling hooks, of its own or of all modules.

    Raises:
        AttributeError: as calling it does, if it lacks what its constructor made.
    """
    return any([getattr(module, h) for h in HOOKS]) or any([getattr(MODULES, h) for h in GLOBAL_HOOKS])


def may_matter(hooks: str) -> bool:
    """Whether hooks of a kind, if there are any, do something: those of the backward need gradients for that."""
    return "backward" not in hooks or torch.is_grad_enabled()


def answered(name: str) -> Callable[..., Any]:
    """Return a function that the code here calls, and which the acquisition answers."""

    def ask(*args: Any) -> Any:
        raise RuntimeError(f"{name} is called outside of an acquisition, with {args}")

    ask.__name__ = ask.__qualname__ = name
    return ask


runs_forward_alone = answered("runs_forward_alone")
"""``(module)``: whether calling a module means calling its ``forward`` and nothing else."""
begin_module = answered("begin_module")
"""``(module, args, kwargs)``: begins a call of a module, or returns :class:`Again`."""
end_module = answered("end_module")
"""``(begun, result)``: ends what :func:`begin_module` began."""
runs_forward_hooks_alone = answered("runs_forward_hooks_alone")
"""``(module)``: whether calling a module means calling its ``forward`` and hooks of its own before and after that."""
hooks_of = answered("hooks_of")
"""``(module, table)``: the hooks of a kind, each with whether it takes keyword arguments."""
enter_hooks = answered("enter_hooks")
"""``(module)``: begins a call of a module with its hooks."""
leave_hooks = answered("leave_hooks")
"""``(begun)``: ends what :func:`enter_hooks` began."""
enter_checkpoint = answered("enter_checkpoint")
"""Begins a region that is computed again in the backward program."""
leave_checkpoint = answered("leave_checkpoint")
"""``(begun)``: ends what :func:`enter_checkpoint` began."""


def call_module(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Call a module as ``nn.Module.__call__`` does."""
    run = begin_module(self, args, kwargs)
    if run.__class__ is Again:
        return run.result
    if runs_forward_alone(self):
        result = self.forward(*args, **kwargs)
    elif runs_forward_hooks_alone(self):
        result = call_with_hooks(self, args, kwargs)
    else:
        before = enter_hooks(self)
        try:
            implementation: Any = self._compiled_call_impl
            if implementation is None:
                implementation = self._call_impl
            result = implementation(*args, **kwargs)
        finally:
            leave_hooks(before)
    if run is not None:
        end_module(run, result)
    return result


def call_with_hooks(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the hooks of a module and its ``forward``, as ``nn.Module.__call__`` does."""
    for hook, takes_kwargs in hooks_of(module, "_forward_pre_hooks"):
        if takes_kwargs:
            given = hook(module, args, kwargs)
            if isinstance(given, tuple) and len(given) == 2:
                args, kwargs = given
            elif given is not None:
                expected = "None or a tuple of (new_args, new_kwargs)"
                raise RuntimeError(f"forward pre-hook must return {expected}, but got {given}.")
        else:
            given = hook(module, args)
            if given is not None:
                args = given if isinstance(given, tuple) else (given,)
    result = module.forward(*args, **kwargs)
    for hook, takes_kwargs in hooks_of(module, "_forward_hooks"):
        changed = hook(module, args, kwargs, result) if takes_kwargs else hook(module, args, result)
        if changed is not None:
            result = changed
    return result


def is_acquired() -> bool:
    """Return whether the call of this function is part of a program that is being acquired; an acquisition says yes."""
    return False


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: object = None,
    preserve_rng_state: bool = True,
    context_fn: object = None,
    determinism_check: object = None,
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Call ``function`` as ``torch.utils.checkpoint.checkpoint`` does: what it computes is not saved."""
    before = enter_checkpoint()
    try:
        return function(*args, **kwargs)
    finally:
        leave_checkpoint(before)


FUNCTIONS: frozenset[object] = frozenset({call_module, call_with_hooks, checkpoint})
"""What is interpreted here."""
