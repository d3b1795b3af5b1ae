"""From a call to its program: acquired as eager goes, and in other ways where that is refused.

What a library does when it is told that something captures the program is meant to be what it does otherwise, and is
not always. So a program is told of its acquisition only where it can be had in no other way that serves as many calls.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from thunder_frontend._acquire import Acquisition
from thunder_frontend._lookasides.lazy_modules import LazyModuleSettled
from thunder_frontend._lookasides.torch_warnings import Warned
from thunder_frontend._outcomes import Path
from thunder_frontend._outside.left_open import FirstOpened, LeftOpen
from thunder_frontend._outside.mortal import KeptAlive
from thunder_frontend._splits import Splits
from thunder_frontend._tracebacks import because_of_builtins
from thunder_guards.errors import DataDependentError, is_of_our_code
from thunder_guards.program import Program
from thunder_ir import Symbol, ThunderError
from thunder_tracing.one_way import AsEager
from thunder_tracing.tensors.known_values import Looks
from thunder_tracing.tensors.open_numbers import NumbersMet

Call = tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any], bool]


def acquire(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    sharp_edges: str | None = None,
    log: bool = False,
    left_open: LeftOpen | None = None,
    replacements: Mapping[Any, Symbol] = MappingProxyType({}),
    sees: bool = True,
    splits: Splits | None = None,
) -> Program:
    """Return a call as a program.

    Args:
        function: what is called.
        args, kwargs: of the call.
        sharp_edges: what to do about effects that a compiled program does not repeat.
        log: keep what the interpreter saw.
        left_open: tells which dimensions and numbers are left open; ``None`` leaves none.
        replacements: which functions executors replace, by which operators.
        sees: whether Python may look at values that only the run of the program tells.
        splits: knows before which calls programs end; ``None`` if before none.
    """
    make = functools.partial(Acquisition, sharp_edges, left_open=left_open, replacements=replacements, splits=splits)
    call = (function, args, kwargs, log)
    attempt = make()
    found = _tried(attempt, make, call)
    if not isinstance(found, AsEager) and (attempt.met_numbers or isinstance(found, ThunderError)):
        found = _in_other_ways(found, attempt, make, call, sees)
    if isinstance(found, Program):
        return found
    raise found


def _in_other_ways(
    found: Program | Exception, first: Acquisition, make: Callable[..., Acquisition], call: Call, sees: bool
) -> Program | Exception:
    """Return the first program that there is in other ways; without one, what else a call comes to."""
    asked, placeholder = first.asked_about_capture, first.met_numbers
    seen: Program | None = None
    """Python looks at values in it, so that it is the last choice."""
    for looks, tells in _ways(isinstance(found, DataDependentError), first.symbolic):
        if tells and not asked or looks is Looks.AT_ALL and seen is not None and _sees_truths(seen):
            continue
        attempt = make(opens=True, looks=looks, tells=tells, path=() if sees and (looks, tells) == SEEING else None)
        other = _tried(attempt, make, call)
        asked |= attempt.asked_about_capture
        if _succeeded(other):
            if isinstance(other, Program) and not other.path:
                return other
            seen = other  # type: ignore[assignment]
            continue
        farther = isinstance(found, DataDependentError) and isinstance(other, DataDependentError)
        if not tells and (placeholder or farther or not isinstance(other, ThunderError)):
            found, placeholder = other, False
    return found if seen is None else seen


SEEING = (Looks.AT_TRUTHS, False)
"""The way in which Python may look at values that only the run of the program tells."""


def _sees_truths(program: Program) -> bool:
    """Whether Python sees nothing but truths."""
    return all([isinstance(seen, bool) for seen in program.path])


def _ways(depends_on_data: bool, symbolic: bool) -> Iterator[tuple[Looks, bool]]:
    """Yield at what a program may look and whether it is told of its acquisition, best first."""
    if depends_on_data:
        yield SEEING
    yield Looks.AT_TRUTHS, True
    if depends_on_data and not symbolic:
        yield Looks.AT_ALL, False
        yield Looks.AT_ALL, True


def acquire_along(
    path: Path,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    sharp_edges: str | None = None,
    log: bool = False,
    left_open: LeftOpen | None = None,
    replacements: Mapping[Any, Symbol] = MappingProxyType({}),
    sees: bool = True,
    splits: Splits | None = None,
) -> Program:
    """Return a call as a program in which Python sees first what ``path`` says, of values that only the run tells.

    Args:
        path: see :mod:`thunder_frontend.outcomes`.
        function, args, kwargs, sharp_edges, log, left_open, replacements, sees, splits: as of :func:`acquire`.
    """
    make = functools.partial(Acquisition, sharp_edges, left_open=left_open, replacements=replacements, splits=splits)
    attempt = make(opens=True, looks=SEEING[0], tells=SEEING[1], path=path)
    found = _tried(attempt, make, (function, args, kwargs, log))
    if isinstance(found, Program):
        return found
    raise found


def _run(attempt: Acquisition, make: Callable[..., Acquisition], call: Call) -> Program:
    """Acquire a call; again if a lazy module got its parameters, a function of PyTorch's warns, several inputs share
    written memory, the program is the first to leave something open, or would keep alive what weak references lead to.
    """
    ways = {"opens": attempt.opens, "looks": attempt.looks, "tells": attempt.tells, "interprets": attempt.interprets}
    ways["path"] = attempt.path
    alike = functools.partial(make, **ways, mortal=attempt.world.mortal.values())
    try:
        program = _in_a_context(attempt, call)
        written = attempt.shared.written()
        if not written or attempt.met_numbers:
            return program
        return _in_a_context(alike(written=written), call)
    except (LazyModuleSettled, FirstOpened):
        return _run(alike(), make, call)
    except Warned as warned:
        return _run(alike(interprets=attempt.interprets | {warned.function}), make, call)
    except KeptAlive as kept:
        return _run(alike(mortal=kept.values), make, call)


def _in_a_context(attempt: Acquisition, call: Call) -> Program:
    """Acquire a call in a context of its own: the values that it gives to context variables go with it."""
    return contextvars.copy_context().run(attempt.run, *call)


def _tried(attempt: Acquisition, make: Callable[..., Acquisition], call: Call) -> Program | Exception:
    """Return the program, or what there is in its place: the program's own error, or why there is none."""
    try:
        return _run(attempt, make, call)
    except NumbersMet:
        return DataDependentError("the program holds numbers that are known only when it runs")
    except Exception as error:
        if isinstance(error, ThunderError) or not is_of_our_code(error):
            return error
        return because_of_builtins(error) or error


def _succeeded(found: Program | Exception) -> bool:
    return isinstance(found, Program) and found.raises is None


__all__ = ["acquire", "acquire_along"]
