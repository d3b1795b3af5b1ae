"""The epilogue of a program: its writes to the outside world, and the result, as lines of Python.

What is fetched from the outside world is fetched before anything is written, and what occurs in several places is made
once, so that it is one object in all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch.autograd.graph import increment_version

from thunder_guards.places import WRITTEN
from thunder_guards.program import Effect, Program
from thunder_guards.templates import Built, Outside, children_of, has_identity, within
from thunder_ir import Context, NumberProxy, Proxy, literal


def epilogue_lines(program: Program, context: Context) -> list[str]:
    """Return the lines, without indentation; the last one returns the result."""
    lines: list[str] = []
    trees = [tree for effect in program.effects for tree in (effect.target, effect.value)] + [program.result]
    names = dict(_fetched(trees, context, lines)) if program.effects else {}
    repeated = _repeated(trees)

    def expression_of(tree: object) -> str:
        for part in within(tree):
            if id(part) in repeated and id(part) not in names:
                text = expression(part, context, names)
                names[id(part)] = context.names.fresh("part")
                lines.append(f"{names[id(part)]} = {text}")
        return expression(tree, context, names)

    for effect in program.effects:
        target = expression_of(effect.target)
        lines.append(_effect(effect, target, expression_of(effect.value), context))
    lines.append(f"return {expression_of(program.result)}")
    return lines


def _fetched(trees: list[Any], context: Context, lines: list[str]) -> Iterator[tuple[int, str]]:
    """Name what comes from outside and is not held, before the effects change where it is found."""
    known: dict[str, str] = {}
    for tree in trees:
        for part in within(tree):
            if isinstance(part, Outside) and not part.source.is_held:
                text = part.source.expression(context)
                if text not in known:
                    known[text] = context.names.fresh("outside")
                    lines.append(f"{known[text]} = {text}")
                yield id(part), known[text]


def _repeated(trees: list[Any]) -> set[int]:
    """Return the identities of the parts that are made by the program and occur in several places."""
    seen: set[int] = set()
    repeated: set[int] = set()

    def visit(tree: object) -> None:
        if has_identity(tree):
            if id(tree) in seen:
                repeated.add(id(tree))
                return
            seen.add(id(tree))
        for part in children_of(tree):
            visit(part)

    for tree in trees:
        visit(tree)
    return repeated


def _effect(effect: Effect, target: str, value: str, context: Context) -> str:
    match effect.kind:
        case "tensor":
            copies = COPIES[effect.key]
            return f"{context.object(copies, copies.__name__)}({target}, {value})"
        case "metadata":
            return f"{context.object(effect.key, effect.key.__name__)}({target})"
        case "memory":
            return f"{context.object(fill, 'fill')}({target}, {value}[0])"
        case "leaf":
            return f"{context.object(fill, 'fill')}({target}, {value})"
        case "setting":
            return f"{target}.set({value})"
        case "print":
            sep, end, flush = effect.key
            printer = context.object(print, "print")
            return f"{printer}(*{value}, sep={sep!r}, end={end!r}, file={target}, flush={flush!r})"
        case "warning":
            return f"{target}()"
        case "delete":
            kind, key = effect.key
            return f"{context.object(WRITTEN[kind].remove, 'remove')}({target}, {literal(key, context)})"
        case _:
            return WRITTEN[effect.kind].assignment(target, effect.key, value, context)


def copy_with_history(target: torch.Tensor, value: torch.Tensor) -> None:
    """Make ``value`` what ``target`` holds, and its history that of ``target``."""
    if value is target:  # it was written where autograd links what is computed of it
        return
    with torch.enable_grad():
        target.copy_(value)


def copy_unseen(target: torch.Tensor, value: torch.Tensor) -> None:
    """Make ``value`` what ``target`` holds, behind autograd's back."""
    if value is target:  # it was computed there
        increment_version(target)
        return
    with torch.no_grad():
        target.copy_(value)


def copy_uncounted(target: torch.Tensor, value: torch.Tensor) -> None:
    """Make ``value`` what ``target`` holds, without autograd's version counter noticing it."""
    if value is not target:
        target.data.copy_(value)


def copy_in_inference(target: torch.Tensor, value: torch.Tensor) -> None:
    """Make ``value`` what ``target``, which only inference mode may write to, holds."""
    with torch.inference_mode():
        target.copy_(value)


COPIES = {
    "seen": copy_with_history, "unseen": copy_unseen, "uncounted": copy_uncounted, "inference": copy_in_inference,
}  # fmt: skip


def fill(tensor: torch.Tensor, contents: torch.Tensor) -> None:
    """Give a tensor the memory of ``contents``."""
    tensor.data = contents


def expression(tree: object, context: Context, names: dict[int, str] | None = None) -> str:
    """Return Python source that builds what a template describes.

    Args:
        tree: the template.
        context: the names that the source uses.
        names: for parts that are made already, by identity.
    """
    names = names or {}
    if id(tree) in names:
        return names[id(tree)]
    if isinstance(tree, Outside):
        return tree.source.expression(context)
    if isinstance(tree, Built):
        name = getattr(tree.build, "__name__", "build")
        return f"{context.object(tree.build, name)}({', '.join([expression(p, context, names) for p in tree.parts])})"
    if isinstance(tree, (Proxy, NumberProxy)):
        return tree.name
    if tree.__class__ is tuple:
        return f"({''.join([expression(t, context, names) + ', ' for t in tree])})"
    if tree.__class__ is list:
        return f"[{', '.join([expression(t, context, names) for t in tree])}]"
    if tree.__class__ is dict:
        items = [f"{literal(k, context)}: {expression(v, context, names)}" for k, v in tree.items()]
        return "{" + ", ".join(items) + "}"
    return literal(tree, context)
