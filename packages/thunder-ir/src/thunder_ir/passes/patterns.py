"""Finding patterns of calls in a trace, and replacing them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from thunder_ir.keys import key_of
from thunder_ir.passes.dataflow import consumers, producers
from thunder_ir.passes.dead_code import dead_code_elimination
from thunder_ir.passes.decorator import trace_pass
from thunder_ir.passes.rewriting import KEEP, rewrite
from thunder_ir.passes.traits import has_effect, is_random
from thunder_ir.proxies import Proxy
from thunder_ir.symbols import BoundSymbol, Symbol
from thunder_ir.trace import Trace


class Hole:
    """A hole in a pattern: matches any argument, the same one wherever it stands.

    Args:
        name: under which the match holds what stands there.
        where: what the argument must fulfil, if not everything.
    """

    __slots__ = ("name", "where")

    def __init__(self, name: str, where: Callable[[Any], bool] | None = None) -> None:
        self.name = name
        self.where = where

    def __repr__(self) -> str:
        return f"Hole({self.name!r})"


@dataclass(frozen=True, slots=True)
class Call:
    """A pattern: a call of one of some symbols, whose arguments match patterns.

    Args:
        symbols: the symbol, or several of which any will do.
        args: for each positional argument a hole, a pattern of the call that makes it, or a constant that it equals.
            Sequences match item by item.
        name: under which the match holds the bound symbol, if anyone asks.
    """

    symbols: Symbol | tuple[Symbol, ...]
    args: tuple[Any, ...]
    name: str = ""


@dataclass(slots=True)
class Match:
    """Where a pattern was found.

    Args:
        values: what the holes stand for.
        calls: the bound symbols matched, the last of them last.
        named: those that the pattern names.
    """

    values: dict[str, Any] = field(default_factory=dict)
    calls: list[BoundSymbol] = field(default_factory=list)
    named: dict[str, BoundSymbol] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def match(pattern: Call, bound: BoundSymbol, made_by: dict[str, BoundSymbol]) -> Match | None:
    """Return how ``pattern`` fits the call, or ``None``.

    Args:
        pattern: of the call and of those that make its arguments.
        bound: the call.
        made_by: for every name the bound symbol that defines it, see :func:`~thunder_ir.passes.producers`.
    """
    found = Match()
    return found if _fits(pattern, bound, made_by, found) else None


def _fits(pattern: Call, bound: BoundSymbol, made_by: dict[str, BoundSymbol], found: Match) -> bool:
    symbols = pattern.symbols if isinstance(pattern.symbols, tuple) else (pattern.symbols,)
    if not any([bound.symbol is symbol for symbol in symbols]):
        return False
    if bound.kwargs or len(bound.args) != len(pattern.args):
        return False
    for want, have in zip(pattern.args, bound.args, strict=True):
        if not _fits_argument(want, have, made_by, found):
            return False
    if bound not in found.calls:
        found.calls.append(bound)
    if pattern.name:
        found.named[pattern.name] = bound
    return True


def _fits_argument(want: Any, have: Any, made_by: dict[str, BoundSymbol], found: Match) -> bool:
    if isinstance(want, Hole):
        if want.name in found.values:
            return bool(key_of(found.values[want.name]) == key_of(have))
        found.values[want.name] = have
        return want.where is None or want.where(have)
    if isinstance(want, Call):
        producer = made_by.get(have.name) if isinstance(have, Proxy) else None
        if producer is None or producer.output is not have and not _is_output(producer, have):
            return False
        return _fits(want, producer, made_by, found)
    if isinstance(want, (tuple, list)) and isinstance(have, (tuple, list)) and len(want) == len(have):
        return all([_fits_argument(w, h, made_by, found) for w, h in zip(want, have, strict=True)])
    return bool(key_of(want) == key_of(have))


def _is_output(producer: BoundSymbol, proxy: Proxy) -> bool:
    """Whether the proxy is the whole output of the call, not one of several."""
    return isinstance(producer.output, Proxy) and producer.output.name == proxy.name


def matches(trace: Trace, pattern: Call) -> Iterator[Match]:
    """Yield where a pattern is found, in order; they may share calls."""
    made_by = producers(trace)
    for bound in trace.bound_symbols:
        found = match(pattern, bound, made_by)
        if found is not None:
            yield found


@trace_pass
def replace_patterns(trace: Trace, rules: Iterable[tuple[Call, Callable[[Match], Any]]]) -> Trace:
    """Replace what patterns match by what functions make of the matches.

    A match is replaced only if nothing but itself reads what it computes on the way, and no call of it has an effect or
    draws random numbers. Of several patterns, the first that fits wins; matches do not share calls.

    Args:
        trace: the program.
        rules: a pattern each, and a function of the match that calls symbols and returns what takes the place of the
            matched call's output, or ``KEEP`` to leave it.

    Example:
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> from thunder_ir.passes import Hole, Call, replace_patterns
        >>> exp, log = (Symbol(n, "prims", meta=lambda a: a.like()) for n in ("exp", "log"))
        >>> rule = Call(log, (Call(exp, (Hole("x"),)),)), lambda found: found["x"]
        >>> print(replace_patterns(trace_of(lambda x: exp(log(exp(x))), Tensor((2,))), [rule]))
        def program(x: "float32[2]"):
            t2 = _prims_exp(x)  # float32[2]
            return t2
    """
    chosen = _chosen(trace, list(rules))
    if not chosen:
        return trace

    def visit(bound: BoundSymbol) -> Any:
        key = _identity(bound)
        if key not in chosen:
            return KEEP
        function, found = chosen[key]
        return function(found)

    return dead_code_elimination(rewrite(trace, visit))


def _identity(bound: BoundSymbol) -> str:
    """A call by the first name that it defines, which stays while its arguments are replaced."""
    outputs = bound.outputs
    return outputs[0].name if outputs else ""


def _chosen(trace: Trace, rules: list[Any]) -> dict[str, tuple[Callable[[Match], Any], Match]]:
    """For calls that end a match, by the name they define: what replaces it, and the match."""
    made_by, read_by = producers(trace), consumers(trace)
    outputs = {p.name for p in trace.outputs}
    used: set[str] = set()
    chosen: dict[str, tuple[Callable[[Match], Any], Match]] = {}
    for bound in reversed(trace.bound_symbols):
        for pattern, function in rules:
            found = match(pattern, bound, made_by)
            if found is None or not _replaceable(found, read_by, outputs):
                continue
            names = {_identity(call) for call in found.calls}
            if used.isdisjoint(names):
                used |= names
                chosen[_identity(bound)] = (function, found)
                break
    return chosen


def _replaceable(found: Match, read_by: dict[str, list[BoundSymbol]], outputs: set[str]) -> bool:
    inside = {id(call) for call in found.calls}
    for call in found.calls:
        if has_effect(call) or is_random(call):
            return False
    for call in found.calls[:-1]:
        for proxy in call.outputs:
            if proxy.name in outputs or any([id(reader) not in inside for reader in read_by[proxy.name]]):
                return False
    return True
