"""A program as one generated function: guards, unpacking, computation, epilogue.

What the hit path costs is decided here. Facts about objects that the compiled function holds are checked together, by
``map`` over ``operator.getitem`` and ``operator.is_``, unless they are few and each is written out; the metadata of all
tensors in one call into PyTorch.
"""

from __future__ import annotations

import itertools
import linecache
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import contains, getitem, is_
from typing import Any

import torch

from thunder_frontend.epilogue import epilogue_lines
from thunder_frontend.guards import (
    FEW,
    GATHERED,
    GONE,
    EmptyGuard,
    Guard,
    HeldPartGuard,
    IdentityGuard,
    MembershipGuard,
    SameAsBeforeGuard,
    TensorGuard,
    ValueGuard,
    checker,
    gathered,
    python_checker,
)
from thunder_frontend.outputs import proxies_of
from thunder_frontend.program import OWN_NAMES, Input, Program
from thunder_frontend.sources import Source
from thunder_frontend.symbolic import ConstraintsGuard
from thunder_ir import Context, Names, flat_proxies, literal

_NUMBERS = itertools.count()
INDENT = "    "
MANY = 4
"""How many names that must be absent from one dict make a check of their own for it worth while."""


class SlotCheck:
    """Checks, in one pass, that containers which the compiled function holds still have what was found in them.

    Args:
        guards: of kind :class:`ValueGuard` or :class:`IdentityGuard`, each with a slot.
    """

    __slots__ = ("containers", "expected", "guards", "keys")

    def __init__(self, guards: Sequence[Guard]) -> None:
        self.guards = list(guards)
        self.containers = [g.slot[0] for g in guards]  # type: ignore[index]
        self.keys = [g.slot[1] for g in guards]  # type: ignore[index]
        self.expected = [g.value for g in guards]  # type: ignore[attr-defined]

    def recheck(self) -> bool:
        """Check by value where identity failed; what is equal becomes what is expected."""
        for index, guard in enumerate(self.guards):
            now = self.containers[index][self.keys[index]]
            if now is self.expected[index]:
                continue
            if guard.problem(now) is not None:
                return False
            self.expected[index] = now
        return True


@dataclass(frozen=True, slots=True, eq=False)
class Generated:
    """The text of a generated function.

    Args:
        text: its definition.
        context: the names that it uses.
        name: of the function.
    """

    text: str
    context: Context = field(repr=False)
    name: str = "prologue"

    def python(self) -> str:
        """Return the text."""
        return self.text

    def __str__(self) -> str:
        return self.text

    def compile(self, names: Mapping[str, Any]) -> Callable[..., Any]:
        """Return the function; tracebacks through it show its lines."""
        filename = f"<thunder {self.name} {next(_NUMBERS)}>"
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(keepends=True), filename)
        scope = {**self.context.globals, **names, "__name__": "thunder.generated"}
        exec(compile(self.text, filename, "exec"), scope)
        return scope[self.name]  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True, eq=False)
class Specialisation:
    """A program ready to be called.

    Args:
        program: what it was made of.
        call: ``(args, kwargs, miss) -> result``; calls ``miss(args, kwargs)`` if a guard fails.
        prologue, epilogue: readable texts of its parts.
    """

    program: Program
    call: Callable[..., Any]
    prologue: Generated
    epilogue: Generated

    def relies_on(self) -> list[Any]:
        """Return the objects among the arguments that it was compiled for, and does not keep alive."""
        found = [g.reference() for g in self.program.guards if isinstance(g, SameAsBeforeGuard)]
        return [value for value in found if value is not None]

    def forget(self) -> None:
        """Drop the text of the generated function, which tracebacks show."""
        linecache.cache.pop(self.call.__code__.co_filename, None)

    def failure(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
        """Say which guard does not hold for a call, with old and new value; ``None`` if all hold."""
        roots: dict[str, Any] = {"args": args, "kwargs": kwargs}
        problem = self.program.environment.failure(roots)
        if problem is not None:
            return problem
        for guard in (*self.program.guards, *(TensorGuard(i.source, i.metadata, i.slot) for i in self.program.inputs)):
            problem = guard.failure(roots)
            if problem is not None:
                return problem
        return _constraints(self.program).failure(roots) or self.program.arguments.failure(roots)


class _Lines:
    """The lines of a function in the making, and the names that it uses."""

    def __init__(self, program: Program) -> None:
        names = Names(
            [p.name for p in program.computation.inputs] + [p.name for p in flat_proxies(program.computation.output)]
        )
        names.reserve(OWN_NAMES)
        self.context = Context(names)
        self.lines: list[str] = []

    def add(self, line: str, depth: int = 1) -> None:
        self.lines.append(INDENT * depth + line)


def specialise(
    program: Program, computation: Callable[..., Any], returns_result: bool, guarded: bool = True
) -> Specialisation:
    """Return the program as a function.

    Args:
        program: with guards, inputs and effects.
        computation: takes the input tensors, returns the computation's outputs.
        returns_result: whether ``computation`` returns the result of the program itself rather than a tuple of outputs.
        guarded: whether the function checks the guards; without, the caller answers for them.
    """
    prologue = _prologue(program, guarded)
    epilogue = _epilogue(program, returns_result, prologue.context)
    head = [*prologue.lines]
    inputs = _passed(program.inputs, program.numbers)
    if returns_result:
        tail = [f"{INDENT}return computation({inputs})"]
    else:
        outputs = _outputs(program)
        head += _unpacked_for_epilogue(program)
        tail = [*_with_leaves(program, f"{outputs}computation({inputs})"), *epilogue.lines]
    context = prologue.context
    names = {"computation": computation}
    text = "\n".join(["def call(args, kwargs, miss):", *head, *tail]) + "\n"
    return Specialisation(
        replace(program, inputs=tuple([replace(i, example=None) for i in program.inputs])),
        Generated(text, context, "call").compile(names),
        Generated(_prologue_text(head, inputs), context, "prologue"),
        Generated(_epilogue_text(program, epilogue, returns_result), epilogue.context, "epilogue"),
    )


def around(program: Program) -> tuple[Generated, Generated]:
    """Return prologue and epilogue as they can be read before the computation is compiled."""
    prologue = _prologue(program, guarded=True)
    epilogue = _epilogue(program, False, prologue.context)
    inputs = _passed(program.inputs, program.numbers)
    return (
        Generated(_prologue_text(prologue.lines, inputs), prologue.context, "prologue"),
        Generated(_epilogue_text(program, epilogue, False), prologue.context, "epilogue"),
    )


def _prologue_text(lines: Sequence[str], inputs: str) -> str:
    shown = [line.replace("return miss(args, kwargs)", "return None") for line in lines]
    return "\n".join(["def prologue(args, kwargs):", *shown, f"{INDENT}return ({inputs},)"]) + "\n"


def _passed(inputs: Sequence[Input], numbers: Sequence[Any] = ()) -> str:
    """The arguments of the computation: tensors unpacked one by one, those unpacked together, open numbers."""
    single, together = _unpacked(inputs)
    held = ["*held"] if together else []
    return ", ".join([*[i.proxy.name for i in single], *held, *(n.proxy.name for n in numbers)])


def _unpacked_for_epilogue(program: Program) -> list[str]:
    """Lines that name those of the held tensors that the epilogue writes to or returns, or that become leaves."""
    used = {p.name for p in proxies_of([program.result, *((e.target, e.value) for e in program.effects)])}
    used.update([i.proxy.name for i in program.inputs if i.becomes_leaf])
    _, together = _unpacked(program.inputs)
    return [f"{INDENT}{i.proxy.name} = held[{k}]" for k, i in enumerate(together) if i.proxy.name in used]


def ordered(inputs: Sequence[Input]) -> list[Input]:
    """Return the inputs in the order in which a specialisation passes them."""
    return [i for i in inputs if i.slot is None] + [i for i in inputs if i.slot is not None]


def _unpacked(inputs: Sequence[Input]) -> tuple[list[Input], list[Input]]:
    """Return, in the order of both, the inputs that are unpacked one by one and those that are unpacked together."""
    in_order = ordered(inputs)
    slotted = sum([i.slot is not None for i in inputs])
    alone = len(in_order) - slotted if slotted > FEW else len(in_order)
    return in_order[:alone], in_order[alone:]


def _in_slot(slot: tuple[Any, Any], context: Context) -> str:
    """Return the expression for what a container that the compiled function holds has at a key."""
    container, key = slot
    return f"{context.object(container, type(container).__name__)}[{literal(key, context)}]"


def _prologue(program: Program, guarded: bool) -> _Lines:
    made = _Lines(program)
    context = made.context
    conditions = _conditions(program, context) if guarded else []
    single, together = _unpacked(program.inputs)
    if conditions or together or single or program.numbers:
        made.add("try:")
        made.add(f"holds = ({conditions[0] if conditions else True}", 2)
        for condition in conditions[1:]:
            made.add(f"and {condition}", 3)
        made.lines[-1] += ")"
        made.add("if holds:", 2)
        for i in single:
            found = i.source.expression(context) if i.slot is None else _in_slot(i.slot, context)
            made.add(f"{i.proxy.name} = {found}", 3)
        if together:
            containers = context.object([i.slot[0] for i in together], "tables")  # type: ignore[index]
            keys = context.object([i.slot[1] for i in together], "names")  # type: ignore[index]
            made.add(f"held = tuple(map({context.object(getitem, 'getitem')}, {containers}, {keys}))", 3)
        if guarded:
            made.lines += [INDENT * 3 + line for line in _without_nested(program.inputs, context)]
        for n in program.numbers:
            made.add(f"{n.proxy.name} = {n.source.expression(context)}", 3)
        if program.numbers and guarded and (constraints := _constraints(program)).check is not None:
            numbers = ", ".join([n.proxy.name for n in program.numbers])
            made.add(f"holds = {context.object(constraints.check, 'broken_constraint')}({numbers}) is None", 3)
        if made.lines[-1].endswith("if holds:"):
            made.lines.pop()
        made.add(f"except ({', '.join([error.__name__ for error in GONE])}):")
        made.add("holds = False", 2)
        made.add("if not holds:")  # outside of the try: errors of the user's program are none of guards
        made.add("return miss(args, kwargs)", 2)
    if program.inputs and guarded:
        in_order = ordered(program.inputs)
        metadata = [i.metadata for i in in_order]
        twice = any([i.becomes_leaf for i in in_order])  # which the faster check refuses
        check = python_checker(metadata) if twice else checker([i.example for i in in_order], metadata)
        check = context.object(check, "check_tensors")
        made.add(f"if not {check}({_passed(program.inputs)}):")
        made.add("return miss(args, kwargs)", 2)
    return made


def _without_nested(inputs: Sequence[Input], context: Context) -> list[str]:
    """Return the line that looks for nested tensors of the old kind, at which PyTorch's check ends the process.

    Nobody looks at parameters and buffers of modules: there are many, and PyTorch has no modules that compute with
    nested ones. The classes of arguments are known before.
    """
    together = {id(i): f"held[{k}]" for k, i in enumerate(_unpacked(inputs)[1])}
    plain = []
    for i in inputs:
        if i.metadata.type in (torch.Tensor, torch.nn.Parameter) and not _in_table(i):
            name, kind = together.get(id(i), i.proxy.name), i.metadata.type
            if not _is_argument(i.source):
                plain.append(f"{name}.__class__ is {context.object(kind, kind.__name__)}")
            plain.append(f"not {name}.is_nested")
    return [f"holds = {' and '.join(plain)}"] if plain else []


def _is_argument(source: Source) -> bool:
    return source.base is not None and source.base.base is None and not source.base.is_held


def _in_table(given: Input) -> bool:
    """Whether an input is one of the parameters or buffers of a module."""
    base = given.source.base
    module = base.held if base is not None and base.is_held else None
    return isinstance(module, torch.nn.Module) and given.slot is not None and given.slot[0] is not module.__dict__


def _with_leaves(program: Program, line: str) -> list[str]:
    """Return the line that runs the computation, within which inputs that become leaves require grad."""
    names = [i.proxy.name for i in program.inputs if i.becomes_leaf]
    if not names:
        return [INDENT + line]
    on = [f"{INDENT}{name}.requires_grad_()" for name in names]
    off = [f"{INDENT * 2}{name}.requires_grad_(False)" for name in names]
    return [*on, f"{INDENT}try:", INDENT * 2 + line, f"{INDENT}finally:", *off]


def _constraints(program: Program) -> ConstraintsGuard:
    return ConstraintsGuard(program.numbers, program.computation.constraints)


def _conditions(program: Program, context: Context) -> list[str]:
    """The guards as expressions, those of one kind about held objects gathered into one."""
    guards: defaultdict[type[Guard], list[Any]] = defaultdict(list)
    for g in program.guards:
        guards[g.__class__].append(g)
    slots = [g for g in (*guards[ValueGuard], *guards[IdentityGuard]) if g.slot is not None]
    absent = [g for g in guards[MembershipGuard] if g.absent_slot is not None]
    empty = [g for g in guards[EmptyGuard] if g.slotted is not None]
    held = [g for g in guards[HeldPartGuard] if g.part in GATHERED and not g.source.is_weak]
    together = {id(g) for g in (*slots, *absent, *empty, *held)}
    conditions = [f"{context.object(program.environment.checker(), 'same_environment')}()"]
    modes = context.object(torch._C._len_torch_function_stack, "torch_function_modes")
    conditions.append(f"{modes}() == {program.environment.modes}" if program.environment.modes else f"not {modes}()")
    conditions.append(f"not {context.object(torch._C._are_functorch_transforms_active, 'functorch_active')}()")
    conditions += program.arguments.conditions(context)
    if slots:
        conditions.append(_as_found(slots, context))
    conditions += _absent([g.absent_slot for g in absent], context)
    if len(empty) <= FEW:
        conditions += [g.condition(context) for g in empty]
    else:
        tables, keys = zip(*[g.slotted for g in empty], strict=True)
        tables, keys = context.object(list(tables), "tables"), context.object(list(keys), "names")
        conditions.append(f"not any(map({context.object(getitem, 'getitem')}, {tables}, {keys}))")
    conditions += gathered(held, context)
    return conditions + [g.condition(context) for g in program.guards if id(g) not in together]


def _as_found(guards: Sequence[Guard], context: Context) -> str:
    """A condition that containers have what was found in them, checked by identity first."""
    check = SlotCheck(guards)
    expected, recheck = context.object(check.expected, "expected"), context.object(check.recheck, "recheck")
    if len(guards) <= FEW:
        same = " and ".join([f"{_in_slot(g.slot, context)} is {expected}[{k}]" for k, g in enumerate(guards)])
    else:
        tables, keys = context.object(check.containers, "tables"), context.object(check.keys, "names")
        found = f"map({context.object(getitem, 'getitem')}, {tables}, {keys})"
        same = f"all(map({context.object(is_, 'is_')}, {found}, {expected}))"
    return f"({same} or {recheck}())"


def _absent(slots: Sequence[tuple[Any, Any]], context: Context) -> list[str]:
    """Conditions that no container has what is beside it: one for all of them, one more for each with many names.

    They are written out where they are few.
    """
    if len(slots) <= FEW:
        return [f"{literal(n, context)} not in {context.object(c, type(c).__name__)}" for c, n in slots]
    names: dict[int, tuple[Any, list[Any]]] = {}
    for container, name in slots:
        names.setdefault(id(container), (container, []))[1].append(name)
    conditions, rest = [], []
    for container, those in names.values():
        if len(those) >= MANY and isinstance(container, Mapping):
            lacks = context.object(container.keys().isdisjoint, "lacks")
            conditions.append(f"{lacks}({context.object(frozenset(those), 'names')})")
        else:
            rest += [(container, name) for name in those]
    if rest:
        tables, keys = context.object([c for c, _ in rest], "tables"), context.object([n for _, n in rest], "names")
        conditions.append(f"not any(map({context.object(contains, 'contains')}, {tables}, {keys}))")
    return conditions


def _outputs(program: Program) -> str:
    names = [p.name for p in program.computation.output]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''}) = " if names else ""


def _epilogue(program: Program, returns_result: bool, context: Context) -> _Lines:
    made = _Lines(program)
    made.context = context  # one set of names, since the text of both becomes one function
    if not returns_result:
        for line in epilogue_lines(program, context):
            made.add(line)
    return made


def _epilogue_text(program: Program, epilogue: _Lines, returns_result: bool) -> str:
    names = [p.name for p in program.computation.inputs]
    if returns_result:
        return f"def epilogue({', '.join([*names, 'result'])}):\n{INDENT}return result\n"
    names += [p.name for p in program.computation.output]
    return "\n".join([f"def epilogue({', '.join(names)}):", *epilogue.lines]) + "\n"
