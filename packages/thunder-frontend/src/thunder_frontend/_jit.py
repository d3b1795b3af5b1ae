"""``jit``, and ``trace``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import torch

from thunder_executors import configure_executors
from thunder_frontend._compiled import CompiledFunction
from thunder_frontend._module import ThunderModule
from thunder_frontend.options import DEFAULT_CACHE, DEFAULT_FALLBACK, EXTRA, DebugOptions, Options, check_language
from thunder_ir import Trace

BEHIND = "_thunder_compiled"
"""The attribute of a function that calls a compiled one, which holds that."""


def jit(
    fn: Callable[..., Any] | torch.nn.Module | None = None,
    /,
    *,
    langctx: object = None,
    executors: Sequence[Any] | None = None,
    sharp_edges: str | None = None,
    cache: str | None = None,
    disable_torch_autograd: bool = False,
    transforms: Sequence[Any] | None = None,
    debug_options: Any = None,
    fallback: str | None = None,
    fullgraph: bool = False,
    **compile_options: Any,
) -> Any:
    """Compile a callable or a module, just in time: for each kind of call a program is acquired, once.

    Args:
        fn: a function, method, callable object or ``nn.Module``. Without it, a decorator is returned.
        langctx: ``None`` or ``"torch"``: programs speak the torch language.
        executors: executors or their names in order of priority; ``"+name"`` puts one before the defaults.
            What is not named does not take part, with PyTorch's own operators last: without it, the defaults, of
            which ``thunder-native`` makes rows of at least 16 calls on small CPU tensors native code at the third
            call of a program.
        sharp_edges: ``"allow"``, ``"warn"`` or ``"error"``: what to do about effects that happen while a program is
            acquired and not on later calls, such as ``print``. Without it they are allowed, but a value that would be
            another one on each call, such as the time or a random number of Python's or NumPy's, is refused.
        cache: ``"auto"`` (default), ``"constant values"``, ``"symbolic values"``, ``"same input"`` or
            ``"no caching"``. With ``"auto"`` the first program is for the sizes and numbers at hand; those that a later
            call shows to change are dynamic from then on. With ``"constant values"`` each has a program of its own.
        disable_torch_autograd: return tensors that autograd knows nothing of.
        transforms: instances of :class:`thunder_frontend.Transform`, applied in order.
        debug_options: a :class:`~thunder_frontend.options.DebugOptions`.
        fallback: what becomes of calls that no program can be made of. ``"split"`` (default) runs the smallest frame
            that a program cannot hold in Python, and what that calls compiled; ``"warn"`` runs the whole callable in
            Python; both warn once of each place. ``"error"`` raises an error that names the place and a way out.
        fullgraph: another name of ``fallback="error"``.
        compile_options: ``check``, ``memory_budget``, ``partition``, ``log``, ``outcomes``, and what the executors take
            that are named, such as ``whole`` and ``mode`` of ``"inductor"``; others are refused.

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
            fallback=fallback, fullgraph=fullgraph, **compile_options,
        )  # fmt: skip
    check_language(langctx)
    if fullgraph and fallback not in (None, "error"):
        raise ValueError(f"fullgraph=True means fallback='error', and fallback={fallback!r} was asked for, too")
    if not EXTRA.keys() >= compile_options.keys():
        known = {n: v for n, v in compile_options.items() if n in EXTRA}
        others = {n: v for n, v in compile_options.items() if n not in EXTRA}
        executors, others = configure_executors(executors, others)
        compile_options = known | others
    options = Options(
        executors,
        getattr(sharp_edges, "value", sharp_edges),
        getattr(cache, "value", cache) or DEFAULT_CACHE,
        tuple(transforms or ()),
        not disable_torch_autograd,
        compile_options,
        DebugOptions() if debug_options is None else debug_options,
        "error" if fullgraph else getattr(fallback, "value", fallback) or DEFAULT_FALLBACK,
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


def compiled_function(fn: object) -> CompiledFunction:
    """Return the compiled function behind what :func:`jit` returned.

    Args:
        fn: a compiled function, or a compiled module.

    Raises:
        TypeError: ``fn`` did not come from :func:`jit`.
    """
    if isinstance(fn, ThunderModule):
        return fn._thunder_compiled  # type: ignore[no-any-return]
    if isinstance(fn, CompiledFunction):
        return fn
    behind = vars(fn).get(BEHIND) if isinstance(fn, FunctionType) else None
    if behind is not None:
        return compiled_function(behind)
    raise TypeError(f"{fn!r} was not made by thunder.jit")


def asking(compiled: object, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``run``, which calls a compiled function, such that what is asked of it is asked of that function.

    Args:
        compiled: what :func:`jit` returned.
        run: a function.
    """
    setattr(run, BEHIND, compiled)
    return run


def trace(fn: Callable[..., Any] | None = None) -> Callable[..., Trace]:
    """Return a function that acquires ``fn`` for its arguments and returns the computation, not transformed.

    Nothing is computed, so that what ``fn`` writes to stays as it is.

    Args:
        fn: a function or a module; if left out, what is returned takes it before the arguments.

    Returns:
        a function of the arguments of ``fn``.

    Example:
        >>> import torch
        >>> from thunder_frontend import trace
        >>> print(trace(lambda a: a + 1)(torch.ones(2)))
        def computation(a0: "float32[2]"):
            t0 = ltorch.add(a0, 1)  # float32[2]
            return (t0,)
    """
    if fn is None:
        return lambda fn, *args, **kwargs: trace(fn)(*args, **kwargs)
    compiled = compiled_function(jit(fn))

    def traced(*args: Any, **kwargs: Any) -> Trace:
        return compiled.acquired(args, kwargs).computation

    return traced
