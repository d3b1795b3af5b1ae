"""Symbols, the operations, and bound symbols, their calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any

from thunder_ir.builder import Builder, current_builder, recording
from thunder_ir.errors import OutsideTraceError
from thunder_ir.frozen import quickly_made
from thunder_ir.languages import Language
from thunder_ir.names import Names
from thunder_ir.number_proxies import NumberProxy
from thunder_ir.proxies import Proxy
from thunder_ir.tensor_proxies import TensorProxy
from thunder_ir.trees import flat_proxies, map_values, substitute


class OpTags(Enum):
    """What passes may rely on, so that none keeps a list of names."""

    ELEMENTWISE = auto()  # each element of the result depends on the elements at its place
    SHAPE_OP = auto()  # moves elements and computes nothing
    REDUCTION = auto()
    MATMUL = auto()  # matmul, convolution, attention: what no one wants to compute twice
    CREATION = auto()  # a tensor out of no tensor
    RANDOM = auto()  # draws random numbers: never merged, reordered or computed twice
    CAST = auto()  # converts dtype or device
    VIEW = auto()  # the result may share memory with the first argument
    MAY_COPY = auto()  # a view only where the strides of the first argument allow that, otherwise a copy
    IN_PLACE = auto()  # writes to its first argument
    DONT_DCE = auto()  # has an effect: stays even if nothing reads its outputs
    MAY_FAIL = auto()  # raises for some values of its arguments: an index out of range, a matrix without inverse
    DIVIDES = auto()  # raises if its second argument, a number, is zero
    BEFORE_WRITES = auto()  # may fail, and must do so before anything is written to what the caller has
    DONT_FUSE = auto()
    DEVICE_SYNC = auto()  # waits for the device
    CONSTANT_FOR_DERIVATIVE = auto()  # no derivative flows through it
    RECOMPUTE = auto()  # compute it again in the backward program rather than save it
    DONT_RECOMPUTE = auto()
    PROLOGUE = auto()  # unpacks or guards
    COLLECTIVE = auto()
    NEW_MEMORY = auto()  # what it returns shares memory with nothing
    HOST_STATE = auto()  # hands on the state of random numbers, which is on the CPU but in a recorded CUDA graph
    FREES = auto()  # its arguments cannot be read any more after it

    __hash__ = object.__hash__  # members are one object each, and passes ask for tags all the time


@dataclass(frozen=True, slots=True)
class Namespace:
    """How generated code refers to a group of symbols.

    Args:
        alias: the name in the code, ``"prims"``.
        module: what is imported under it, ``"thunder_prims"``.
    """

    alias: str
    module: str

    @property
    def import_line(self) -> str:
        return f"import {self.module}" if self.alias == self.module else f"import {self.module} as {self.alias}"


NO_TAGS: frozenset[Any] = frozenset()


@dataclass(frozen=True, eq=False, slots=True)
class Symbol:
    """An operation.

    Calling it while a trace is recorded computes the metadata of its result and records the call.

    Args:
        name: its name in its namespace.
        namespace: where generated code finds it.
        meta: proxies in, proxies out, no maths. A composite may leave it out; its decomposition then tells.
        decomposition: for a composite, its body in other symbols; ``None`` for a prim.
        tags: traits that passes rely on.
        language: what operators mean inside its decomposition and its rules.
        printer: prints a call of it as a line of code, where that is not an ordinary call.
        implementation: for an operation of an executor, what runs it. Where its class has a property
            ``called_directly``, generated code calls what that returns.
        path: dotted path under which generated code calls ``implementation``, ``"torch.add"``.
        executor: for an operation of an executor, that executor.
        origin: what it stands for in the user's world, such as ``torch.add``.
        region: for an operation that a region was fused into, the region's trace.
    """

    name: str
    namespace: Namespace | str
    meta: Callable[..., Any] | None = None
    decomposition: Callable[..., Any] | None = None
    tags: frozenset[Any] = NO_TAGS
    language: Language | None = None
    printer: Callable[[BoundSymbol, Any], list[str]] | None = None
    implementation: Callable[..., Any] | None = None
    path: str = ""
    executor: Any = None
    origin: Any = None
    region: Any = field(default=None, repr=False)
    doc: str = field(default="", repr=False)

    @property
    def module(self) -> str:
        """Name of its namespace."""
        return self.namespace if isinstance(self.namespace, str) else self.namespace.alias

    @property
    def id(self) -> str:
        """Its full name, ``"prims.exp"``."""
        return f"{self.module}.{self.name}"

    @property
    def is_prim(self) -> bool:
        """Whether it has no decomposition."""
        return self.decomposition is None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        builder = current_builder()
        output = self.evaluate(builder, args, kwargs)
        if builder.recording or (output.__class__ is not TensorProxy and _is_arithmetic(args, output)):
            return bind(builder, self, args, kwargs, output)
        return output

    def evaluate(self, builder: Builder, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the output proxies of a call, recording nothing."""
        if self.meta is not None:
            return self.meta(*args, **kwargs)
        if self.decomposition is None:
            raise OutsideTraceError(f"{self.id} has neither a meta function nor a decomposition")
        was_recording, language = builder.recording, builder.language
        builder.recording, builder.language = False, self.language
        try:
            return self.decomposition(*args, **kwargs)
        finally:
            builder.recording, builder.language = was_recording, language

    def __repr__(self) -> str:
        return f"<Symbol {self.id}>"


def _is_arithmetic(args: tuple[Any, ...], output: Any) -> bool:
    """Whether a call makes a number of numbers. It is recorded even while only metadata are computed.

    The number may become a dimension of the metadata, and the program must then say what it is.
    """
    return isinstance(output, NumberProxy) and all([isinstance(p, NumberProxy) and p.name for p in flat_proxies(args)])


@quickly_made
@dataclass(frozen=True, eq=False, slots=True)
class BoundSymbol:
    """One call of a symbol in a trace.

    Args:
        symbol: the operation.
        args, kwargs: proxies, numbers, strings, dtypes, … and containers of them.
        output: proxies, or containers of them, or ``None``.
        location: where in the user's program it came from; a :class:`~thunder_ir.Location` or what resolves to one.
        tags: added to the symbol's, for this call alone.
    """

    symbol: Symbol
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any
    location: Any = None
    tags: frozenset[Any] = NO_TAGS
    _inputs: tuple[Proxy, ...] | None = field(default=None, init=False, repr=False)
    _outputs: tuple[Proxy, ...] | None = field(default=None, init=False, repr=False)

    @property
    def sym(self) -> Symbol:
        """The operation, under the name that existing extensions and transforms know it by."""
        return self.symbol

    @property
    def inputs(self) -> tuple[Proxy, ...]:
        """The proxies it reads, in order, repeated where read twice."""
        found = self._inputs
        if found is None:
            read = flat_proxies(self.args)
            if self.kwargs:
                read += flat_proxies(self.kwargs)
            found = tuple(read)
            object.__setattr__(self, "_inputs", found)  # every pass asks for it
        return found

    @property
    def outputs(self) -> tuple[Proxy, ...]:
        """The proxies it defines, in order."""
        found = self._outputs
        if found is None:
            output = self.output
            found = (output,) if isinstance(output, Proxy) else tuple(flat_proxies(output))
            object.__setattr__(self, "_outputs", found)
        return found

    def has_tag(self, tag: Any) -> bool:
        """Whether the symbol or this call carries ``tag``."""
        return tag in self.symbol.tags or tag in self.tags

    def replace(self, **changes: Any) -> BoundSymbol:
        """Return a bound symbol with these fields changed."""
        return replace(self, **changes)

    def as_call_of(self, symbol: Symbol, tags: frozenset[Any]) -> BoundSymbol:
        """Return the call of another symbol with the same arguments and outputs."""
        made = BoundSymbol(symbol, self.args, self.kwargs, self.output, self.location, tags)
        object.__setattr__(made, "_inputs", self._inputs)
        object.__setattr__(made, "_outputs", self._outputs)
        return made

    def substituted(self, mapping: dict[str, Any], outputs: bool = False) -> BoundSymbol:
        """Return it with the proxies named in ``mapping`` replaced, in its arguments and, if asked, its outputs."""
        args, kwargs = self.args, self.kwargs
        for p in self.inputs:  # which most calls have at hand
            if p.name in mapping:
                args = substitute(args, mapping)
                kwargs = substitute(kwargs, mapping) if kwargs else kwargs
                break
        output = substitute(self.output, mapping) if outputs else self.output
        if args is self.args and kwargs is self.kwargs and output is self.output:
            return self
        return BoundSymbol(self.symbol, args, kwargs, output, self.location, self.tags)

    def renamed(self, mapping: dict[str, Proxy]) -> BoundSymbol:
        """Return it with other proxies in place of those named in ``mapping``, in its arguments and its outputs.

        The same as :meth:`substituted`, told that proxies take the place of proxies: what it reads and defines need
        not be looked for again.
        """
        kwargs = substitute(self.kwargs, mapping) if self.kwargs else self.kwargs
        output = substitute(self.output, mapping)
        made = BoundSymbol(self.symbol, substitute(self.args, mapping), kwargs, output, self.location, self.tags)
        object.__setattr__(made, "_inputs", tuple([mapping.get(p.name, p) for p in self.inputs]))
        object.__setattr__(made, "_outputs", tuple([mapping.get(p.name, p) for p in self.outputs]))
        return made

    def decomposed(self, names: Names) -> tuple[list[BoundSymbol], Any]:
        """Return the calls that its symbol's decomposition makes, and the decomposition's output.

        The output has the structure of ``self.output`` but names of its own: see ``passes.flatten``.

        Args:
            names: allocator of the trace around it.

        Raises:
            OutsideTraceError: its symbol is a prim.
        """
        if self.symbol.decomposition is None:
            raise OutsideTraceError(f"{self.symbol.id} is a prim and has no decomposition")
        builder = Builder(names, self.symbol.language, lambda: self.location)
        builder.tags = self.tags
        with recording(builder):
            output = self.symbol.decomposition(*self.args, **self.kwargs)
        return builder.bound_symbols, output

    @property
    def subsymbols(self) -> tuple[BoundSymbol, ...]:
        """Its decomposition, computed on demand; empty for a prim."""
        if self.symbol.decomposition is None:
            return ()
        names = Names([p.name for p in self.inputs] + [p.name for p in self.outputs])
        return tuple(self.decomposed(names)[0])

    def __repr__(self) -> str:
        return f"<BoundSymbol {self.symbol.id} -> {', '.join(p.name for p in self.outputs) or 'nothing'}>"


def bind(builder: Builder, symbol: Symbol, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
    """Record a call whose output proxies are known; name those that have no name; return the output.

    A call that returns one of its own inputs and nothing new is not an operation and is not recorded.
    An input among several outputs gets a name of its own as an output, as does a value that is there twice.
    """
    names = builder.names
    if isinstance(output, Proxy):
        if output.name:
            return output
        output.name = names.fresh(output.prefix)
    else:
        outputs = flat_proxies(output)
        aliases = {proxy.name: proxy for proxy in outputs if proxy.name}
        for proxy in outputs:
            if not proxy.name:
                proxy.name = names.fresh(proxy.prefix)
        if aliases:
            if len(aliases) == len({p.name for p in outputs}) and not symbol.tags & EFFECTS:
                return output
            output = substitute(output, {name: _another(p, builder) for name, p in aliases.items()})
        if len({p.name for p in outputs}) < len(outputs):
            output = _each_once(output, builder)
    location = builder.locate() if builder.locate is not None else None
    bound = BoundSymbol(symbol, args, kwargs, output, location, builder.tags)
    if isinstance(output, NumberProxy):
        output.definition = bound
    builder.bound_symbols.append(bound)
    return output


EFFECTS = frozenset({OpTags.DONT_DCE, OpTags.IN_PLACE})


def _another(proxy: Proxy, builder: Builder) -> Proxy:
    return proxy.renamed(builder.names.fresh(proxy.prefix))


def _each_once(output: Any, builder: Builder) -> Any:
    """Rename outputs that carry the name of another one, so that every name is defined once."""
    seen: set[str] = set()

    def own(value: Any) -> Any:
        one = _another(value, builder) if isinstance(value, Proxy) and value.name in seen else value
        seen.update([one.name] if isinstance(one, Proxy) else [])
        return one

    return map_values(own, output)
