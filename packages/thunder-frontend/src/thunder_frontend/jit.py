"""``jit`` and what can be asked of what it returns."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_frontend.compiled import CompiledFunction
from thunder_frontend.module import ThunderModule
from thunder_frontend.options import Options
from thunder_frontend.pipeline import Compiled
from thunder_frontend.stats import CompileStats
from thunder_interpreter import Log
from thunder_ir import Trace
from thunder_torch import find_symbol
from thunder_torch.names import path_of


def jit(
    fn: Callable[..., Any] | torch.nn.Module | None = None,
    /,
    *,
    langctx: Any = None,
    executors: Sequence[Any] | None = None,
    sharp_edges: str | None = None,
    cache: str | None = None,
    disable_torch_autograd: bool = False,
    transforms: Sequence[Any] | None = None,
    debug_options: Any = None,
    **compile_options: Any,
) -> Any:
    """Compile a callable or a module, just in time: for each kind of call a program is acquired, once.

    Args:
        fn: a function, method, callable object or ``nn.Module``. Without it, a decorator is returned.
        langctx: accepted for compatibility; programs speak the torch language.
        executors: executors or their names in order of priority; ``"+name"`` puts one before the defaults.
        sharp_edges: ``"allow"``, ``"warn"`` or ``"error"``: what to do about effects that happen while a program is
            acquired and not on later calls, such as ``print``. Without it they are allowed, but a value that would be
            another one on each call, such as the time or a random number of Python's or NumPy's, is refused.
        cache: ``"constant values"`` (default), ``"symbolic values"``, ``"same input"`` or ``"no caching"``.
        disable_torch_autograd: return tensors that autograd knows nothing of.
        transforms: instances of :class:`thunder_frontend.Transform`, applied in order.
        debug_options: accepted for compatibility.
        compile_options: ``check``, ``memory_budget``, ``partition``, ``log``; unknown ones warn by name.

    Returns:
        A callable of the same signature; for a module, a :class:`~thunder_frontend.ThunderModule`.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit, last_traces
        >>> compiled = jit(lambda a, b: a + b * 2)
        >>> compiled(torch.ones(2), torch.ones(2))
        tensor([3., 3.])
    """
    if fn is None:
        return functools.partial(
            jit, langctx=langctx, executors=executors, sharp_edges=sharp_edges, cache=cache,
            disable_torch_autograd=disable_torch_autograd, transforms=transforms, debug_options=debug_options,
            **compile_options,
        )  # fmt: skip
    options = Options(
        executors,
        getattr(sharp_edges, "value", sharp_edges),
        getattr(cache, "value", cache) or "constant values",
        tuple(transforms or ()),
        not disable_torch_autograd,
        compile_options,
    )
    if isinstance(fn, ThunderModule):
        fn = fn._thunder_original
    if isinstance(fn, CompiledFunction):
        fn = fn.function
    if isinstance(fn, torch.nn.Module):
        return ThunderModule(fn, options)
    if not callable(fn):
        raise TypeError(f"thunder.jit compiles callables and modules, and this is a {type(fn).__name__}")
    return CompiledFunction(fn, options)


def compiled_function(fn: Any) -> CompiledFunction:
    """Return the compiled function behind what :func:`jit` returned.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
    """
    if isinstance(fn, ThunderModule):
        return fn._thunder_compiled
    if isinstance(fn, CompiledFunction):
        return fn
    raise TypeError(f"{fn!r} was not made by thunder.jit")


def _last(fn: Any) -> Compiled:
    compiled = compiled_function(fn).compiled
    if not compiled:
        raise RuntimeError(f"{fn!r} was not called yet, so nothing is compiled")
    return compiled[-1]


def last_traces(fn: Any) -> list[Trace]:
    """Return the stages of the computation (its forward part) of the specialisation compiled last, first to last."""
    return _last(fn).traces


def last_backward_traces(fn: Any) -> list[Trace]:
    """Return the stages of the backward program of the specialisation compiled last; empty without one."""
    return _last(fn).backward_traces


def last_prologue_traces(fn: Any) -> list[Any]:
    """Return the prologue of the specialisation compiled last: what it guards, and how it unpacks the arguments."""
    return [_last(fn).specialisation.prologue]


def last_epilogue_traces(fn: Any) -> list[Any]:
    """Return the epilogue of the specialisation compiled last: its writes to the outside world, and the result."""
    return [_last(fn).specialisation.epilogue]


def cache_misses(fn: Any) -> int:
    """Return how many calls compiled a specialisation."""
    return compiled_function(fn).stats.cache_misses


def cache_hits(fn: Any) -> int:
    """Return how many calls were served by a specialisation compiled earlier."""
    return compiled_function(fn).stats.cache_hits


def compile_data(fn: Any) -> CompiledFunction:
    """Return the compiled function: its options, specialisations and statistics."""
    return compiled_function(fn)


def compile_stats(fn: Any) -> CompileStats:
    """Return counts, and CPU seconds by phase for each specialisation."""
    return compiled_function(fn).stats


def last_compile_options(fn: Any) -> dict[str, Any]:
    """Return the options that were given beyond the named ones."""
    return dict(compiled_function(fn).options.extra)


def list_transforms(fn: Any) -> list[Any]:
    """Return the transforms that are applied."""
    return list(compiled_function(fn).options.transforms)


def last_interpreter_log(fn: Any) -> Log:
    """Return what the interpreter ran and called for the specialisation compiled last; ``str`` of it is the text.

    Raises:
        RuntimeError: no log was kept, since ``jit`` was not asked to with ``log=True``.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit, last_interpreter_log
        >>> compiled = jit(torch.nn.Sequential(torch.nn.ReLU()), log=True)
        >>> _ = compiled(torch.ones(2))
        >>> "torch.nn.modules.activation.ReLU.forward" in str(last_interpreter_log(compiled))
        True
    """
    log = _last(fn).program.log
    if log is None:
        raise RuntimeError("the interpreter kept no log; ask for one with thunder.jit(fn, log=True)")
    return log


def print_last_interpreter_log(fn: Any, /, print_fn: Callable[[str], Any] = print) -> None:
    """Print what the interpreter ran and called for the specialisation compiled last.

    Args:
        fn: compiled with ``log=True``.
        print_fn: takes the text.

    Raises:
        RuntimeError: no log was kept.
    """
    print_fn(str(last_interpreter_log(fn)))


def cache_option(fn: Any) -> str:
    """Return how specialisations are cached: ``"constant values"``, ``"symbolic values"``, ``"same input"``, …"""
    return compiled_function(fn).options.cache


def get_auto_registered_torch_op_names(fn: Any, /) -> set[str]:
    """Return the names of PyTorch's operations that the program compiled last calls as they are.

    Thunder knows no decomposition of these into its own operations; PyTorch's autograd differentiates them.

    Example:
        >>> import torch
        >>> from thunder_frontend import get_auto_registered_torch_op_names, jit
        >>> compiled = jit(lambda a: torch.special.i0e(a) + torch.special.bessel_j0(a))
        >>> _ = compiled(torch.ones(2))
        >>> get_auto_registered_torch_op_names(compiled)
        {'torch.special.bessel_j0'}
    """
    calls = _last(fn).traces[0].bound_symbols
    return {path_of(origin) for b in calls if (origin := b.symbol.origin) is not None and find_symbol(origin) is None}


def explain_misses(fn: Any) -> list[list[str]]:
    """Return for each miss after the first which guard of which specialisation failed, with old and new value.

    It tells of the newest few specialisations.
    """
    return compiled_function(fn).stats.reasons


def trace(fn: Callable[..., Any]) -> Callable[..., Trace]:
    """Return a function that acquires ``fn`` for its arguments and returns the computation, not transformed.

    Nothing is computed, so that what ``fn`` writes to stays as it is.

    Example:
        >>> import torch
        >>> from thunder_frontend import trace
        >>> print(trace(lambda a: a + 1)(torch.ones(2)))
        def computation(a0: "float32[2]"):
            t0 = ltorch.add(a0, 1)  # float32[2]
            return (t0,)
    """

    compiled = compiled_function(jit(fn))

    def traced(*args: Any, **kwargs: Any) -> Trace:
        return compiled.acquired(args, kwargs).computation

    return traced
