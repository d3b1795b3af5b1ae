"""Callables that run others in a state of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_torch.names import name_of


class Around:
    """A callable that runs another one in a state of its own, and is called and fails as that one."""

    function: Callable[..., Any]

    @property
    def __name__(self) -> str:
        return name_of(self.function)
