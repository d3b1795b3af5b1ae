"""What makes a function from trace to trace a pass: provenance, and verification where it is asked for."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from thunder_ir.collector import collector_paused
from thunder_ir.trace import Provenance, Trace
from thunder_ir.verifier import verify

P = ParamSpec("P")
R = TypeVar("R")

_VERIFYING: ContextVar[bool] = ContextVar("thunder_verifying", default=False)


def trace_pass(function: Callable[P, R]) -> Callable[P, R]:
    """Make the decorated function a pass: what it returns says which pass made it, and how long that took.

    A trace that it returns, alone or in a tuple, gets the provenance; under :func:`verifying` it is verified too.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_ir.passes import trace_pass
        >>> @trace_pass
        ... def forget_the_output(trace):
        ...     return trace.replace(output=None)
        >>> forget_the_output(trace_of(lambda x: x, Tensor((2,)))).provenance.made_by
        'forget_the_output'
    """

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        start = time.process_time()
        with collector_paused():
            made = function(*args, **kwargs)
        provenance = Provenance(function.__name__, time.process_time() - start)
        return _finished(made, provenance, _VERIFYING.get())  # type: ignore[no-any-return]

    return run


def _finished(made: Any, provenance: Provenance, check: bool) -> Any:
    if isinstance(made, Trace):
        if check:
            verify(made)
        return made.replace(provenance=provenance)
    if made.__class__ is tuple:
        return tuple([_finished(one, provenance, check) for one in made])
    return made


@contextmanager
def verifying(on: bool = True) -> Iterator[None]:
    """Verify what every pass returns, within a ``with`` block.

    Raises:
        VerificationError: on leaving a pass whose result breaks a law of traces.
    """
    token = _VERIFYING.set(on)
    try:
        yield
    finally:
        _VERIFYING.reset(token)
