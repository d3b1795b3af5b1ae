"""What is interpreted in place of ``nn.Module.__call__`` and of ``torch.utils.checkpoint.checkpoint``."""

from __future__ import annotations

from typing import Any

import torch


def runs_forward_alone(module: torch.nn.Module) -> bool:
    """Whether calling a module means calling its ``forward`` and nothing else; the acquisition answers."""
    raise RuntimeError(f"{type(module).__name__} is called outside of an acquisition")


def call_module(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    """Call a module as ``nn.Module.__call__`` does."""
    if runs_forward_alone(self):
        return self.forward(*args, **kwargs)
    return self._call_impl(*args, **kwargs)


def enter_checkpoint() -> Any:
    """Begin a region that is computed again in the backward program; the acquisition answers."""
    raise RuntimeError("a checkpoint is entered outside of an acquisition")


def leave_checkpoint(before: Any) -> None:
    """End the region that :func:`enter_checkpoint` began; the acquisition answers."""
    raise RuntimeError(f"a checkpoint is left outside of an acquisition ({before})")


def checkpoint(
    function: Any,
    *args: Any,
    use_reentrant: Any = None,
    preserve_rng_state: bool = True,
    context_fn: Any = None,
    determinism_check: Any = None,
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
