"""Symbolic numbers that a program has fixed after all: guards of values tell of them as well, and faster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from thunder_guards._guards.values import ValueGuard
from thunder_guards.program import Program
from thunder_guards.symbolic import fixed_numbers
from thunder_guards.templates import proxies_of
from thunder_ir import Proxy, TensorProxy


def with_fixed_numbers_guarded(program: Program) -> Program:
    """Return the program with guards of values in place of its symbolic numbers, where it fixed all of them and
    computes nothing of them; else as it is.

    Such programs have equal computations for many values, and are compiled once. The number of one that takes a length
    of a text of it is an example.
    """
    numbers, constraints = program.numbers, program.computation.constraints
    fixed = fixed_numbers(numbers, constraints)
    if not numbers or len(fixed) < len(numbers) or not all(map(_has_fixed_sizes, _proxies(program))):
        return program
    guards = tuple([ValueGuard(number.source, value) for number, value in fixed])
    computation = program.computation.replace(constraints=())
    return replace(program, guards=(*program.guards, *guards), computation=computation, numbers=())


def _proxies(program: Program) -> Iterator[Proxy]:
    """Yield what a program reads, computes, returns and writes."""
    yield from [i.proxy for i in program.inputs]
    for bound in program.computation.bound_symbols:
        yield from (*bound.inputs, *bound.outputs)
    for effect in program.effects:
        yield from proxies_of((effect.target, effect.key, effect.value))
    yield from proxies_of((program.result, tuple(program.views.values())))


def _has_fixed_sizes(proxy: Proxy) -> bool:
    if not isinstance(proxy, TensorProxy):
        return False
    return all([type(size) is int for size in (*proxy.shape, *(proxy.strides or ()))])
