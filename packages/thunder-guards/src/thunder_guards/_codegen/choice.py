"""Telling apart the specialisations that one key leads to, by what their guards expect.

Specialisations that differ in an attribute of a module, or in what a list among the arguments holds, have the same key.
They are arranged as a decision tree: each fork looks at one thing that most behind it have a guard for and expect
different values of; the others are behind it, too. The tree only proposes; the guards of what it proposes decide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_guards._codegen.specialise import Specialisation
from thunder_guards._guards import GONE, TensorGuard, ValueGuard
from thunder_guards.sources import Source
from thunder_guards.symbolic import fixed_numbers
from thunder_ir import Context

Facts = dict[Any, tuple[Source, str, Any]]
"""By place and aspect: where it comes from, the aspect as a template of Python source, and the value expected."""


@dataclass(slots=True)
class Fork:
    """Specialisations that one look tells apart.

    Args:
        key: place and aspect of what is looked at.
        look: ``(args, kwargs) -> value``.
        branches: by value.
        rest: those that rely on nothing there.
    """

    key: Any
    look: Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
    branches: dict[Any, Node]
    rest: Node | None = None

    def branch(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Node | None:
        """Return the branch for a call; ``None`` if no specialisation expects what it has there."""
        try:
            return self.branches.get(self.look(args, kwargs))
        except GONE:  # this call has nothing of the kind there, or a tensor that has no shape
            return None


Node = Specialisation | tuple[Specialisation, ...] | Fork
"""One specialisation, some that no fact tells apart, or a fork."""


def candidates(node: Node | None, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Specialisation, ...]:
    """Return the specialisations that may serve a call, the newest first where nothing tells them apart."""
    if node is None:
        return ()
    if isinstance(node, Specialisation):
        return (node,)
    if isinstance(node, tuple):
        return node
    return (*candidates(node.branch(args, kwargs), args, kwargs), *candidates(node.rest, args, kwargs))


def added(node: Node | None, specialisation: Specialisation) -> Node:
    """Return the tree with one more specialisation.

    Args:
        node: the tree, or ``None``. Others may be reading it meanwhile: they find the tree before or after.
        specialisation: what is added.
    """
    if node is None:
        return specialisation
    if isinstance(node, Fork):
        fact = facts_of(specialisation).get(node.key)
        if fact is None:
            node.rest = added(node.rest, specialisation)
        else:
            node.branches[fact[-1]] = added(node.branches.get(fact[-1]), specialisation)
        return node
    return _forked((specialisation, *(node if isinstance(node, tuple) else (node,))))


def _forked(those: tuple[Specialisation, ...]) -> Node:
    """Return a fork at the fact that tells most of the specialisations apart; them as they are if none does."""
    facts = [facts_of(s) for s in those]
    found: dict[Any, set[Any]] = {}
    for each in facts:
        for key, fact in each.items():
            found.setdefault(key, set()).add(fact[-1])
    best = max(found, key=lambda key: len(found[key]), default=None)
    if best is None or len(found[best]) == 1:
        return those
    source, aspect, _ = next(f[best] for f in facts if best in f)
    fork = Fork(best, _look(source, aspect), {})
    for specialisation in reversed(those):
        added(fork, specialisation)
    return fork


def _look(source: Source, aspect: str) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
    context = Context()
    context.names.reserve(["args", "kwargs"])
    text = f"lambda args, kwargs: {aspect.format(source.expression(context))}"
    return eval(text, context.globals)  # type: ignore[no-any-return]


def facts_of(specialisation: Specialisation) -> Facts:
    """Return what a specialisation expects, as far as a dict can look it up."""
    program = specialisation.program
    tensors = [TensorGuard(i.source, i.metadata) for i in program.inputs]
    numbers = [
        ValueGuard(number.source, value)
        for number, value in fixed_numbers(program.numbers, program.computation.constraints)
    ]
    return _facts([*program.guards, *tensors, *numbers])


def _facts(guards: Sequence[Any]) -> Facts:
    found: Facts = {}
    for guard in guards:
        place = guard.source.place
        if place is not None:
            for aspect, value in guard.facts():
                found[place, aspect] = (guard.source, aspect, value)
    return found
