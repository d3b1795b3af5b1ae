"""The laws of traces, checked."""

from __future__ import annotations

from typing import Any

from thunder_ir.builder import Builder, recording
from thunder_ir.codegen import print_bound
from thunder_ir.errors import VerificationError
from thunder_ir.literals import Context
from thunder_ir.names import Names, is_name
from thunder_ir.number_proxies import NumberProxy, value_of
from thunder_ir.proxies import Proxy
from thunder_ir.symbols import BoundSymbol, OpTags
from thunder_ir.tensor_proxies import TensorProxy
from thunder_ir.trace import Trace
from thunder_ir.trees import flat_proxies


def verify(trace: Trace, *, metadata: bool = True) -> Trace:
    """Return the trace if it keeps the laws of traces.

    Every name is an identifier, defined once and before it is read. Every value is read with the metadata it was
    defined with, and not after it was freed. Views and writes lead to tensors that are there. What a call says that
    it returns is what its symbol's meta function says.

    Args:
        trace: the program.
        metadata: evaluate the meta functions again, which is most of the cost.

    Raises:
        VerificationError: a law is broken; the message names the line.

    Example:
        >>> from thunder_ir import BoundSymbol, Symbol, Tensor, trace_of, verify
        >>> exp = Symbol("exp", "prims", meta=lambda a: a.like())
        >>> trace = trace_of(lambda x: exp(exp(x)), Tensor((2,)))
        >>> verify(trace.replace(bound_symbols=trace.bound_symbols[::-1]))
        Traceback (most recent call last):
        thunder_ir.errors.VerificationError: line 1, "t1 = _prims_exp(t0)": t0 is read before it is defined
    """
    state = _State()
    for proxy in trace.inputs:
        state.define(proxy, "the inputs")
    for proxy in trace.inputs:
        state.check_dimensions(proxy, "the inputs")
    builder = Builder(trace.names(), recording=False)
    with recording(builder):
        for number, bound in enumerate(trace.bound_symbols, 1):
            _verify_call(state, bound, number)
            if metadata:
                _verify_metadata(builder, bound, number)
    for proxy in trace.outputs:
        state.read(proxy, "the output")
    return trace


def _line(bound: BoundSymbol, number: int) -> str:
    try:
        text = print_bound(bound, Context(Names()))[-1].partition("  #")[0]
    except Exception as error:  # a call so broken that it does not even print is described instead
        text = f"{bound!r} ({type(error).__name__} when printed)"
    return f'line {number}, "{text}"'


class _Place:
    """Where in a program something is said, put into words only if it must be."""

    __slots__ = ("bound", "number")

    def __init__(self, bound: BoundSymbol, number: int) -> None:
        self.bound = bound
        self.number = number

    def __str__(self) -> str:
        return _line(self.bound, self.number)


class _State:
    """What is defined so far, and what was freed."""

    __slots__ = ("defined", "freed", "places")

    def __init__(self) -> None:
        self.defined: dict[str, Proxy] = {}
        self.places: dict[str, Any] = {}
        self.freed: set[str] = set()

    def define(self, proxy: Proxy, place: Any) -> None:
        name = proxy.name
        if not isinstance(name, str) or not is_name(name):
            raise VerificationError(f"{place}: {name!r} cannot be a name in a program")
        if name in self.defined:
            raise VerificationError(f"{place}: {name} is defined again, first in {self.places[name]}")
        self.defined[name] = proxy
        self.places[name] = place

    def read(self, proxy: Proxy, place: Any) -> None:
        defined = self.defined.get(proxy.name)
        if defined is None:
            raise VerificationError(f"{place}: {proxy.name} is read before it is defined")
        if proxy.name in self.freed:
            raise VerificationError(f"{place}: {proxy.name} is read after it was freed")
        if defined is not proxy:
            difference = _difference(defined, proxy)
            if difference:
                raise VerificationError(
                    f"{place}: {proxy.name} was defined as {difference[0]}, read as {difference[1]}"
                )

    def check_dimensions(self, proxy: Proxy, place: Any) -> None:
        """Symbolic dimensions are values of the program, too; so is the tensor that a view is of."""
        if not isinstance(proxy, TensorProxy):
            return
        for dimension in proxy.shape:
            if isinstance(dimension, NumberProxy) and dimension.name and dimension.name not in self.defined:
                raise VerificationError(f"{place}: {proxy.name} has a dimension {dimension.name} that is not defined")
        if proxy.base is not None and proxy.base.name not in self.defined:
            raise VerificationError(f"{place}: {proxy.name} is a view of {proxy.base.name}, which is not defined")


def _verify_call(state: _State, bound: BoundSymbol, number: int) -> None:
    place = _Place(bound, number)
    inputs = bound.inputs
    for proxy in inputs:
        state.read(proxy, place)
    if bound.has_tag(OpTags.IN_PLACE) and not (bound.args and isinstance(bound.args[0], TensorProxy)):
        raise VerificationError(f"{place}: {bound.symbol.id} writes to its first argument, which is no tensor")
    outputs = bound.outputs
    for proxy in outputs:
        state.define(proxy, place)
    for proxy in outputs:
        state.check_dimensions(proxy, place)
    if OpTags.FREES in bound.symbol.tags:
        state.freed.update([proxy.name for proxy in inputs])


def _verify_metadata(builder: Builder, bound: BoundSymbol, number: int) -> None:
    """Compare the outputs of a call with what its meta function, or its decomposition, says of them."""
    symbol = bound.symbol
    if symbol.meta is None and symbol.decomposition is None:
        return
    builder.language = symbol.language
    try:
        expected = symbol.evaluate(builder, bound.args, bound.kwargs)
    except Exception as error:
        raise VerificationError(f"{_line(bound, number)}: {symbol.id} refuses its arguments: {error}") from error
    told, known = bound.outputs, flat_proxies(expected)
    if len(told) != len(known):
        raise VerificationError(f"{_line(bound, number)}: has {len(told)} outputs, {symbol.id} returns {len(known)}")
    for one, other in zip(told, known, strict=True):
        difference = _difference(one, other)
        if difference:
            raise VerificationError(
                f"{_line(bound, number)}: {one.name} is said to be {difference[0]}, {symbol.id} returns {difference[1]}"
            )


def _difference(a: Proxy, b: Proxy) -> tuple[str, str] | None:
    """The types of two proxies as text, if they differ."""
    if isinstance(a, TensorProxy) and isinstance(b, TensorProxy):
        same = a.dtype is b.dtype and (a.device is b.device or a.device == b.device)
        if same and (a.shape is b.shape or _lengths(a) == _lengths(b)):
            return None
        return a.type_string, b.type_string
    return None if a.__class__ is b.__class__ else (a.type_string, b.type_string)


def _lengths(a: TensorProxy) -> list[Any]:
    return [value_of(length) for length in a.shape]
