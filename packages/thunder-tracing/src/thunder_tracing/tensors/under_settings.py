"""Operations that run under settings of PyTorch which the program made before it called them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thunder_guards.settings import Setting
from thunder_torch.around import Around


@dataclass(frozen=True)
class UnderSettings(Around):
    """A callable that runs under settings which held where it was traced.

    Args:
        function: what runs.
        settings: each with what it is set to.
    """

    function: Callable[..., Any]
    settings: tuple[tuple[Setting, Any], ...]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before = [(setting, setting.now()) for setting, _ in self.settings]
        try:
            for setting, value in self.settings:
                setting.set(value)
            return self.function(*args, **kwargs)
        finally:
            for setting, value in before:
                setting.set(value)
