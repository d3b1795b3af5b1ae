"""Transforms that watch programs run: callbacks, ranges of profilers, and times by operation."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from thunder_frontend import Transform, jit
from thunder_ir import BoundSymbol, OpTags, Symbol, Trace

Around = Callable[[str], AbstractContextManager[Any]]
"""Makes, of the name of an operation, the context that one call of it runs in."""


class AroundEach(Transform):
    """Run each operation of a program, fused regions as one, in a context.

    Args:
        around: makes the context, of the operation's name.

    Example:
        >>> import torch
        >>> from contextlib import contextmanager
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import AroundEach
        >>> @contextmanager
        ... def told(name):
        ...     print("before", name)
        ...     yield
        >>> jit(lambda x: x * 2, executors=["torch"], transforms=[AroundEach(told)])(torch.ones(1))
        before mul
        tensor([2.])
    """

    def __init__(self, around: Around) -> None:
        self.around = around

    def transform_trace_post_optimization(self, computation_trace: Trace, **kwargs: Any) -> Trace:
        calls = [self._inside(bound) for bound in computation_trace.bound_symbols]
        return computation_trace.replace(bound_symbols=tuple(calls))

    def _inside(self, bound: BoundSymbol) -> BoundSymbol:
        function, name = bound.symbol.implementation, bound.symbol.name
        if function is None or bound.has_tag(OpTags.FREES):
            return bound

        def run(*args: Any, **kwargs: Any) -> Any:
            with self.around(name):
                return function(*args, **kwargs)

        watched = Symbol(name, "watched", implementation=run, tags=bound.symbol.tags)
        return bound.as_call_of(watched, bound.tags)


class ProfileTransform(AroundEach):
    """Show each operation to ``torch.profiler``, under its name; and add up the seconds they take.

    ``seconds`` and ``calls`` have totals by name, as the processor sees them: what a device does asynchronously is not
    waited for.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import ProfileTransform
        >>> profile = ProfileTransform()
        >>> _ = jit(lambda x: x @ x, executors=["torch"], transforms=[profile])(torch.ones(2, 2))
        >>> dict(profile.calls)
        {'matmul': 1}
    """

    def __init__(self) -> None:
        super().__init__(self._timed)
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        with torch.profiler.record_function(name):
            yield
        self.seconds[name] += time.perf_counter() - start
        self.calls[name] += 1


class ITTProfileTransform(AroundEach):
    """Mark each operation as a task of Intel's ITT, for VTune.

    Raises:
        RuntimeError: PyTorch was built without ITT.
    """

    def __init__(self) -> None:
        if not torch.profiler.itt.is_available():  # type: ignore[no-untyped-call]
            raise RuntimeError("ITT ranges need a PyTorch that was built with ITT; torch.profiler.itt is not available")
        super().__init__(torch.profiler.itt.range)


class NvtxProfileTransform(AroundEach):
    """Mark each operation as a range of NVTX, for Nsight.

    Raises:
        RuntimeError: PyTorch was built without CUDA.
    """

    def __init__(self) -> None:
        if torch.version.cuda is None:
            raise RuntimeError("NVTX ranges need a PyTorch built with CUDA; use ITTProfileTransform for Intel VTune")
        super().__init__(torch.cuda.nvtx.range)


class DebugTransform(Transform):
    """Call ``callback(bound, *args, **kwargs)`` before each operation that runs.

    Args:
        callback: gets the bound symbol, and what the operation is called with. What it returns, if anything, is written
            as a comment is: into ``said``, by the position of the operation.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import DebugTransform
        >>> debug = DebugTransform(lambda bound, *args, **kwargs: print(bound.symbol.name, args[0].shape))
        >>> jit(lambda x: x * 2, executors=["torch"], transforms=[debug])(torch.ones(1))
        mul torch.Size([1])
        tensor([2.])
    """

    def __init__(self, callback: Callable[..., Any]) -> None:
        self.callback = callback
        self.said: dict[int, Any] = {}

    def transform_trace_post_optimization(self, computation_trace: Trace, **kwargs: Any) -> Trace:
        calls: list[BoundSymbol] = []
        for place, bound in enumerate(computation_trace.bound_symbols):
            if bound.symbol.implementation is not None and not bound.has_tag(OpTags.FREES):
                calls.append(self._telling(place, bound))
            calls.append(bound)
        return computation_trace.replace(bound_symbols=tuple(calls))

    def _telling(self, place: int, bound: BoundSymbol) -> BoundSymbol:
        def tell(*args: Any, **kwargs: Any) -> None:
            answer = self.callback(bound, *args, **kwargs)
            if answer is not None:
                self.said[place] = answer

        symbol = Symbol(f"before_{bound.symbol.name}", "debug", implementation=tell, tags=frozenset({OpTags.DONT_DCE}))
        return BoundSymbol(symbol, bound.args, bound.kwargs, None, bound.location)


def debug_execution_trace(fn: Callable[..., Any], callback: Callable[..., Any], **options: Any) -> Any:
    """Compile ``fn`` such that ``callback(bound, *args, **kwargs)`` is called before each operation that runs.

    Args:
        fn: a function or module.
        callback: see :class:`DebugTransform`.
        options: of ``jit``.
    """
    given = (*options.pop("transforms", ()), DebugTransform(callback))
    return jit(fn, transforms=given, **options)
