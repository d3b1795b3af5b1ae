"""What the executor may be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

PEER = {
    "nv_enable_matmul": "matmul", "nv_enable_linear": "linear", "nv_enable_shape_only_fusion": "moves",
    "nv_enable_options": "enable", "nv_disable_options": "disable",
}  # fmt: skip
"""What Lightning Thunder calls them, as options of ``jit``."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What belongs into fusions, and how they are executed.

    Args:
        matmul: whether matrix products do.
        linear: whether linear layers do.
        random: whether draws of random numbers do: by PyTorch's generator, but other ones than PyTorch's kernels draw.
        moves: whether regions that compute nothing, and only move elements, are fusions, too.
        enable: options of nvFuser that are on, as in its ``NVFUSER_ENABLE``.
        disable: options of nvFuser that are off, as in its ``NVFUSER_DISABLE``.
    """

    matmul: bool = False
    linear: bool = False
    random: bool = False
    moves: bool = False
    enable: tuple[str, ...] = ()
    disable: tuple[str, ...] = ()

    def with_options(self, options: Mapping[str, Any]) -> Settings:
        """Return settings as options of ``jit`` change them.

        Args:
            options: by the names of :data:`PEER`.

        Example:
            >>> from thunder_executors_nvfuser.settings import Settings
            >>> Settings().with_options({"nv_enable_matmul": True, "nv_enable_options": ["fast_math"]}).enable
            ('fast_math',)
        """
        lists = ("enable", "disable")
        given = {PEER[name]: value for name, value in options.items()}
        changes: dict[str, Any] = {n: tuple(v) if n in lists else bool(v) for n, v in given.items()}
        return replace(self, **changes)


__all__ = ["PEER", "Settings"]
