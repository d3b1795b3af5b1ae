"""What can be asked of what ``jit`` returned: the traces of its programs, its cache, and why it compiled anew."""

from __future__ import annotations

from collections.abc import Callable
from dis import Instruction
from typing import Any

from thunder_frontend._jit import compiled_function
from thunder_frontend._pipeline import Compiled
from thunder_frontend._stats import CompileStats
from thunder_guards.traces import epilogue_trace
from thunder_interpreter import Log
from thunder_ir import Trace
from thunder_torch import find_symbol
from thunder_torch.names import path_of


def _last(fn: object) -> Compiled:
    function = compiled_function(fn)
    compiled = function.compiled
    if not compiled and function.split_off():
        raise RuntimeError(f"{fn!r} has no program of its own; thunder.explain tells what runs in Python, and why")
    if not compiled:
        raise RuntimeError(f"{fn!r} was not called yet, so nothing is compiled")
    return compiled[-1]


def last_traces(fn: object) -> list[Trace]:
    """Return the stages of the computation of the specialisation compiled last.

    Args:
        fn: what :func:`jit` returned.

    Returns:
        traces, from the one that was acquired to the one that runs; of the forward part, where there is a backward one.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
        RuntimeError: it was not called yet.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit, last_traces
        >>> compiled = jit(lambda a: a + 1)
        >>> _ = compiled(torch.ones(2))
        >>> print(last_traces(compiled)[0])
        def computation(a0: "float32[2]"):
            t0 = ltorch.add(a0, 1)  # float32[2]
            return (t0,)
    """
    return _last(fn).traces


def last_backward_traces(fn: object) -> list[Trace]:
    """Return the stages of the backward program of the specialisation compiled last.

    Args:
        fn: what :func:`jit` returned.

    Returns:
        traces, first to last; none where there are no gradients.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
        RuntimeError: it was not called yet.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit, last_backward_traces
        >>> compiled = jit(lambda a: a.sin())
        >>> _ = compiled(torch.ones(2))
        >>> last_backward_traces(compiled)
        []
        >>> _ = compiled(torch.ones(2, requires_grad=True))
        >>> "cos" in str(last_backward_traces(compiled)[0])
        True
    """
    return _last(fn).backward_traces


def last_prologue_traces(fn: object) -> list[Any]:
    """Return the prologue of the specialisation compiled last: what it guards, and how it unpacks the arguments.

    Args:
        fn: what :func:`jit` returned.

    Returns:
        the trace, which checks one guard after the other, and what is generated of it, which checks the same, or with
        ``cache="same input"`` nothing. The text of both is a Python function.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
        RuntimeError: it was not called yet.
    """
    return _last(fn).prologue_traces


def last_epilogue_traces(fn: object) -> list[Any]:
    """Return the epilogue of the specialisation compiled last: its writes to external state, and the result.

    Args:
        fn: what :func:`jit` returned.

    Returns:
        one trace, which runs as it prints.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
        RuntimeError: it was not called yet.
    """
    return [epilogue_trace(_last(fn).program)]


def cache_misses(fn: object) -> int:
    """Return how many calls compiled a specialisation.

    Args:
        fn: what :func:`jit` returned.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.

    Example:
        >>> import torch
        >>> from thunder_frontend import cache_hits, cache_misses, jit
        >>> compiled = jit(torch.sin)
        >>> _ = [compiled(torch.ones(size)) for size in (2, 2, 3)]
        >>> cache_misses(compiled), cache_hits(compiled)
        (2, 1)
    """
    return compiled_function(fn).stats.cache_misses


def cache_hits(fn: object) -> int:
    """Return how many calls were served by a specialisation compiled earlier; see :func:`cache_misses`.

    Args:
        fn: what :func:`jit` returned.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
    """
    return compiled_function(fn).stats.cache_hits


compile_data = compiled_function
"""What :func:`compiled_function` is called where its options and statistics are asked for."""


def compile_stats(fn: object) -> CompileStats:
    """Return counts, and CPU seconds by phase for each specialisation.

    Args:
        fn: what :func:`jit` returned.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.

    Example:
        >>> import torch
        >>> from thunder_frontend import compile_stats, jit
        >>> compiled = jit(torch.sin)
        >>> _ = compiled(torch.ones(2))
        >>> "acquisition" in compile_stats(compiled).phases[0]
        True
    """
    return compiled_function(fn).stats


def last_compile_options(fn: object) -> dict[str, Any]:
    """Return the options that were given beyond the named ones.

    Args:
        fn: what :func:`jit` returned.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
    """
    return dict(compiled_function(fn).options.extra)


def list_transforms(fn: object) -> list[Any]:
    """Return the transforms that are applied, in their order.

    Args:
        fn: what :func:`jit` returned.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
    """
    return list(compiled_function(fn).options.transforms)


def last_interpreter_log(fn: object) -> Log:
    """Return what the interpreter ran and called for the specialisation compiled last; ``str`` of it is the text.

    Args:
        fn: what :func:`jit` returned.

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
    log: Log | None = _last(fn).program.log
    if log is None:
        raise RuntimeError(
            "the interpreter kept no log; ask for one with thunder.jit(fn, log=True), or by debug_options"
        )
    return log


def last_interpreted_instructions(fn: object) -> list[Instruction]:
    """Return the instructions of bytecode that the interpreter ran for the specialisation compiled last, in order.

    An instruction stands there as often as it was run, those of the functions that were called among them. Blocks of a
    model that equal one before are not interpreted again, and functions that run natively are not interpreted.

    Args:
        fn: what :func:`jit` returned, compiled with ``log=True`` or
            ``debug_options=DebugOptions(record_interpreter_history=True)``.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
        RuntimeError: it was not called yet, or no log was kept.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit, last_interpreted_instructions
        >>> compiled = jit(torch.nn.Tanh(), log=True)
        >>> _ = compiled(torch.ones(2))
        >>> "RETURN_VALUE" in {i.opname for i in last_interpreted_instructions(compiled)}
        True
    """
    return last_interpreter_log(fn).instructions


def print_last_interpreter_log(fn: object, /, print_fn: Callable[[str], Any] = print) -> None:
    """Print what the interpreter ran and called for the specialisation compiled last.

    Args:
        fn: compiled with ``log=True``.
        print_fn: takes the text.

    Raises:
        RuntimeError: no log was kept.
    """
    print_fn(str(last_interpreter_log(fn)))


def cache_option(fn: object) -> str:
    """Return how specialisations are cached: ``"auto"``, ``"constant values"``, ``"symbolic values"``, …

    Args:
        fn: what :func:`jit` returned.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
    """
    return compiled_function(fn).options.cache


def get_auto_registered_torch_op_names(fn: object, /) -> set[str]:
    """Return the names of PyTorch's operations that the program compiled last calls as they are.

    Thunder knows no decomposition of these into its own operations; PyTorch's autograd differentiates them.

    Args:
        fn: what :func:`jit` returned.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
        RuntimeError: it was not called yet.

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


def explain_misses(fn: object) -> list[list[str]]:
    """Return why calls after the first compiled anew.

    Args:
        fn: what :func:`jit` returned.

    Returns:
        for each of these calls which guard of which specialisation failed, with old and new value; it tells of the
        newest few specialisations.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.

    Example:
        >>> import torch
        >>> from thunder_frontend import explain_misses, jit
        >>> compiled = jit(lambda a, n: a * n)
        >>> _ = compiled(torch.ones(2), 2), compiled(torch.ones(2), 3)
        >>> explain_misses(compiled)
        [['args[1] is 3, compiled for 2']]
    """
    return compiled_function(fn).stats.reasons
