"""From a call to its program: acquired as eager goes, and in other ways where that is refused.

What a library does when it is told that something captures the program is meant to be what it does otherwise, and is
not always. So a program is told of its acquisition only where it can be had in no other way that serves as many calls.
"""

from __future__ import annotations

import contextvars
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from thunder_frontend._acquire import Acquisition
from thunder_frontend._external_state.dynamic_values import FirstDynamic
from thunder_frontend._external_state.weakly_held import KeptAlive
from thunder_frontend._library_code.torch_warnings import Warned
from thunder_frontend._lookasides.lazy_modules import LazyModuleSettled
from thunder_frontend._settings import Settings
from thunder_frontend._tracebacks import because_of_builtins
from thunder_guards.errors import AcquisitionError, DataDependentError, SharpEdgeError, is_of_our_code
from thunder_guards.program import Program
from thunder_ir import ThunderError
from thunder_tracing.bailouts import EagerFallback
from thunder_tracing.tensors.array_calls import ArrayWritten
from thunder_tracing.tensors.known_values import ValueSpecialisation
from thunder_tracing.tensors.symbolic_numbers import NumbersMet

Call = tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]


def acquire(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    settings: Settings,
    sees: bool = True,
) -> Program:
    """Return a call as a program.

    Args:
        function: what is called.
        args, kwargs: of the call.
        settings: how it is acquired at first. With a path it is acquired in no other way.
        sees: whether Python may look at values that only the run of the program tells.
    """
    call = (function, args, kwargs)
    if settings.path is not None:
        specialised_on, tells = SEEING
        settings = replace(settings, allows_unknown=True, specialised_on=specialised_on, tells=tells)
    attempt = Acquisition(settings)
    found = _tried(attempt, call)
    refused = attempt.met_numbers or isinstance(found, ThunderError)
    if settings.path is None and refused and not isinstance(found, EagerFallback):
        found = _in_other_ways(found, attempt, call, sees)
    if isinstance(found, Program):
        return found
    raise found


def _in_other_ways(found: Program | Exception, first: Acquisition, call: Call, sees: bool) -> Program | Exception:
    """Return the first program that there is in other ways; without one, what else a call comes to."""
    asked, placeholder = first.asked_about_capture, first.met_numbers
    seen: Program | None = None
    """Python looks at values in it, so that it is the last choice."""
    seeing, came = None, [_length(found)]
    for specialised_on, tells in _ways(isinstance(found, DataDependentError), first.symbolic):
        if tells and not asked or specialised_on is ValueSpecialisation.ALL and seen is not None and _sees_truths(seen):
            continue
        path = () if sees and (specialised_on, tells) == SEEING else None
        attempt = Acquisition(
            replace(first.settings, allows_unknown=True, specialised_on=specialised_on, tells=tells, path=path)
        )
        other = _tried(attempt, call)
        asked |= attempt.asked_about_capture
        if path is not None:
            seeing = other
        else:
            came.append(_length(other))
        if isinstance(other, Program) and other.raises is None:
            if not other.path:
                return other
            seen = other
        elif not tells and (placeholder or _is_farther(other, found) or not isinstance(other, ThunderError)):
            found, placeholder = other, False
    if found is seeing and isinstance(found, AcquisitionError):
        found.sees = found.recorded > max(came)
    return found if seen is None else seen


def _length(found: Program | Exception) -> float:
    """Return how many calls an attempt recorded before it was refused; infinity if it was not, or is not known."""
    return found.recorded if isinstance(found, AcquisitionError) and found.frames else math.inf


SEEING = (ValueSpecialisation.TRUTHS, False)
"""The way in which Python may look at values that only the run of the program tells."""


def _sees_truths(program: Program) -> bool:
    """Whether Python sees nothing but truths."""
    return all([isinstance(seen, bool) for seen in program.path])


def _ways(depends_on_data: bool, symbolic: bool) -> Iterator[tuple[ValueSpecialisation, bool]]:
    """Yield at what a program may look and whether it is told of its acquisition, best first."""
    if depends_on_data:
        yield SEEING
    yield ValueSpecialisation.TRUTHS, True
    if depends_on_data and not symbolic:
        yield ValueSpecialisation.ALL, False
        yield ValueSpecialisation.ALL, True


def _run(attempt: Acquisition, call: Call) -> Program:
    """Acquire a call; again if a lazy module got its parameters, a function of PyTorch's warns, several inputs share
    written memory, an array of NumPy's gets what only the run brings, the program is the first in which something is
    dynamic, or would keep alive what weak references lead to. Values given to context variables go with each attempt.
    """
    while True:
        settings = replace(attempt.settings, weakly_held=attempt.external.weakly_held.values())
        try:
            program = contextvars.copy_context().run(attempt.run, *call)
            written = attempt.shared.written()
            if not written or settings.written or attempt.met_numbers:
                return program
            settings = replace(settings, written=written)
        except (LazyModuleSettled, FirstDynamic):
            pass  # which changed what the next attempt finds
        except Warned as warned:
            settings = replace(settings, interprets=settings.interprets | {warned.function})
        except ArrayWritten as written_to:
            settings = replace(settings, of_the_run=settings.of_the_run | {written_to.number})
        except KeptAlive as kept:
            settings = replace(settings, weakly_held=kept.values)
        attempt = Acquisition(settings)


def _tried(attempt: Acquisition, call: Call) -> Program | Exception:
    """Return the program, or what there is in its place: the program's own error, or why there is none."""
    try:
        return _run(attempt, call)
    except NumbersMet:
        return DataDependentError("the program holds numbers that are known only when it runs")
    except Exception as error:
        if isinstance(error, ThunderError) or not is_of_our_code(error):
            return error
        return because_of_builtins(error) or error


def _is_farther(other: Program | Exception, found: Program | Exception) -> bool:
    """Whether what refused an attempt is in the way of all: it came no earlier than what refused the one before, and
    behind that if it is something else than data.

    A sharp edge that the user does not allow lies behind what was in the way before.
    """
    if isinstance(other, SharpEdgeError):
        return True
    if not isinstance(other, AcquisitionError) or not isinstance(found, DataDependentError):
        return False
    return other.recorded >= found.recorded + (not isinstance(other, DataDependentError))
