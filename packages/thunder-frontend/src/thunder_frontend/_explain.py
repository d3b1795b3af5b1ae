"""``explain``: what of a callable is compiled, what runs in Python, where and why."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from thunder_frontend._compiled import CompiledFunction
from thunder_frontend._jit import compiled_function, jit
from thunder_frontend._module import ThunderModule
from thunder_frontend._report import FallbackWarning, SplitOff
from thunder_frontend.options import DEFAULT_FALLBACK


@dataclass(frozen=True, slots=True)
class Explanation:
    """What became of the calls of a callable.

    Args:
        programs: what is compiled: names, each with the number of operations of its latest program.
        split_off: what runs in Python, where and why.
        result: of the call that was explained; ``None`` where none was.
    """

    programs: tuple[tuple[str, int], ...]
    split_off: tuple[SplitOff, ...]
    result: Any = None

    @property
    def is_whole(self) -> bool:
        """Whether nothing runs in Python."""
        return not self.split_off

    def __str__(self) -> str:
        lines = [str(found) for found in self.split_off] or ["nothing runs in Python"]
        lines += [f"{name} is compiled: {count} operations" for name, count in self.programs]
        return "\n".join(lines)


def explain(fn: Callable[..., Any] | torch.nn.Module, **options: Any) -> Any:
    """Tell what of a callable is compiled, and what runs in Python, where, why and what to do about it.

    Args:
        fn: a callable or module, or what :func:`jit` returned.
        options: of :func:`jit`, where ``fn`` is not compiled yet.

    Returns:
        of something compiled, an :class:`Explanation` of the calls that were made so far; else a function of the
        arguments of ``fn``, which compiles and calls it and returns one.

    Example:
        >>> import torch
        >>> from thunder_frontend import explain
        >>> print(explain(lambda a: a + 1)(torch.ones(2)))
        nothing runs in Python
        <lambda> is compiled: 1 operations
    """
    if isinstance(fn, (CompiledFunction, ThunderModule)):
        return _explanation(compiled_function(fn))
    compiled = jit(fn, **{"fallback": DEFAULT_FALLBACK, **options})

    def explained(*args: Any, **kwargs: Any) -> Explanation:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)
            result = compiled(*args, **kwargs)
        return _explanation(compiled_function(compiled), result)

    return explained


def _explanation(compiled: CompiledFunction, result: object = None) -> Explanation:
    parts = [part for part in compiled.parts() if part.compiled]
    programs = [(part.name, len(part.compiled[-1].traces[0].bound_symbols)) for part in parts]
    return Explanation(tuple(programs), tuple(compiled.split_off()), result)
