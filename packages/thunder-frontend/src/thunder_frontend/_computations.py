"""What runs the computation of programs: one for all programs of equal traces.

Many specialisations of a callable differ in their guards alone, and a model is compiled again for each copy of it. What
the pipeline makes of a trace depends on nothing else than what :func:`key_of` lists, so that such programs share it:
they are compiled in the time of their acquisition, and processors keep in their caches what calls of them run.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import torch

from thunder_autograd import Split
from thunder_executors import Executor, is_installed, resolve_executors
from thunder_frontend._suspensions import Paused
from thunder_frontend.options import Options
from thunder_guards import ordered
from thunder_guards.program import Effect, Program
from thunder_guards.templates import Built, is_plain, proxies_of
from thunder_ir import REVISION, Proxy, TensorProxy, Trace, is_edited
from thunder_loops import structure_of
from thunder_torch.differentiated import Backward
from thunder_torch.literals import PLAIN


@dataclass(slots=True, eq=False, weakref_slot=True)
class Computation:
    """What runs the computation of programs, with the traces of every stage. It holds nothing of the programs' guards.

    Args:
        trace: the computation as it was acquired, with its inputs in the order in which they are passed.
        run: takes the inputs.
        returns_result: whether it returns the result of the program itself rather than a tuple of outputs.
        traces: its stages, or those of its forward part, first to last; executors may add the last ones later.
        backward: its backward part.
        split: the forward and backward program before executors, with what is saved and why; ``None`` where there are
            no gradients.
    """

    trace: Trace
    run: Callable[..., Any]
    returns_result: bool
    traces: list[Trace]
    backward: Backward | None = None
    split: Split | None = None


_MADE: WeakValueDictionary[Hashable, Computation] = WeakValueDictionary()
"""By what they are made of, for as long as a specialisation runs them."""

Key = tuple[Hashable, ...]


def shared(key: Key | None) -> Computation | None:
    """Return what was made of the same before, if a specialisation runs it yet."""
    return None if key is None else _MADE.get(key)


def share(key: Key | None, made: Computation) -> Computation:
    """Let programs of a key run a computation; return it, or the one that another thread made meanwhile."""
    return made if key is None else _MADE.setdefault(key, made)


def key_of(program: Program, trace: Trace, options: Options) -> Key | None:
    """Return what programs have in common whose computations are one; ``None`` where that is not known.

    It is all that the pipeline reads of a program, of options and of the process. It is not known of programs with
    symbolic numbers, nor where a transform, a person, or an executor of the user's has a hand in it: whether that takes
    a call may depend on anything.

    Args:
        program: what was acquired.
        trace: its computation, with its inputs in the order in which they are passed.
        options: how it is compiled.
    """
    executors = resolve_executors(options.executors)
    looked_at = options.transforms or options.debug.check_traces or options.cache == "no caching" or is_edited()
    if looked_at or not all(map(is_installed, executors)):
        return None
    own = program.views or program.unseen.memory or program.unseen.tensors
    if own or program.numbers or trace.constraints:
        return None
    made = [p for bound in trace.bound_symbols for p in bound.outputs]
    named = (*trace.inputs, *made)
    if not all([p.__class__ is TensorProxy for p in named]):
        return None
    is_result = not program.effects and is_plain(program.result)
    result = program.result if is_result else tuple(proxies_of(program.result))
    inputs = ordered(program.inputs)
    computed = structure_of(trace.bound_symbols, (*trace.inputs, trace.output, result), plain=PLAIN)
    if computed is None:
        return None
    return (
        (*computed, is_result, trace.name, trace.tags),
        tuple([p.name for p in named]),
        tuple([(bound.location, bound.tags) for bound in trace.bound_symbols]),
        tuple([(i.metadata.requires_grad, i.becomes_leaf, getattr(i.memory, "name", None)) for i in inputs]),
        tuple(map(_written, program.effects)),
        tuple(program.rules.items()),
        (program.environment.environment, program.tried, is_paused(program)),
        _asked_for(options, executors),
    )


def _written(effect: Effect) -> Key:
    """Return what the pipeline reads of an effect: which value is written where."""
    target = effect.target.name if isinstance(effect.target, Proxy) else None
    is_value = isinstance(effect.value, Proxy)
    way = effect.key if isinstance(effect.key, str) else None
    return effect.kind, target, way, is_value, *[p.name for p in proxies_of(effect.value)]


def _asked_for(options: Options, executors: Iterable[Executor]) -> Key:
    """Return how programs are compiled now."""
    asked = [(e, *e.passes, *e.finishing) for e in executors]
    how = options.differentiate, options.extra.get("partition"), options.extra.get("memory_budget")
    process = REVISION.number, torch.get_num_threads(), torch.backends.mkldnn.enabled
    return (*how, *asked, *process)


def is_paused(program: Program) -> bool:
    """Whether a program ends before a call that no program can hold."""
    return isinstance(program.result, Built) and program.result.build is Paused
