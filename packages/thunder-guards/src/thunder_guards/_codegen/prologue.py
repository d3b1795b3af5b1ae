"""The code of a prologue: conditions that guards hold, and the names of what the computation gets.

Facts about objects that the compiled function holds are checked together, by ``map`` over ``operator.getitem`` and
``operator.is_``, unless they are few and each is written out; the metadata of all tensors in one call into PyTorch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from operator import call, contains, getitem, is_
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

from thunder_guards._codegen.generated import INDENT, Lines
from thunder_guards._codegen.held_facts import HeldFacts, are_told, shared_check
from thunder_guards._codegen.shared import Row, shared_names, shared_row
from thunder_guards._codegen.tensor_checks import asked_one_by_one, checks_keys, tensor_checks
from thunder_guards._guards.arguments import is_of
from thunder_guards._guards.base import GONE, Guard
from thunder_guards._guards.containers import EmptyGuard, MembershipGuard
from thunder_guards._guards.environment import outside_of_levels
from thunder_guards._guards.held import FEW, GATHERED, PartGuard, gathered
from thunder_guards._guards.tensors import ApartInMemoryGuard
from thunder_guards._guards.values import IdentityGuard, ValueGuard, given_by_class
from thunder_guards.program import Input, Program
from thunder_guards.sources import Source
from thunder_guards.symbolic import ConstraintsGuard
from thunder_ir import Context, literal

MANY = 4
"""How many names that must be absent from one dict make a check of their own for it worth while."""


Slotted: TypeAlias = tuple[ValueGuard | IdentityGuard, tuple[Any, Any]]
"""A guard of what a container has at a key, and both."""


class SlotCheck:
    """Checks, in one pass, that containers which the compiled function holds still have what was found in them.

    Args:
        guards: of what is there.
        containers, keys: where.
    """

    __slots__ = ("__weakref__", "containers", "expected", "guards", "keys")

    def __init__(self, guards: Sequence[ValueGuard | IdentityGuard], containers: Row, keys: Row) -> None:
        self.guards, self.containers, self.keys = guards, containers, keys
        self.expected = [guard.value for guard in guards]

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


_SLOT_CHECKS: WeakValueDictionary[tuple[Any, ...], SlotCheck] = WeakValueDictionary()
"""By what they check, for as long as a program asks them."""


def _slot_check(slotted: Sequence[Slotted]) -> SlotCheck:
    """Return the check of guards with slots, one for those that expect the very same objects there."""
    guards, slots = [guard for guard, _ in slotted], [slot for _, slot in slotted]
    containers, keys = (shared_row(row) for row in (zip(*slots, strict=True) if slots else ((), ())))
    key = (id(containers), id(keys), *[(type(guard), id(guard.value)) for guard in guards])
    return _SLOT_CHECKS.setdefault(key, SlotCheck(guards, containers, keys))


def prologue_lines(program: Program, guarded: bool) -> Lines:
    """Return the lines that check a call and name the inputs of the computation.

    Args:
        program: with guards and inputs.
        guarded: whether the guards are checked.
    """
    made = Lines(program)
    context = made.context
    taken = _taken_apart(program, context) if guarded else []
    conditions, seen = _conditions(program, taken, made) if guarded else ([], [])
    if conditions or program.inputs or program.numbers:
        made.add("try:")
        if taken:
            made.add(
                f"{', '.join(taken)}{',' if len(taken) == 1 else ''} = args  # raises if there are more or fewer", 2
            )
        made.add(f"holds = ({conditions[0] if conditions else True}", 2)
        for condition in conditions[1:]:
            made.add(f"and {condition}", 3)
        made.lines[-1] += ")"
        for lines in (_unpacking(program, guarded, taken, seen, context), _numbers(program, guarded, context)):
            if lines:
                made.add("if holds:", 2)
            for line in lines:
                made.add(line, 3)
        made.add(f"except ({', '.join([error.__name__ for error in GONE])}):")
        made.add("holds = False", 2)
        made.add("if not holds:")  # outside of the try: errors of the user's program are none of guards
        made.add("return miss(args, kwargs)", 2)
    return made


def _taken_apart(program: Program, context: Context) -> list[str]:
    """Return names for the positional arguments if they are few, those of the inputs for the inputs among them."""
    number = len(program.arguments.types)
    if number > FEW:
        return []
    inputs = {i.source.place: i.proxy.name for i in unpacked(program.inputs)[0] if i.slot is None}
    arguments = Source(None, "root", "args")
    places = [Source(arguments, "item", k).place for k in range(number)]
    return [inputs.get(place) or context.names.take(f"argument_{k}") for k, place in enumerate(places)]


def _unpacking(
    program: Program, guarded: bool, taken: Sequence[str], seen: Sequence[str], context: Context
) -> list[str]:
    """Return the lines that name the inputs which are not named yet, and check what can only be checked then."""
    single, together = unpacked(program.inputs)
    lines = []
    for i in single:
        if i.proxy.name in taken:
            continue
        found = i.source.expression(context) if i.slot is None else _in_slot(i.slot, context)
        lines.append(f"{i.proxy.name} = {found}")
    if together:
        slots = [i.slot for i in together if i.slot is not None]
        containers, keys = _rows(slots, context)
        lines.append(f"held = tuple(map({context.object(getitem, 'getitem')}, {containers}, {keys}))")
    if program.inputs and guarded:
        named, state = _named(program.inputs), program.environment.environment
        given = passed(program.inputs)
        given = "*args" if given == ", ".join(taken) else given
        lines += tensor_checks(named, len(single), given, seen, state, context)
        for guard, names in _of_inputs(program):
            if together and names[-len(together) :] == [name for _, name in named[len(single) :]]:
                names[-len(together) :] = ["*held"]
            lines += ["if holds:", f"    holds = {guard.condition_of(names, context)}"]
    return lines


def _named(inputs: Sequence[Input]) -> list[tuple[Input, str]]:
    """Return the inputs in the order in which they are passed, each with an expression for it once it is unpacked."""
    single, together = unpacked(inputs)
    return [*[(i, i.proxy.name) for i in single], *[(i, f"held[{k}]") for k, i in enumerate(together)]]


def _of_inputs(program: Program) -> list[tuple[ApartInMemoryGuard, list[str]]]:
    """Return the guards of several tensors that are inputs, each with expressions for them in the inputs' order."""
    guards = [g for g in program.guards if isinstance(g, ApartInMemoryGuard)]
    if not guards:
        return []
    names = {i.source.question: name for i, name in _named(program.inputs)}
    names.pop(None, None)
    order = {name: k for k, name in enumerate(names.values())}
    found = [(g, [names.get(s.question, "") for s in g.sources]) for g in guards]
    return [(g, sorted(those, key=order.__getitem__)) for g, those in found if all(those)]


def _numbers(program: Program, guarded: bool, context: Context) -> list[str]:
    """Return the lines that name the symbolic numbers, among them sizes of tensors that are as expected."""
    lines = [f"{n.proxy.name} = {n.source.expression(context)}" for n in program.numbers]
    if program.numbers and guarded and (constraints := constraints_of(program)).check is not None:
        numbers = ", ".join([n.proxy.name for n in program.numbers])
        broken = context.object(constraints.check, "broken_constraint")
        lines.append(f"holds = {broken}({numbers}) is None")
    return lines


def passed(inputs: Sequence[Input], numbers: Sequence[Any] = ()) -> str:
    """Return the arguments of the computation: tensors one by one, those unpacked together, symbolic numbers."""
    single, together = unpacked(inputs)
    held = ["*held"] if together else []
    return ", ".join([*[i.proxy.name for i in single], *held, *(n.proxy.name for n in numbers)])


def ordered(inputs: Sequence[Input]) -> list[Input]:
    """Return the inputs in the order in which a specialisation passes them."""
    return [i for i in inputs if i.slot is None] + [i for i in inputs if i.slot is not None]


def unpacked(inputs: Sequence[Input]) -> tuple[list[Input], list[Input]]:
    """Return, in the order of both, the inputs that are unpacked one by one and those that are unpacked together."""
    in_order = ordered(inputs)
    slotted = sum([i.slot is not None for i in inputs])
    alone = len(in_order) - slotted if slotted > FEW else len(in_order)
    return in_order[:alone], in_order[alone:]


def _conditions(program: Program, taken: Sequence[str], made: Lines) -> tuple[list[str], list[str]]:
    """Return the guards as expressions, those of one kind about held objects gathered into one; and the names of
    tensors at which these look.

    Args:
        program: whose guards.
        taken: names that the positional arguments were assigned to.
        made: takes the names that the expressions use.
    """
    context = made.context
    guards: defaultdict[type[Guard], list[Any]] = defaultdict(list)
    for g in program.guards:
        guards[g.__class__].append(g)
    slots = [(g, g.slot) for g in (*guards[ValueGuard], *guards[IdentityGuard]) if g.slot is not None]
    absent = {id(g): those for g in guards[MembershipGuard] if (those := g.absent_slots)}
    empty = {id(g): (g, slot) for g in guards[EmptyGuard] if (slot := g.slotted) is not None}
    held = [g for g in guards[PartGuard] if g.part in GATHERED and g.source.is_held and not g.source.is_weak]
    given = [g for g in guards[IdentityGuard] if given_by_class(g)]
    together = {*absent, *empty, *[id(g) for g, _ in slots], *map(id, held), *[id(g) for g, _ in _of_inputs(program)]}
    together.update(map(id, given))
    attends = any(["attention" in bound.symbol.name for bound in program.computation.bound_symbols])
    alone = len(unpacked(program.inputs)[0])
    unwatched = program.environment.unwatched(context, checks_keys(ordered(program.inputs), alone))
    lacking = [slot for those in absent.values() for slot in those]
    slotted = [slot for _, slot in empty.values()]
    told = are_told(sum(map(len, (slots, lacking, slotted, held, given))))
    seen = ordered(program.inputs)[: asked_one_by_one(ordered(program.inputs), alone) or 0] if told else []
    seen = [i for i in seen if i.proxy.name in taken]
    names = [i.proxy.name for i in seen]
    if told:
        level = outside_of_levels()
        slots.append((level, level.slot))
    check = _slot_check(slots)
    conditions = [*program.environment.conditions(context, attends), *([] if told else unwatched)]
    conditions += program.arguments.conditions(context, taken, names)

    def about_held(context: Context) -> list[str]:
        found = [_as_found(check, context)] if slots else []
        found += _absent(lacking, context)
        if len(empty) <= FEW:
            found += [g.condition(context) for g, _ in empty.values()]
        else:
            tables, keys = _rows(slotted, context)
            found.append(f"not any(map({context.object(getitem, 'getitem')}, {tables}, {keys}))")
        return found + gathered(held, context) + [g.condition(context) for g in given]

    if told:
        kinds = tuple([(i.metadata.type, i.metadata.dispatch_keys) for i in seen])
        facts = _facts_of(check, lacking, slotted, held, given, program.environment.modes, kinds)
        looks = [is_of(i.proxy.name, i.metadata.type, context) for i in seen]
        looks += [f"not {name}.is_nested" for name in names]
        conditions.append(_at_once(about_held, names, [*unwatched, *looks], facts, made))
    else:
        conditions += about_held(context)
    others = [g for g in program.guards if id(g) not in together]
    lasting = [g for g in others if type(g) in _LASTING and g.source.place and not g.source.is_of_the_call()]
    if len(lasting) > FEW:
        conditions.append(made.asked(lambda own: [g.condition(own) for g in lasting]))
        asked = set(map(id, lasting))
        others = [g for g in others if id(g) not in asked]
    return conditions + [g.condition(context) for g in others], names


_LASTING = (PartGuard, IdentityGuard)
"""Guards in which the programs of one function seldom differ, where they are about objects that it holds."""


def _facts_of(
    check: SlotCheck,
    lacking: Sequence[tuple[Any, Any]],
    empty: Sequence[tuple[Any, Any]],
    held: Sequence[PartGuard],
    given: Sequence[IdentityGuard],
    modes: int,
    kinds: tuple[tuple[type, int], ...],
) -> HeldFacts:
    """Return the facts that conditions about held objects are about."""
    pairs = [zip(*slots, strict=True) if slots else ((), ()) for slots in (lacking, empty)]
    parts = [[(g.source.held, g.value) for g in held if g.part == part] for part in GATHERED]
    pairs += [zip(*those, strict=True) if those else ((), ()) for those in parts]
    rows = [shared_row(row) for pair in pairs for row in pair]
    ways = [g.source for g in given]
    rows += [shared_row([way.base.held for way in ways]), shared_row([way.key for way in ways])]  # type: ignore[union-attr]
    rows.append(shared_row([g.value for g in given]))
    return HeldFacts(modes, kinds, check.containers, check.keys, check.expected, *rows)


def _at_once(
    conditions: Callable[[Context], list[str]],
    seen: Sequence[str],
    others: Sequence[str],
    facts: HeldFacts,
    made: Lines,
) -> str:
    """Return conditions, most of them about held objects, as one that native code may tell.

    Args:
        conditions: writes those about held objects.
        seen: names of the tensors that native code looks at.
        others: the other conditions.
        facts: that native code tells.
        made: takes the names that the expression uses.
    """
    check = shared_check(facts)
    asked = made.asked(lambda own: [*conditions(own), f"{own.object(check, 'facts')}.found()"])
    known = f"(hold := {made.context.object(check, 'facts')}.hold)({', '.join(seen)})"  # Python calls a name faster
    new_line = f"\n{INDENT * 4}"
    return f"({known}{new_line}or {f'{new_line}and '.join([*others, asked])})"


def _as_found(check: SlotCheck, context: Context) -> str:
    """A condition that containers have what was found in them, checked by identity first."""
    expected, recheck = context.object(check.expected, "expected"), context.object(check.recheck, "recheck")
    if len(check.guards) <= FEW:
        slots = zip(check.containers, check.keys, strict=True)
        same = " and ".join([f"{_in_slot(slot, context)} is {expected}[{k}]" for k, slot in enumerate(slots)])
    else:
        tables, keys = _rows(zip(check.containers, check.keys, strict=True), context)
        found = f"map({context.object(getitem, 'getitem')}, {tables}, {keys})"
        same = f"all(map({context.object(is_, 'is_')}, {found}, {expected}))"
    return f"({same} or {recheck}())"


def _absent(slots: Sequence[tuple[Any, Any]], context: Context) -> list[str]:
    """Conditions that no container has what is beside it: one for those with many names, one for the others.

    They are written out where they are few.
    """
    if len(slots) <= FEW:
        return [f"{literal(n, context)} not in {context.object(c, type(c).__name__)}" for c, n in slots]
    names: dict[int, tuple[Any, list[Any]]] = {}
    for container, name in slots:
        names.setdefault(id(container), (container, []))[1].append(name)
    conditions, rest = [], []
    lacks, sets = [], []
    for container, those in names.values():
        if len(those) >= MANY:
            lacks.append(container.keys().isdisjoint)
            sets.append(shared_names(those))
        else:
            rest += [(container, name) for name in those]
    if len(lacks) <= FEW:
        each = zip(lacks, sets, strict=True)
        conditions = [f"{context.object(check, 'lacks')}({context.object(those, 'names')})" for check, those in each]
    else:
        tables, keys = context.object(lacks, "each_lacks"), context.object(shared_row(sets), "names")
        conditions.append(f"all(map({context.object(call, 'call')}, {tables}, {keys}))")
    if rest:
        tables, keys = _rows(rest, context)
        conditions.append(f"not any(map({context.object(contains, 'contains')}, {tables}, {keys}))")
    return conditions


def _rows(slots: Iterable[tuple[Any, Any]], context: Context) -> tuple[str, str]:
    """Return expressions for the containers of slots, and for their keys."""
    tables, keys = zip(*slots, strict=True)
    return context.object(shared_row(tables), "tables"), context.object(shared_row(keys), "names")


def _in_slot(slot: tuple[Any, Any], context: Context) -> str:
    """Return the expression for what a container that the compiled function holds has at a key."""
    container, key = slot
    return f"{context.object(container, type(container).__name__)}[{literal(key, context)}]"


def constraints_of(program: Program) -> ConstraintsGuard:
    """Return what the symbolic numbers of a program must meet."""
    return ConstraintsGuard(program.numbers, program.computation.constraints)
