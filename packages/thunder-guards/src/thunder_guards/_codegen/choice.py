"""Telling apart specialisations for calls that are written alike, by what their guards expect.

They are arranged as a decision tree: each fork asks one thing that most behind it have a guard for and expect
different answers to; the others, such as those of symbolic sizes where one asks for a shape, are behind it, too. It
asks for arguments and PyTorch's state, unless what they differ in is an attribute of a module, or a global: a program
relies on thousands of these. The tree only proposes; the guards of what it proposes decide.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from thunder_guards._codegen.shared import shared_function
from thunder_guards._codegen.specialise import Specialisation
from thunder_guards._guards.base import GONE, Guard, Told
from thunder_guards._guards.values import ValueGuard
from thunder_guards.symbolic import fixed_numbers, told_by_numbers
from thunder_ir import Context

Answers = dict[Hashable, tuple[Callable[[Context], str], Any]]
"""By question: Python source that asks it, and the answer that a specialisation expects."""


class Facts:
    """What a specialisation expects, as far as a dict can look it up.

    Args:
        specialisation: of which that is asked.
    """

    def __init__(self, specialisation: Specialisation) -> None:
        self.specialisation = specialisation

    @cached_property
    def of_the_call(self) -> Answers:
        """Of arguments, and of PyTorch's state."""
        program = self.specialisation.program
        numbers, constraints = program.numbers, program.computation.constraints
        fixed = [ValueGuard(number.source, value) for number, value in fixed_numbers(numbers, constraints)]
        guards = [guard for guard in (*self._guards, *fixed) if guard.source.is_of_the_call()]
        return _answers(guards) | _by_question((*told_by_numbers(numbers, constraints), *program.environment.told()))

    @cached_property
    def others(self) -> Answers:
        """Of all else."""
        return _answers([guard for guard in self._guards if not guard.source.is_of_the_call()])

    @property
    def _guards(self) -> Iterator[Guard]:
        program = self.specialisation.program
        return chain(program.guards, [i.guard for i in program.inputs])


def _answers(guards: Iterable[Guard]) -> Answers:
    return _by_question([fact for guard in guards for fact in guard.told()])


def _by_question(told: Iterable[Told]) -> Answers:
    return {question: (look, answer) for question, look, answer in told}


@dataclass(slots=True)
class Fork:
    """Specialisations that one question tells apart.

    Args:
        question: what is asked.
        of_the_call: whether it is asked of arguments, or of PyTorch's state.
        look: ``(args, kwargs) -> answer``.
        branches: by answer.
        rest: those that rely on nothing there.
    """

    question: Hashable
    of_the_call: bool
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
    return specialisation if node is None else _added(node, Facts(specialisation))


def _added(node: Node, facts: Facts) -> Node:
    """Return the tree with one more specialisation, of which these are the facts."""
    fork, fact = None, None
    here: Node | None = node
    while isinstance(here, Fork):
        fork, fact = here, (facts.of_the_call if here.of_the_call else facts.others).get(here.question)
        here = fork.rest if fact is None else fork.branches.get(fact[1])
    made = facts.specialisation if here is None else _forked(facts, here)
    if fork is None:
        return made
    if fact is None:
        fork.rest = made
    else:
        fork.branches[fact[1]] = made
    return node


def _forked(facts: Facts, others: Specialisation | tuple[Specialisation, ...]) -> Node:
    """Return a fork at what tells most of the specialisations apart; them as they are if nothing does.

    Args:
        facts: of the one that is added.
        others: one or more that nothing told apart.
    """
    known = others if isinstance(others, tuple) else (others,)
    those = [facts, *map(Facts, known)]
    fork = _fork([each.of_the_call for each in those], True) or _fork([each.others for each in those], False)
    if fork is None:
        return (facts.specialisation, *known)
    for each in reversed(those):
        _added(fork, each)
    return fork


def _fork(expected: Sequence[Answers], of_the_call: bool) -> Fork | None:
    """Return a fork without branches at what most of several specialisations expect different answers to."""
    answers: dict[Hashable, set[Hashable]] = {}
    for each in expected:
        for question, (_, answer) in each.items():
            answers.setdefault(question, set()).add(answer)
    best = max(answers, key=lambda question: len(answers[question]), default=None)
    if best is None or len(answers[best]) == 1:
        return None
    look = next(each[best][0] for each in expected if best in each)
    return Fork(best, of_the_call, _function(look), {})


def _function(look: Callable[[Context], str]) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
    context = Context()
    context.names.reserve(["args", "kwargs"])
    return shared_function(f"lambda args, kwargs: {look(context)}", context)
