"""The epilogue of a program, a trace: its writes to external state, and the result.

What is fetched from external state is fetched before anything is written, and what occurs in several places is made
once, so that it is one object in all of them. The lines of the trace are those of the generated code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch.autograd.graph import increment_version

from thunder_guards.places import WRITTEN
from thunder_guards.program import OWN_NAMES, Effect, Program
from thunder_guards.templates import Built, External, children_of, has_identity, within
from thunder_ir import (
    AnyProxy,
    BoundSymbol,
    CollectionProxy,
    Context,
    Names,
    OpTags,
    Proxy,
    Symbol,
    TensorProxy,
    Trace,
    literal,
    substitute,
)
from thunder_ir.codegen import comment, print_bound


def epilogue_lines(program: Program, context: Context) -> list[str]:
    """Return the lines, without indentation; the last one returns the result."""
    trace = epilogue_trace(program, context.names)
    lines = [line for bound in trace.bound_symbols for line in print_bound(bound, context)]
    return [*lines, f"return {literal(trace.output, context)}"]


def epilogue_trace(program: Program, names: Names | None = None) -> Trace:
    """Return what a program writes and returns: of the arguments, and of what its computation gets and returns.

    Args:
        program: whose epilogue.
        names: for what it fetches and builds; ``None`` for names that the computation leaves free.
    """
    values = {p.name: p for p in (*program.computation.inputs, *program.computation.output)}
    if names is None:
        names = Names([*values, *OWN_NAMES])
    trees = [tree for effect in program.effects for tree in (effect.target, effect.value)] + [program.result]
    parts = _Parts(trees, names)
    if program.effects:
        parts.fetch(trees)
    for effect in program.effects:
        bound = write(effect.kind, parts.made(effect.target), effect.key, parts.made(effect.value))
        parts.calls.append(bound)
    output = parts.made(program.result)
    return Trace("epilogue", (*arguments(), *values.values()), tuple(parts.calls), output)


def arguments() -> tuple[Proxy, ...]:
    """Return what stands for the arguments of a call in prologue and epilogue, where ways to values begin."""
    return CollectionProxy((), "args"), CollectionProxy({}, "kwargs")


def write(kind: str, target: object, key: object, value: object) -> BoundSymbol:
    """Return the call that makes a write in an epilogue; the arguments are those of ``Effect``."""
    return BoundSymbol(WRITE, (kind, target, key, value), {}, None)


def tensor_writes(trace: Trace) -> Iterator[tuple[TensorProxy, TensorProxy]]:
    """Yield the tensors from outside that an epilogue writes to, each with what it writes."""
    for bound in trace.bound_symbols:
        if bound.symbol is WRITE and bound.args[0] == "tensor":
            _, target, _, value = bound.args
            if isinstance(target, TensorProxy) and isinstance(value, TensorProxy):
                yield target, value


def with_epilogue(program: Program, trace: Trace) -> Program:
    """Return a program that writes and returns what a changed epilogue does.

    Raises:
        ValueError: it is none: it does something else, or reads what the computation neither gets nor returns.
    """
    known: dict[str, Any] = {p.name: p for p in (*program.computation.inputs, *program.computation.output)}
    effects = []
    for bound in trace.bound_symbols:
        _check_read(bound.inputs, known)
        if bound.symbol is WRITE:
            kind, target, key, value = bound.args
            effects.append(Effect(kind, substitute(target, known), key, substitute(value, known)))
        elif bound.symbol is FETCH or bound.symbol is PART:
            known[bound.output.name] = substitute(bound.args[0], known)
        else:
            raise ValueError(f"an epilogue fetches, builds and writes; {bound.symbol.id} does none of these")
    _check_read(trace.outputs, known)
    return replace(program, effects=tuple(effects), result=substitute(trace.output, known))


def _check_read(proxies: Iterable[Proxy], known: dict[str, Any]) -> None:
    for proxy in proxies:
        if proxy.name not in known:
            raise ValueError(f"the epilogue reads {proxy.name}, which the computation neither gets nor returns")


class _Parts:
    """What an epilogue fetches and builds.

    Args:
        trees: templates of what it writes and returns.
        names: for what occurs in several places.
    """

    def __init__(self, trees: Iterable[Any], names: Names) -> None:
        self.calls: list[BoundSymbol] = []
        self._names = names
        self._repeated = _repeated(trees)
        self._known: dict[int, Proxy] = {}

    def fetch(self, trees: Iterable[Any]) -> None:
        """Fetch what comes from outside and is not held, before the writes change where it is found."""
        known: dict[Any, Proxy] = {}
        for part in [part for tree in trees for part in within(tree)]:
            if isinstance(part, External) and not part.source.is_held:
                place = part.source.place or id(part.source)
                if place not in known:
                    known[place] = self._call(FETCH, part, "outside")
                self._known[id(part)] = known[place]

    def made(self, tree: Any) -> Any:
        """Return a template with what has a name by now in the place of its parts."""
        if id(tree) in self._known:
            return self._known[id(tree)]
        made = tree
        if isinstance(tree, Built):
            made = Built(tree.build, tuple(map(self.made, tree.parts)))
        elif tree.__class__ in (tuple, list):
            made = tree.__class__(map(self.made, tree))
        elif tree.__class__ is dict:
            made = {key: self.made(value) for key, value in tree.items()}
        if id(tree) in self._repeated:
            made = self._known[id(tree)] = self._call(PART, made, "part")
        return made

    def _call(self, symbol: Symbol, tree: object, hint: str) -> Proxy:
        proxy = AnyProxy(self._names.fresh(hint))
        self.calls.append(BoundSymbol(symbol, (tree,), {}, proxy))
        return proxy


def _print_made(bound: BoundSymbol, context: Context) -> list[str]:
    made, told = bound.output, "" if type(bound.output) is AnyProxy else f"  # {comment(bound.output.type_string)}"
    return [f"{made.name} = {literal(bound.args[0], context)}{told}"]


def _print_write(bound: BoundSymbol, context: Context) -> list[str]:
    kind, target, key, value = bound.args
    return [_written(kind, literal(target, context), key, literal(value, context), context)]


FETCH = Symbol("fetch", "around", printer=_print_made, tags=frozenset({OpTags.PROLOGUE}))
"""``fetch(outside)``: what is found of external state: the arguments, or what the compiled function holds."""
PART = Symbol("part", "around", printer=_print_made)
"""``part(template)``: an object that the program makes, and which is to be one in several places."""
WRITE = Symbol("write", "around", printer=_print_write, tags=frozenset({OpTags.DONT_DCE}))
"""``write(kind, target, key, value)``: a write to external state."""


def _repeated(trees: Iterable[Any]) -> set[int]:
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


def _written(kind: str, target: str, key: Any, value: str, context: Context) -> str:
    match kind:
        case "tensor":
            copies = COPIES[key]
            return f"{context.object(copies, copies.__name__)}({target}, {value})"
        case "metadata":
            return f"{context.object(key, key.__name__)}({target})"
        case "memory":
            return f"{context.object(fill, 'fill')}({target}, {value}[0])"
        case "leaf":
            return f"{context.object(fill, 'fill')}({target}, {value})"
        case "setting":
            return f"{target}.set({value})"
        case "print":
            sep, end, flush = key
            printer = context.object(print, "print")
            return f"{printer}(*{value}, sep={sep!r}, end={end!r}, file={target}, flush={flush!r})"
        case "warning":
            return f"{target}()"
        case "delete":
            place, key = key
            return f"{context.object(WRITTEN[place].remove, 'remove')}({target}, {literal(key, context)})"
        case _:
            return WRITTEN[kind].assignment(target, key, value, context)


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
    elif target.requires_grad or value.requires_grad:
        with torch.no_grad():
            target.copy_(value)
    else:  # autograd has nothing to record
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
