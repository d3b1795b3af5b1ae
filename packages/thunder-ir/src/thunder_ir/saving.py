"""Traces as files: text that reads back into an equal trace, and that runs nothing when it is read."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from thunder_ir import devices, dtypes
from thunder_ir.builder import Constraint
from thunder_ir.devices import Device
from thunder_ir.dtypes import DType
from thunder_ir.errors import DuplicateRuleError, ThunderError, TraceFormatError
from thunder_ir.locations import Location
from thunder_ir.names import is_name
from thunder_ir.number_proxies import BoolProxy, ComplexProxy, FloatProxy, IntegerProxy, NumberProxy
from thunder_ir.proxies import AnyProxy, CollectionProxy, Proxy, StringProxy
from thunder_ir.symbols import BoundSymbol, OpTags, Symbol
from thunder_ir.tensor_proxies import TensorProxy
from thunder_ir.trace import Provenance, Trace
from thunder_ir.unknown import Unknown, bounds_of, is_unknown
from thunder_ir.verifier import verify

FORMAT = "thunder-trace 1"
LARGEST_PLAIN = 2**53  # integers beyond are written in hexadecimal, which Python reads whatever their length

_KINDS: dict[str, type[Proxy]] = {
    "tensor": TensorProxy, "integer": IntegerProxy, "float": FloatProxy, "complex": ComplexProxy, "bool": BoolProxy,
    "string": StringProxy, "collection": CollectionProxy, "any": AnyProxy,
}  # fmt: skip
_KIND_OF = {cls: kind for kind, cls in _KINDS.items()}
_CODECS: dict[str, tuple[type, Callable[[Any], Any], Callable[[Any], Any]]] = {}
_CODEC_OF: dict[type, str] = {}


def register_codec(tag: str, cls: type, encode: Callable[[Any], Any], decode: Callable[[Any], Any]) -> None:
    """Teach saved traces to hold values of a class.

    Args:
        tag: names the class in files.
        cls: the class, not its subclasses.
        encode: from a value to numbers, strings, tuples and lists of them.
        decode: back. It gets what a file says, which may be anything: it must refuse what it does not know.

    Raises:
        DuplicateRuleError: tag or class is taken.
    """
    if tag in _CODECS or cls in _CODEC_OF:
        raise DuplicateRuleError(f"values of {cls.__qualname__} or the tag {tag!r} have a codec already")
    _CODECS[tag] = (cls, encode, decode)
    _CODEC_OF[cls] = tag


def save_trace(trace: Trace) -> str:
    """Return a trace as text that :func:`load_trace` reads.

    Raises:
        TraceFormatError: an argument is of a class that no codec was registered for.
    """
    writer = _Writer()
    content = {
        "format": FORMAT,
        "name": trace.name,
        "inputs": [writer.definition(p) for p in trace.inputs],
        "calls": [writer.call(bound) for bound in trace.bound_symbols],
        "output": writer.value(trace.output),
        "constraints": [[c.relation, writer.value(c.left), writer.value(c.right), c.holds] for c in trace.constraints],
        "tags": writer.tags(trace.tags),
        "provenance": [trace.provenance.made_by, trace.provenance.seconds] if trace.provenance is not None else None,
    }
    parts = []
    for key, value in content.items():
        if key in ("inputs", "calls"):
            lines = ",\n    ".join([json.dumps(item) for item in value])
            parts.append(f'  "{key}": [\n    {lines}\n  ]' if lines else f'  "{key}": []')
        else:
            parts.append(f'  "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


class _Writer:
    """Turns the parts of a trace into JSON; the first mention of a value among outputs defines it."""

    def tags(self, tags: Iterable[Any]) -> list[Any]:
        found = [tag.name if isinstance(tag, OpTags) else self.value(tag) for tag in tags]
        return sorted(found, key=str)

    def call(self, bound: BoundSymbol) -> list[Any]:
        location = bound.location
        place = [location.filename, location.line, location.function] if isinstance(location, Location) else None
        args, kwargs = self.value(list(bound.args)), self.value(bound.kwargs)
        return [bound.symbol.id, args, kwargs, self.outputs(bound.output), place, self.tags(bound.tags)]

    def definition(self, proxy: Proxy) -> list[Any]:
        kind = _KIND_OF.get(proxy.__class__)
        if kind is None:
            raise TraceFormatError(f"{proxy!r} is of a class that saved traces do not know")
        return ["def", kind, proxy.name, self.metadata(proxy)]

    def metadata(self, proxy: Proxy) -> Any:
        if isinstance(proxy, TensorProxy):
            steps = [self.call(bound) for bound in proxy.steps]
            strides = self.value(proxy.strides)
            base = proxy.base.name if proxy.base is not None else None
            shape = [self.value(d) for d in proxy.shape]
            return [shape, proxy.dtype.name, str(proxy.device), proxy.requires_grad, strides, base, steps]
        if is_unknown(proxy):
            unknown = proxy.unknown  # type: ignore[attr-defined]
            return self.value((proxy.value, unknown.what, *bounds_of(proxy)))  # type: ignore[attr-defined]
        if isinstance(proxy, (NumberProxy, StringProxy)):
            return self.value(proxy.value)
        return self.value(proxy.collection) if isinstance(proxy, CollectionProxy) else None

    def outputs(self, output: Any) -> Any:
        if isinstance(output, Proxy):
            return self.definition(output)
        if output.__class__ in (tuple, list):
            return [output.__class__.__name__, *[self.outputs(o) for o in output]]
        if output.__class__ is dict:
            return ["dict", *[[self.value(key), self.outputs(value)] for key, value in output.items()]]
        return self.value(output)

    def value(self, value: Any) -> Any:
        cls = value.__class__
        if value is None or cls is bool or cls is str:
            return value
        if cls is int:
            return value if -LARGEST_PLAIN < value < LARGEST_PLAIN else ["int", hex(value)]
        if cls is float:
            return value if math.isfinite(value) else ["float", repr(value)]
        if isinstance(value, Proxy):
            return self.proxy(value)
        if cls in (tuple, list):
            return [cls.__name__, *[self.value(v) for v in value]]
        if cls in (set, frozenset):
            return [cls.__name__, *sorted([self.value(v) for v in value], key=str)]
        if cls is dict:
            return ["dict", *[[self.value(k), self.value(v)] for k, v in value.items()]]
        return self.object(value)

    def proxy(self, proxy: Proxy) -> list[Any]:
        if not proxy.name:  # an example of a value, not one of the program: within a collection, or a dimension
            return self.definition(proxy)
        return ["ref", proxy.name]

    def object(self, value: Any) -> list[Any]:
        if isinstance(value, complex):
            return ["complex", self.value(value.real), self.value(value.imag)]
        if isinstance(value, bytes):
            return ["bytes", value.hex()]
        if isinstance(value, slice):
            return ["slice", self.value(value.start), self.value(value.stop), self.value(value.step)]
        if value is ...:
            return ["ellipsis"]
        if isinstance(value, DType):
            return ["dtype", value.name]
        if isinstance(value, Device):
            return ["device", str(value)]
        tag = _CODEC_OF.get(value.__class__)
        if tag is None:
            raise TraceFormatError(
                f"a value of {value.__class__.__qualname__} cannot be saved; teach how with thunder_ir.register_codec"
            )
        return ["object", tag, self.value(_CODECS[tag][1](value))]


def load_trace(text: str, *sources: ModuleType | Iterable[Symbol]) -> Trace:
    """Return the trace that a text holds.

    Nothing is imported, called or evaluated that the text names: its symbols are looked up among those given.

    Args:
        text: what :func:`save_trace` returned; it may come from anywhere.
        sources: modules whose symbols it may use, such as ``thunder_prims``, and collections of symbols.

    Raises:
        TraceFormatError: the text is damaged, breaks a law of traces or uses a symbol that is not among those.

    Example:
        >>> from thunder_ir import Symbol, Tensor, load_trace, save_trace, trace_of
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> text = save_trace(trace_of(lambda x: exp(x), Tensor((2,))))
        >>> print(load_trace(text, [exp]))
        def program(x: "float32[2]"):
            t0 = _prims_exp(x)  # float32[2]
            return t0
    """
    try:
        content = json.loads(text)
        return verify(_Reader(_symbols(sources)).trace(content), metadata=False)
    except TraceFormatError:
        raise
    except (ThunderError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
        raise TraceFormatError(f"this is no saved trace: {type(error).__name__}: {error}") from None
    except RecursionError:
        raise TraceFormatError("this is no saved trace: it is nested too deeply") from None


def _symbols(sources: Iterable[Any]) -> dict[str, Symbol]:
    found: dict[str, Symbol] = {}
    for source in sources:
        values = vars(source).values() if isinstance(source, ModuleType) else source
        found.update({value.id: value for value in values if isinstance(value, Symbol)})
    return found


class _Reader:
    """Turns JSON back into the parts of a trace, and refuses everything else."""

    def __init__(self, symbols: dict[str, Symbol]) -> None:
        self.symbols = symbols
        self.proxies: dict[str, Proxy] = {}

    def trace(self, content: Any) -> Trace:
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise TraceFormatError(f"this is no saved trace: its format is not {FORMAT!r}")
        inputs = tuple([self.definition(p) for p in _list(content["inputs"])])
        calls = tuple([self.call(c) for c in _list(content["calls"])])
        output = self.value(content["output"])
        constraints = tuple([self.constraint(c) for c in _list(content["constraints"])])
        provenance = content["provenance"]
        made = None if provenance is None else Provenance(_text(provenance[0]), float(provenance[1]))
        name = _identifier(content["name"])
        return Trace(name, inputs, calls, output, constraints, self.tags(content["tags"]), made)

    def constraint(self, content: Any) -> Constraint:
        relation, left, right, holds = _list(content)
        if relation not in ("eq", "ne", "lt", "le", "gt", "ge", "same") or not isinstance(holds, bool):
            raise TraceFormatError(f"{relation!r} is no relation of numbers")
        return Constraint(relation, self.value(left), self.value(right), holds)

    def tags(self, content: Any) -> frozenset[Any]:
        return frozenset([OpTags[t] if isinstance(t, str) and t in OpTags.__members__ else self.value(t)
                          for t in _list(content)])  # fmt: skip

    def call(self, content: Any) -> BoundSymbol:
        identity, args, kwargs, output, place, tags = _list(content)
        symbol = self.symbols.get(_text(identity))
        if symbol is None:
            raise TraceFormatError(f"the symbol {identity!r} is not among those that this trace may use")
        location = None if place is None else Location(_text(place[0]), int(place[1]), _text(place[2]))
        values, words = self.value(args), self.value(kwargs)
        if not isinstance(values, list) or not isinstance(words, dict) or not all([type(k) is str for k in words]):
            raise TraceFormatError(f"the arguments of {symbol.id} are no list and dict")
        return BoundSymbol(symbol, tuple(values), words, self.value(output), location, self.tags(tags))

    def definition(self, content: Any) -> Proxy:
        tag, kind, name, metadata = _list(content)
        cls = _KINDS.get(kind)
        if tag != "def" or cls is None:
            raise TraceFormatError(f"{kind!r} is no kind of value")
        proxy = self.tensor(metadata) if cls is TensorProxy else self.other(cls, metadata)
        proxy.name = _identifier(name) if name else ""
        if name:
            self.proxies[proxy.name] = proxy
        return proxy

    def tensor(self, metadata: Any) -> TensorProxy:
        shape, dtype, device, requires_grad, strides, base, view = _list(metadata)
        lengths = tuple([_dimension(self.value(d)) for d in _list(shape)])
        of_base = None if base is None else self.reference(base)
        if not isinstance(requires_grad, bool) or not isinstance(of_base, (TensorProxy, type(None))):
            raise TraceFormatError("the metadata of a tensor are damaged")
        steps = self.value(strides)
        if steps is not None and not isinstance(steps, tuple):
            raise TraceFormatError("strides are no tuple")
        calls = tuple([self.call(c) for c in _list(view)])
        of = dtypes.dtype(_text(dtype)), devices.device(_text(device))
        return TensorProxy(lengths, *of, requires_grad, steps, of_base, calls)

    def other(self, cls: type[Proxy], metadata: Any) -> Proxy:
        value = self.value(metadata)
        if cls is AnyProxy:
            return AnyProxy()
        unknown = None
        if issubclass(cls, NumberProxy) and isinstance(value, tuple):
            value, what, lower, upper = value
            unknown = Unknown(_text(what), float(lower), float(upper))
        if issubclass(cls, NumberProxy) and type(value) is not cls.python_type:
            raise TraceFormatError(f"{value!r} is no {cls.python_type.__name__}")
        if cls is StringProxy and type(value) is not str:
            raise TraceFormatError("the example of a string is no string")
        return cls(value) if unknown is None else cls(value, unknown=unknown)  # type: ignore[call-arg]

    def reference(self, name: Any) -> Proxy:
        found = self.proxies.get(_text(name))
        if found is None:
            raise TraceFormatError(f"{name!r} is read before it is defined")
        return found

    def value(self, content: Any) -> Any:
        if content is None or isinstance(content, (bool, int, float, str)):
            return content
        tag, *items = _list(content)
        build = _BUILDERS.get(tag)
        if build is not None:
            return build([self.value(item) for item in items])
        if tag == "ref":
            return self.reference(*items)
        if tag == "def":
            return self.definition(content)
        if tag == "dict":
            return {self.value(key): self.value(value) for key, value in map(_list, items)}
        if tag == "object" and items[0] in _CODECS:
            return _CODECS[items[0]][2](self.value(items[1]))
        raise TraceFormatError(f"{tag!r} is no kind of value")


def _list(content: Any) -> list[Any]:
    if not isinstance(content, list):
        raise TraceFormatError(f"a list is expected, not {type(content).__name__}")
    return content


def _text(content: Any) -> str:
    if not isinstance(content, str):
        raise TraceFormatError(f"a text is expected, not {type(content).__name__}")
    return content


def _identifier(content: Any) -> str:
    name = _text(content)
    if not is_name(name) or name.startswith("__"):
        raise TraceFormatError(f"{name!r} cannot be a name in a program")
    return name


def _dimension(value: Any) -> Any:
    if not isinstance(value, IntegerProxy) and (type(value) is not int or value < 0):
        raise TraceFormatError(f"{value!r} is no dimension")
    return value


def _complex(items: list[Any]) -> complex:
    real, imaginary = items
    return complex(float(real), float(imaginary))


_BUILDERS: dict[Any, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "list": list,
    "set": set,
    "frozenset": frozenset,
    "slice": lambda items: slice(*items),
    "ellipsis": lambda items: ...,
    "int": lambda items: int(_text(items[0]), 16),
    "float": lambda items: float(_text(items[0])),
    "complex": _complex,
    "bytes": lambda items: bytes.fromhex(_text(items[0])),
    "dtype": lambda items: dtypes.dtype(_text(items[0])),
    "device": lambda items: devices.device(_text(items[0])),
}
