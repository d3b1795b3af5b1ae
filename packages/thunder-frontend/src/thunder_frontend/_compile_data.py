"""What a compiled function was made of, by the names that users of ``thunder.compile_data`` know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from thunder_executors import resolve_executors
from thunder_frontend.options import DebugOptions, Options


class CompileData:
    """What is compiled, and how.

    Args:
        function: what is compiled.
        options: how.
    """

    function: Callable[..., Any]
    options: Options

    @property
    def fn(self) -> Callable[..., Any]:
        """What is compiled."""
        return self.function

    @property
    def is_module(self) -> bool:
        """Whether that is a module."""
        return isinstance(self.function, torch.nn.Module)

    @property
    def executors_list(self) -> Sequence[Any]:
        """The executors, in order of priority."""
        return resolve_executors(self.options.executors)

    @property
    def cache_option(self) -> str:
        """How calls are told apart."""
        return self.options.cache

    @property
    def sharp_edges(self) -> str | None:
        """What is done about effects that a compiled program does not repeat."""
        return self.options.sharp_edges

    @property
    def disable_torch_autograd_support(self) -> bool:
        """Whether autograd knows nothing of what is returned."""
        return not self.options.differentiate

    @property
    def transforms(self) -> Sequence[Any]:
        """The transforms that are applied."""
        return self.options.transforms

    @property
    def compile_options(self) -> Mapping[str, Any]:
        """The options that were given beyond the named ones."""
        return self.options.extra

    @property
    def debug_options(self) -> DebugOptions:
        """What is checked, kept and shown."""
        return self.options.debug
