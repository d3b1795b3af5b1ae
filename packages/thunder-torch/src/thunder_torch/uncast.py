"""Autocast is switched off where a program runs: what it casts is part of the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

AUTOCAST_DEVICES = ("cpu", "cuda")
"""Types of devices whose autocast programs know of."""


def casting() -> list[str]:
    """Return the types of devices for which autocast is on."""
    return [kind for kind in AUTOCAST_DEVICES if torch.is_autocast_enabled(kind)]


@contextmanager
def without_autocast() -> Iterator[None]:
    """Switch autocast off for a while."""
    kinds = casting()
    for kind in kinds:
        torch.set_autocast_enabled(kind, False)
    try:
        yield
    finally:
        for kind in kinds:
            torch.set_autocast_enabled(kind, True)


def uncast(run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run`` such that autocast casts nothing in it, whoever calls it.

    Args:
        run: a program, such as the backward one, which may be called under another state of autocast than the forward
            one was.

    Example:
        >>> import torch
        >>> from thunder_torch.uncast import uncast
        >>> a = torch.ones(2, 2)
        >>> with torch.autocast("cpu", torch.bfloat16):
        ...     torch.mm(a, a).dtype, uncast(torch.mm)(a, a).dtype
        (torch.bfloat16, torch.float32)
    """

    is_enabled = torch.is_autocast_enabled

    def run_uncast(*arguments: Any) -> Any:
        if not (is_enabled("cpu") or is_enabled("cuda")):  # as casting() asks, in the time of a small operation less
            return run(*arguments)
        with without_autocast():
            return run(*arguments)

    return run_uncast
