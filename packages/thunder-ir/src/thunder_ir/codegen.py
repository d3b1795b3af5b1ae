"""Traces as Python source, and source as functions."""

from __future__ import annotations

import importlib
import itertools
import linecache
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thunder_ir.literals import Context, literal
from thunder_ir.names import Names, is_name
from thunder_ir.proxies import Proxy
from thunder_ir.repetition import find_repetition
from thunder_ir.symbols import BoundSymbol, Symbol
from thunder_ir.trees import flat_proxies

if TYPE_CHECKING:
    from thunder_ir.trace import Trace

_FILE_NUMBERS = itertools.count()  # one file name per generated program, so that tracebacks show its lines
INDENT = "    "


@dataclass(frozen=True, slots=True)
class Source:
    """The text of one function, with what it needs to run.

    Args:
        name: of the function.
        text: its definition.
        context: the names that it uses, and the imports that bring them.
    """

    name: str
    text: str
    context: Context

    @property
    def import_lines(self) -> list[str]:
        """The import lines of the program; objects that only the context holds are listed as comments."""
        lines = sorted(set(self.context.imports.values()))
        held = sorted(set(self.context.globals) - set(self.context.imports))
        return lines + [f"# {name} is {_described(self.context.globals[name])}" for name in held]

    def compile(self, names: Mapping[str, Any] | None = None) -> Callable[..., Any]:
        """Return the function; tracebacks through it show its lines."""
        filename = f"<thunder {self.name} {next(_FILE_NUMBERS)}>"
        code = compile(self.text, filename, "exec")
        linecache.cache[filename] = (len(self.text), None, self.text.splitlines(keepends=True), filename)
        scope: dict[str, Any] = {**self.context.globals, **(names or {}), "__name__": "thunder.generated"}
        exec(code, scope)
        function: Callable[..., Any] = scope[self.name]
        weakref.finalize(function, linecache.cache.pop, filename, None)  # the lines go when the function does
        return function


def _described(value: Any) -> str:
    """One line about an object, whatever its repr is."""
    return ascii(f"{type(value).__module__}.{type(value).__qualname__}")[1:-1]


def print_function(trace: Trace, *, decompositions: bool = False, locations: bool = False) -> Source:
    """Print a trace as the definition of a function.

    Args:
        trace: the program.
        decompositions: with the decomposition of each composite as comments below it.
        locations: with the user's source line, as a comment, above what came from it.
    """
    context = Context(trace.names())
    name = Names().take(trace.name)
    lines = [_head(name, trace)]
    place: Any = None
    for bound in trace.bound_symbols:
        if locations and bound.location is not None:
            place = _print_location(bound.location, place, lines)
        lines += [INDENT + line for line in print_bound(bound, context)]
        if decompositions and not bound.symbol.is_prim:
            _print_decomposition(bound, context, lines, "# ")
    lines.append(f"{INDENT}return {literal(trace.output, context)}")
    return Source(name, "\n".join(lines) + "\n", context)


def print_once(trace: Trace) -> Source:
    """Print a trace as a function that does the same, with a part that it repeats written once, as another function.

    That takes Python less time and memory to compile than all blocks of a model do, of which there may be a hundred.
    The part gets its values in a list that it empties, so that they are freed where the program says so.
    """
    repeated = find_repetition(trace.bound_symbols)
    if repeated is None:
        return print_function(trace)
    context = Context(trace.names())
    name = Names().take(trace.name)
    part, values = context.names.take(f"{name}_part"), context.names.take("values")
    calls = trace.bound_symbols
    given, made = repeated.given[0], repeated.made[0]
    lines = [f"def {part}({values}):", f"{INDENT}[{', '.join(given)}] = {values}", f"{INDENT}{values}.clear()"]
    lines += _body(calls[repeated.start : repeated.start + repeated.length], context)
    lines += [f"{INDENT}return {_left(made)}", "", _head(name, trace)]
    lines += _body(calls[: repeated.start], context)
    for given, taken, made in zip(repeated.given, repeated.taken, repeated.made, strict=True):
        lines.append(f"{INDENT}{values} = [{', '.join(given)}]")
        if taken:
            lines.append(f"{INDENT}del {', '.join(taken)}")
        lines.append(f"{INDENT}{_left(made)} = {part}({values})")
    lines += _body(calls[repeated.end :], context)
    lines.append(f"{INDENT}return {literal(trace.output, context)}")
    return Source(name, "\n".join(lines) + "\n", context)


def _body(calls: Sequence[BoundSymbol], context: Context) -> list[str]:
    return [INDENT + line for bound in calls for line in print_bound(bound, context)]


def _left(names: Sequence[str]) -> str:
    """Return values as the left side of an assignment, and as what is returned to it."""
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _head(name: str, trace: Trace) -> str:
    return f"def {name}({', '.join([_parameter(p) for p in trace.inputs])}):"


def _parameter(proxy: Proxy) -> str:
    text = proxy.type_string
    quoted = f'"{text}"' if text.isprintable() and '"' not in text and "\\" not in text else ascii(text)
    return f"{proxy.name}: {quoted}"


def comment(text: str) -> str:
    """Return text that can stand in a comment: nothing in it ends the line."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _print_location(location: Any, before: Any, lines: list[str]) -> Any:
    here = str(location)
    if here != before:
        text = getattr(location, "text", "")
        lines.append(f"{INDENT}# {comment(here)}{':  ' + comment(text) if text else ''}")
    return here


def _print_decomposition(bound: BoundSymbol, context: Context, lines: list[str], prefix: str) -> None:
    for sub in bound.subsymbols:
        lines += [f"{INDENT}{prefix}  {line}" for line in print_bound(sub, context)]
        if not sub.symbol.is_prim:
            _print_decomposition(sub, context, lines, prefix + "  ")


def print_bound(bound: BoundSymbol, context: Context) -> list[str]:
    """Return the lines of one call: ``t0 = prims.exp(x)  # float32[2]``."""
    symbol = bound.symbol
    if symbol.printer is not None:
        return symbol.printer(bound, context)
    args = [literal(a, context) for a in bound.args]
    if bound.kwargs:
        args += _keywords(bound.kwargs, context)
    call = f"{callee(symbol, context)}({', '.join(args)})"
    output = bound.output
    if output is None:
        return [call]
    if isinstance(output, Proxy):
        return [f"{output.name} = {call}  # {comment(output.type_string)}"]
    proxies = bound.outputs
    if not proxies:
        return [call]
    told = comment(", ".join([p.type_string for p in proxies]))
    if not _is_sequence(output):
        return _taken_apart(output, call, told, context)
    return [f"{pattern(output)} = {call}  # {told}"]


def _is_sequence(output: Any) -> bool:
    """Whether all proxies in an output are found by taking tuples and lists apart."""
    if isinstance(output, (tuple, list)):
        return all(map(_is_sequence, output))
    return isinstance(output, Proxy) or not flat_proxies(output)


def _taken_apart(output: Any, call: str, told: str, context: Context) -> list[str]:
    """Return the lines of a call whose output has dicts or dataclasses in it."""
    whole = context.names.fresh("result")
    parts = [f"{proxy.name} = {whole}{way}" for proxy, way in _ways(output, "", context)]
    return [f"{whole} = {call}  # {told}", *parts, f"del {whole}"]


def _ways(output: Any, way: str, context: Context) -> Iterator[tuple[Proxy, str]]:
    if isinstance(output, Proxy):
        yield output, way
    elif isinstance(output, dict):
        for key, item in output.items():
            yield from _ways(item, f"{way}[{literal(key, context)}]", context)
    elif isinstance(output, (tuple, list)):
        for index, item in enumerate(output):
            yield from _ways(item, f"{way}[{index}]", context)
    elif flat_proxies(output):
        for name in output.__dataclass_fields__:
            yield from _ways(getattr(output, name), f"{way}.{name}", context)


def _keywords(kwargs: dict[str, Any], context: Context) -> list[str]:
    """Keyword arguments; names that are no identifiers are passed in a dict."""
    plain = {key: value for key, value in kwargs.items() if is_name(key)}
    args = [f"{key}={literal(value, context)}" for key, value in plain.items()]
    if len(plain) < len(kwargs):
        others = {key: value for key, value in kwargs.items() if key not in plain}
        args.append(f"**{literal(others, context)}")
    return args


def pattern(output: Any) -> str:
    """Return the left side of an assignment that takes ``output`` apart; what is no proxy is dropped."""
    if isinstance(output, Proxy):
        return output.name
    if isinstance(output, (tuple, list)):
        return f"({', '.join([pattern(o) for o in output])}{',' if len(output) == 1 else ''})"
    return "_"


def callee(symbol: Symbol, context: Context) -> str:
    """Return how the program refers to the symbol, and make sure that the name is bound."""
    if symbol.implementation is None:
        namespace = symbol.namespace
        if isinstance(namespace, str):
            return context.object(symbol, f"{namespace}_{symbol.name}")
        if not is_name(symbol.name):
            return context.object(symbol, f"{namespace.alias}_{symbol.name}")
        module = sys.modules.get(namespace.module) or importlib.import_module(namespace.module)
        return f"{context.imported(namespace.alias, namespace.import_line, module)}.{symbol.name}"
    if symbol.path:
        return context.member(symbol.path, symbol.implementation)
    called: Any = symbol.implementation
    if hasattr(type(called), "called_directly"):  # a function in C, say, in place of a method in Python
        called = called.called_directly
    return context.object(called, f"{symbol.module}_{symbol.name}")
