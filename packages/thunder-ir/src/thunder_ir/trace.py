"""Traces: programs as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from thunder_ir.builder import Builder, Constraint, recording
from thunder_ir.codegen import Source, print_function, print_once
from thunder_ir.execution_file import as_edited
from thunder_ir.languages import Language
from thunder_ir.names import Names
from thunder_ir.number_proxies import NumberProxy
from thunder_ir.proxies import Proxy
from thunder_ir.showing import as_html
from thunder_ir.symbols import NO_TAGS, BoundSymbol
from thunder_ir.tensor_proxies import TensorProxy
from thunder_ir.trees import flat_proxies


@dataclass(frozen=True, eq=False, slots=True)
class Provenance:
    """Which pass made a trace, and how long it took.

    Args:
        made_by: name of the pass.
        seconds: CPU time of it.
    """

    made_by: str
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"made by {self.made_by} in {self.seconds * 1e3:.1f} ms"


@dataclass(frozen=True, eq=False, slots=True)
class Trace:
    """A program: inputs, bound symbols in order, output. Nothing of it changes once it is made.

    Args:
        name: of the function that it prints as.
        inputs: proxies, its parameters in order.
        bound_symbols: the calls, in order; each name is defined once, before it is read.
        output: proxies, literals and containers of them.
        constraints: how comparisons of symbolic numbers came out while it was recorded.
        tags: facts about the whole.
        provenance: the pass that made it.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> trace = trace_of(lambda x, y: (y, x), Tensor((2, 3)), Tensor((4,), "int64"))
        >>> print(trace)
        def program(x: "float32[2, 3]", y: "int64[4]"):
            return (y, x)
        >>> trace.python_callable()(1, 2)
        (2, 1)
    """

    name: str
    inputs: tuple[Proxy, ...]
    bound_symbols: tuple[BoundSymbol, ...]
    output: Any
    constraints: tuple[Constraint, ...] = ()
    tags: frozenset[Any] = NO_TAGS
    provenance: Provenance | None = field(default=None)

    @property
    def outputs(self) -> list[Proxy]:
        """The proxies in ``output``, in order."""
        return flat_proxies(self.output)

    def replace(self, **changes: Any) -> Trace:
        """Return a trace with these fields changed."""
        return replace(self, **changes)

    def names(self) -> Names:
        """Return an allocator that knows every name in the trace, those of values that it takes from around it, too."""
        taken: set[str] = set()
        inside = [p for bound in self.bound_symbols for p in (*bound.inputs, *bound.outputs)]
        for p in (*self.inputs, *inside, *self.outputs):
            if p.name not in taken:
                taken.add(p.name)
                taken.update([size.name for size in getattr(p, "shape", ()) if size.__class__ is not int])
        return Names(taken)

    def source(self, decompositions: bool = False, locations: bool = False) -> Source:
        """Return the program as text with the objects that its names stand for."""
        return print_function(self, decompositions=decompositions, locations=locations)

    def python(self, *, imports: bool = True, decompositions: bool = True, locations: bool = True) -> str:
        """Return the program as Python source.

        Args:
            imports: with the import lines and the provenance on top.
            decompositions: with the decomposition of each composite as comments below it.
            locations: with the user's source line above what came from it.
        """
        source = self.source(decompositions, locations)
        if not imports:
            return source.text
        head = [f"# {self.provenance}"] if self.provenance is not None else []
        return "\n".join(
            [*head, *source.import_lines, "", source.text] if source.import_lines else [*head, source.text]
        )

    def executable(self) -> Source:
        """Return the program as the text that :meth:`python_callable` compiles.

        It is what :meth:`source` returns, but that what the program repeats, as a model does its blocks, is written
        once, as a function that is called with the values of each time.
        """
        return print_once(self)

    def python_callable(self, **names: Any) -> Callable[..., Any]:
        """Compile the program and return the function; see :meth:`executable` for its text.

        Args:
            names: what further global names of the program shall stand for.
        """
        return as_edited(self.executable()).compile(names)

    def __str__(self) -> str:
        return self.source().text.removesuffix("\n")

    def _repr_html_(self) -> str:
        """The program as the value of a notebook's cell, with the pass that made it."""
        return as_html(self._with_origin())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """The program as IPython shows it in a terminal: what it calls this with has a method ``text``."""
        printer.text(self._with_origin())

    def _with_origin(self) -> str:
        made = "" if self.provenance is None else f"# made by {self.provenance.made_by}\n"
        return f"{made}{self}"

    def __repr__(self) -> str:
        return f"<Trace {self.name}: {len(self.inputs)} inputs, {len(self.bound_symbols)} bound symbols>"


def record(
    function: Callable[..., Any],
    inputs: Iterable[Proxy],
    *,
    name: str = "program",
    language: Language | None = None,
    names: Names | None = None,
) -> Trace:
    """Run ``function`` on named proxies and return what it did as a trace."""
    inputs = tuple(inputs)
    if names is None:
        names = Names([p.name for p in inputs])
    builder = Builder(names, language)
    with recording(builder):
        output = function(*inputs)
    return Trace(name, inputs, tuple(builder.bound_symbols), output, tuple(builder.constraints))


def trace_of(function: Callable[..., Any], *examples: Any, language: Language | None = None) -> Trace:
    """Record ``function`` for arguments like ``examples``, without looking at its bytecode.

    Args:
        function: called once, with proxies.
        examples: :func:`~thunder_ir.Tensor` descriptions or other proxies; plain numbers, strings and containers
            of descriptions are taken as they are, each proxy in them becoming a parameter.
        language: what operators on proxies mean; that of the first loaded operations package if not given.

    Returns:
        The trace, whose parameters carry the names of the function's.
    """
    code = getattr(function, "__code__", None)
    wanted = list(code.co_varnames[: code.co_argcount]) if code is not None else []
    names = Names()
    inputs: list[Proxy] = []
    known: dict[int, Proxy] = {}  # by identity: one symbolic number may be an argument and a dimension of others

    def name_all(value: Any, hint: str) -> Any:
        if isinstance(value, Proxy):
            if id(value) in known:
                return known[id(value)]
            named = _with_dimensions(value.renamed(names.take(hint)), name_all, hint)
            if isinstance(named, NumberProxy):
                known[id(value)] = named
            inputs.append(named)
            return named
        if isinstance(value, (tuple, list)):
            items = [name_all(v, f"{hint}_{i}") for i, v in enumerate(value)]
            return type(value)(items)
        if isinstance(value, dict):
            return {k: name_all(v, f"{hint}_{k}") for k, v in value.items()}
        return value

    args = [name_all(e, wanted[i] if i < len(wanted) else f"a{i}") for i, e in enumerate(examples)]
    builder = Builder(names, language if language is not None else DEFAULT.language)
    with recording(builder):
        output = function(*args)
    return Trace("program", tuple(inputs), tuple(builder.bound_symbols), output, tuple(builder.constraints))


def _with_dimensions(value: Proxy, name_all: Callable[[Any, str], Any], hint: str) -> Proxy:
    """Name the symbolic dimensions of an input; they become inputs, too."""
    if isinstance(value, TensorProxy):
        lengths = enumerate(value.shape)
        value.shape = tuple([name_all(n, f"{hint}_{i}") if isinstance(n, Proxy) else n for i, n in lengths])
    return value


class _Default:
    """The language of programs that name none; the operations package that is imported first provides it."""

    __slots__ = ("language",)

    def __init__(self) -> None:
        self.language: Language | None = None


DEFAULT = _Default()


def provide_default_language(language: Language) -> None:
    """Make ``language`` that of programs which name none, unless there is one already."""
    if DEFAULT.language is None:
        DEFAULT.language = language


__all__ = ["NumberProxy", "Provenance", "TensorProxy", "Trace", "provide_default_language", "record", "trace_of"]
