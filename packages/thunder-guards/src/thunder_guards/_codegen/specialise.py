"""A program as one generated function: guards, unpacking, computation, epilogue.

It is all that a call runs which compiles nothing.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from thunder_guards._codegen.epilogue import epilogue_lines
from thunder_guards._codegen.generated import INDENT, Generated
from thunder_guards._codegen.prologue import constraints_of, passed, prologue_lines, unpacked
from thunder_guards._guards.values import SameAsBeforeGuard
from thunder_guards.program import Program
from thunder_guards.templates import proxies_of


@dataclass(frozen=True, slots=True, eq=False)
class Specialisation:
    """A program ready to be called.

    Args:
        program: what it was made of.
        call: ``(args, kwargs, miss) -> result``; calls ``miss(args, kwargs)`` if a guard fails.
        prologue: the readable text of that part of it.
    """

    program: Program
    call: Callable[..., Any]
    prologue: Generated

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
        for guard in (*self.program.guards, *[i.guard for i in self.program.inputs]):
            problem = guard.failure(roots)
            if problem is not None:
                return problem
        return constraints_of(self.program).failure(roots) or self.program.arguments.failure(roots)


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
    prologue = prologue_lines(program, guarded)
    context = prologue.context  # one set of names, since the lines of all parts become one function
    head = [*prologue.lines]
    inputs = passed(program.inputs, program.numbers)
    if returns_result:
        tail = [f"{INDENT}return computation({inputs})"]
    else:
        outputs = _outputs(program)
        head += _unpacked_for_epilogue(program)
        epilogue = [INDENT + line for line in epilogue_lines(program, context)]
        tail = [*_with_leaves(program, f"{outputs}computation({inputs})"), *epilogue]
    names = {"computation": computation}
    text = "\n".join(["def call(args, kwargs, miss):", *head, *tail]) + "\n"
    return Specialisation(
        replace(program, inputs=tuple([replace(i, example=None) for i in program.inputs])),
        Generated(text, context, "call").compile(names),
        Generated(_prologue_text(prologue.functions, head, inputs), context, "prologue"),
    )


def _prologue_text(functions: Sequence[str], lines: Sequence[str], inputs: str) -> str:
    shown = [line.replace("return miss(args, kwargs)", "return None") for line in lines]
    return "\n".join([*functions, "def prologue(args, kwargs):", *shown, f"{INDENT}return ({inputs},)"]) + "\n"


def _unpacked_for_epilogue(program: Program) -> list[str]:
    """Lines that name those of the held tensors that the epilogue writes to or returns, or that become leaves."""
    used = {p.name for p in proxies_of([program.result, *((e.target, e.value) for e in program.effects)])}
    used.update([i.proxy.name for i in program.inputs if i.becomes_leaf])
    _, together = unpacked(program.inputs)
    return [f"{INDENT}{i.proxy.name} = held[{k}]" for k, i in enumerate(together) if i.proxy.name in used]


def _with_leaves(program: Program, line: str) -> list[str]:
    """Return the line that runs the computation, within which inputs that become leaves require grad."""
    names = [i.proxy.name for i in program.inputs if i.becomes_leaf]
    if not names:
        return [INDENT + line]
    on = [f"{INDENT}{name}.requires_grad_()" for name in names]
    off = [f"{INDENT * 2}{name}.requires_grad_(False)" for name in names]
    return [*on, f"{INDENT}try:", INDENT * 2 + line, f"{INDENT}finally:", *off]


def _outputs(program: Program) -> str:
    names = [p.name for p in program.computation.output]
    return f"({', '.join(names)}{',' if len(names) == 1 else ''}) = " if names else ""
