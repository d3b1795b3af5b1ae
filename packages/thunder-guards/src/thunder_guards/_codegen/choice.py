"""Telling apart the specialisations that one key leads to, by what their guards expect.

Specialisations that differ in an attribute of a module, or in what a list among the arguments holds, have the same key.
They are arranged as a decision tree: each fork asks one thing that most behind it have a guard for and expect
different answers to; the others are behind it, too. The tree only proposes; the guards of what it proposes decide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from thunder_guards._codegen.specialise import Specialisation
from thunder_guards._guards import GONE, TensorGuard, ValueGuard
from thunder_guards.symbolic import fixed_numbers, told_by_numbers
from thunder_ir import Context

Facts = dict[Hashable, tuple[Callable[[Context], str], Any]]
"""By question: Python source that asks it, and the answer that a specialisation expects."""


@dataclass(slots=True)
class Fork:
    """Specialisations that one question tells apart.

    Args:
        question: what is asked.
        look: ``(args, kwargs) -> answer``.
        branches: by answer.
        rest: those that rely on nothing there.
    """

    question: Hashable
    look: Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
    branches: dict[Hashable, Node]
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
    try:
        while isinstance(node, Fork) and node.rest is None:  # as almost all are: one way leads on
            node = node.branches.get(node.look(args, kwargs))
    except GONE:
        return ()
    if isinstance(node, Specialisation):
        return (node,)
    found: tuple[Specialisation, ...] = ()
    waiting: list[Node | None] = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Fork):
            waiting += (node.rest, node.branch(args, kwargs))
        elif node is not None:
            found += node if isinstance(node, tuple) else (node,)
    return found


def added(node: Node | None, specialisation: Specialisation) -> Node:
    """Return the tree with one more specialisation.

    Args:
        node: the tree, or ``None``. Others may be reading it meanwhile: they find the tree before or after.
        specialisation: what is added.
    """
    return specialisation if node is None else _added(node, specialisation, facts_of(specialisation))


def _added(node: Node, specialisation: Specialisation, facts: Facts) -> Node:
    """Return the tree with one more specialisation, of which these are the facts."""
    fork, fact = None, None
    here: Node | None = node
    while isinstance(here, Fork):
        fork, fact = here, facts.get(here.question)
        here = fork.rest if fact is None else fork.branches.get(fact[1])
    made = specialisation if here is None else _forked(specialisation, facts, here)
    if fork is None:
        return made
    if fact is None:
        fork.rest = made
    else:
        fork.branches[fact[1]] = made
    return node


def _forked(specialisation: Specialisation, facts: Facts, others: Specialisation | tuple[Specialisation, ...]) -> Node:
    """Return a fork at what tells most of the specialisations apart; them as they are if nothing does.

    Args:
        specialisation, facts: the one that is added.
        others: one or more that nothing told apart.
    """
    known = others if isinstance(others, tuple) else (others,)
    those = [(specialisation, facts), *[(other, facts_of(other)) for other in known]]
    answers: dict[Hashable, set[Hashable]] = {}
    for _, each in those:
        for question, (_, answer) in each.items():
            answers.setdefault(question, set()).add(answer)
    best = max(answers, key=lambda question: len(answers[question]), default=None)
    if best is None or len(answers[best]) == 1:
        return (specialisation, *known)
    look = next(each[best][0] for _, each in those if best in each)
    fork = Fork(best, _function(look), {})
    for other, expected in reversed(those):
        _added(fork, other, expected)
    return fork


def _function(look: Callable[[Context], str]) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
    context = Context()
    context.names.reserve(["args", "kwargs"])
    text = f"lambda args, kwargs: {look(context)}"
    return eval(text, context.globals)  # type: ignore[no-any-return]


def facts_of(specialisation: Specialisation) -> Facts:
    """Return what a specialisation expects, as far as a dict can look it up."""
    program = specialisation.program
    tensors = [TensorGuard(i.source, i.metadata) for i in program.inputs]
    numbers = [
        ValueGuard(number.source, value)
        for number, value in fixed_numbers(program.numbers, program.computation.constraints)
    ]
    told = [fact for guard in (*program.guards, *tensors, *numbers) for fact in guard.told()]
    told += [*told_by_numbers(program.numbers, program.computation.constraints), *program.environment.told()]
    return {question: (look, answer) for question, look, answer in told}
