"""Prologue and epilogue of a program as traces: to be read, and changed by transforms.

A prologue checks and fetches, and returns what the computation gets. It prints as a function that raises
``AssertionError`` for a call that the program does not serve. What is generated of it asks the same in fewer steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from thunder_guards._codegen.epilogue import FETCH, arguments, epilogue_trace, tensor_writes, with_epilogue, write
from thunder_guards._codegen.prologue import constraints_of, ordered
from thunder_guards._guards.arguments import ArgumentsGuard
from thunder_guards._guards.base import Guard, shown
from thunder_guards._guards.environment import Environment, EnvironmentGuard
from thunder_guards._guards.values import ValueGuard
from thunder_guards.program import Program
from thunder_guards.sources import Source
from thunder_guards.symbolic import ConstraintsGuard, described
from thunder_guards.templates import External
from thunder_ir import BoundSymbol, Context, OpTags, Proxy, Symbol, Trace
from thunder_ir.codegen import comment


def prologue_trace(program: Program) -> Trace:
    """Return what a program relies on and what its computation gets, as a trace of the arguments of a call."""
    fixed = [program.environment, program.arguments]
    calls = [BoundSymbol(REQUIRE, (guard,), {}, None) for guard in fixed]
    calls += [check(guard) for guard in program.guards]
    calls += [_fetch(number.source, number.proxy) for number in program.numbers]
    constraints = constraints_of(program)
    if constraints.check is not None:
        calls.append(BoundSymbol(REQUIRE, (constraints,), {}, None))
    inputs = ordered(program.inputs)
    for given in inputs:
        calls.append(_fetch(given.source, given.proxy))
        calls.append(BoundSymbol(REQUIRE, (given.guard,), {}, None))
    return Trace("prologue", arguments(), tuple(calls), tuple([i.proxy for i in (*inputs, *program.numbers)]))


def check(guard: Guard) -> BoundSymbol:
    """Return the call that checks a guard in a prologue."""
    return BoundSymbol(CHECK, (guard,), {}, None)


def source_of(trace: Trace, proxy: Proxy) -> Source:
    """Return how a prologue or an epilogue gets at a value that it fetches.

    Raises:
        LookupError: it does not fetch it.
    """
    for bound in trace.bound_symbols:
        if bound.symbol is FETCH and bound.output.name == proxy.name:
            source: Source = bound.args[0].source
            return source
    raise LookupError(f"the {trace.name} does not fetch {proxy.name}")


def environment_of(prologue: Trace) -> Environment:
    """Return the state of PyTorch that a program is for."""
    guards = [bound.args[0] for bound in prologue.bound_symbols if bound.symbol is REQUIRE]
    return next(guard.environment for guard in guards if isinstance(guard, EnvironmentGuard))


def with_prologue(program: Program, before: Trace, after: Trace) -> Program:
    """Return a program that checks the guards of a changed prologue.

    Args:
        program: the program.
        before: its prologue.
        after: the same with other checks. All else must stay: the computation is not valid without.

    Raises:
        ValueError: something else was changed.
    """
    guards = tuple([b.args[0] for b in after.bound_symbols if b.symbol is CHECK])
    kept = [b for b in after.bound_symbols if b.symbol is not CHECK]
    fixed = [b for b in before.bound_symbols if b.symbol is not CHECK]
    for bound in fixed:
        if not any([bound.symbol is b.symbol and bound.args[0] is b.args[0] for b in kept]):
            raise ValueError(f"the computation needs what was removed from the prologue: {_shown(bound)}")
    if len(kept) > len(fixed):
        raise ValueError(
            "a prologue may check more guards, by thunder_guards.traces.check, and do nothing else besides"
        )
    return replace(program, guards=guards)


def with_traces(program: Program, before: tuple[Trace, Trace], after: tuple[Any, Any]) -> Program:
    """Return a program with the prologue and the epilogue that a transform made of its own.

    Args:
        program: the program.
        before: its prologue and epilogue.
        after: what became of them.

    Raises:
        ValueError: these are no prologue and epilogue of the program.
    """
    for name, trace in zip(("prologue", "epilogue"), after, strict=True):
        if not isinstance(trace, Trace):
            raise ValueError(f"the {name} is a trace, and a transform made {type(trace).__name__} of it")
    if after[0] is not before[0]:
        program = with_prologue(program, before[0], after[0])
    return program if after[1] is before[1] else with_epilogue(program, after[1])


def _fetch(source: Source, proxy: Proxy) -> BoundSymbol:
    return BoundSymbol(FETCH, (External(source),), {}, proxy)


def _shown(bound: BoundSymbol) -> str:
    context = Context()
    context.names.reserve([p.name for p in arguments()])
    assert bound.symbol.printer is not None
    return "; ".join(bound.symbol.printer(bound, context))


def _print_check(bound: BoundSymbol, context: Context) -> list[str]:
    return [f"assert {condition}{told}" for condition, told in _conditions(bound.args[0], context)]


def _conditions(guard: Any, context: Context) -> Iterator[tuple[str, str]]:
    """Yield the conditions of a guard, each with what is said of it in a comment."""
    if isinstance(guard, EnvironmentGuard):
        asked = [*guard.conditions(context, attends=True), *guard.unwatched(context)]
        yield from [(condition, "") for condition in asked]
    elif isinstance(guard, ArgumentsGuard):
        yield from [(condition, "") for condition in guard.conditions(context)]
    elif isinstance(guard, ConstraintsGuard):
        broken = context.object(guard.check, "broken_constraint")
        numbers = ", ".join([number.proxy.name for number in guard.inputs])
        told = comment(", ".join(map(described, guard.constraints)))
        yield f"{broken}({numbers}) is None", f"  # {told}"
    else:
        condition, place = guard.condition(context), str(guard.source)
        told = f"{place} = {shown(guard.value)}" if isinstance(guard, ValueGuard) else place
        yield condition, "" if place in condition else f"  # {comment(told)}"


CHECK = Symbol("check", "around", printer=_print_check, tags=frozenset({OpTags.PROLOGUE, OpTags.DONT_DCE}))
"""``check(guard)``: what a program relies on. A transform may leave it out, or add others."""
REQUIRE = Symbol("require", "around", printer=_print_check, tags=CHECK.tags)
"""``require(guard)``: what the computation cannot do without, such as the kinds of its tensors."""

__all__ = [
    "CHECK", "FETCH", "REQUIRE", "check", "environment_of", "epilogue_trace", "prologue_trace", "source_of",
    "tensor_writes", "with_epilogue", "with_prologue", "with_traces", "write",
]  # fmt: skip
