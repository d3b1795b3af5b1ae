"""Rows: which calls of PyTorch native code can make, and how, found by the path that the program prints."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass

import torch
from torch._ops import OpOverload

from thunder_executors_llvm import runner as llvm
from thunder_ir import BoundSymbol, IntegerProxy, OutsideTraceError, TensorProxy, devices
from thunder_native.forms import Facts, Form, form_of
from thunder_native.kernels import fused
from thunder_native.schema import dispatch
from thunder_native.table import CannotExpress, Table

Lowering = Callable[[Table, BoundSymbol], None]

ROWS: dict[str, Lowering] = {}
"""How calls are written, by the path of the function."""

NEW: set[str] = set()
"""Paths of the functions whose results share no memory with what they read."""


def lowering(*paths: str, new: bool = True) -> Callable[[Lowering], Lowering]:
    """Let the decorated function append the steps of calls of the functions at ``paths``.

    Args:
        paths: dotted, as in programs.
        new: whether what they return is memory of its own.

    Raises:
        ValueError: there is a row for one of them.
    """

    def register(function: Lowering) -> Lowering:
        for path in paths:
            if path in ROWS:
                raise ValueError(f"{path} has a row already")
            ROWS[path] = function
            if new:
                NEW.add(path)
        return function

    return register


def dispatched(name: str, *overloads: str) -> Lowering:
    """Return the row of a function that is an operator of PyTorch, called by its dispatcher.

    That it is not to write to what it reads may be said beside the operator's arguments.

    Args:
        name: of the operator.
        overloads: tried in this order.
    """

    def write(table: Table, bound: BoundSymbol) -> None:
        reasons = []
        if bound.kwargs.get("inplace") is False:
            bound = bound.replace(kwargs={k: v for k, v in bound.kwargs.items() if k != "inplace"})
        for overload in overloads or ("",):
            try:
                return dispatch(table, bound, name, overload)
            except CannotExpress as error:
                table.steps.clear()
                reasons.append(str(error))
        raise CannotExpress("; ".join(reasons))

    return write


def row_of(bound: BoundSymbol) -> Lowering | None:
    """Return how a call is written; ``None`` if it has no row.

    Overloads of PyTorch's own operators need none: their schema says it, if they neither write nor draw. Kernels of
    thunder-executors-llvm are called by their addresses.
    """
    found = ROWS.get(bound.symbol.path)
    if found is not None:
        return found
    operator = bound.symbol.implementation
    if isinstance(operator, llvm.Runner):
        return fused
    if not isinstance(operator, OpOverload) or operator.namespace != "aten" or operator._schema.is_mutable:
        return None
    if torch.Tag.nondeterministic_seeded in operator.tags or not operator._schema.returns:
        return None
    overload = operator._overloadname
    return dispatched(operator._schema.name, "" if overload == "default" else overload)


def makes_new(bound: BoundSymbol) -> bool:
    """Whether what a call with a row returns shares no memory with what it reads."""
    if "out" in bound.kwargs:
        return False
    operator = bound.symbol.implementation
    if isinstance(operator, llvm.Runner):
        return True
    if bound.symbol.path in ROWS or not isinstance(operator, OpOverload):
        return bound.symbol.path in NEW
    return all([r.alias_info is None for r in operator._schema.returns])


def is_inner(bound: BoundSymbol, inner: Container[str]) -> bool:
    """Whether all that a call returns is among the values that nobody outside can see."""
    return all([p.name in inner for p in bound.outputs])


@dataclass(frozen=True, slots=True)
class Written:
    """A call in native code.

    Args:
        form: its words.
        names: of the slots in them, by their numbers.
        inner: whether they suppose that nobody outside can see the memory of the call's results.
    """

    form: Form
    names: tuple[str, ...]
    inner: bool


def written(bound: BoundSymbol, addresses: Mapping[str, int], facts: Facts, *, inner: bool = False) -> Written:
    """Return a call in native code.

    Args:
        bound: the call.
        addresses: of the functions that steps name.
        facts: what is known already of the program's tensors.
        inner: whether nobody outside can see the memory of the call's results.

    Raises:
        CannotExpress: native code cannot make it.
    """
    names = tuple(dict.fromkeys([p.name for p in (*bound.inputs, *bound.outputs)]))
    form = form_of(bound, names, inner, facts, addresses, lambda: _steps(bound, inner))
    return Written(form, names + form.own, inner)


def _steps(bound: BoundSymbol, inner: bool) -> Table:
    """Return the steps of a call.

    Raises:
        CannotExpress: native code cannot make it.
    """
    row = row_of(bound)
    if row is None:
        raise CannotExpress(f"{bound.symbol.path or bound.symbol.id} has no row")
    for proxy in bound.outputs:
        if not isinstance(proxy, TensorProxy):
            raise CannotExpress(f"{proxy.name} is no tensor")
    for proxy in (*bound.inputs, *bound.outputs):
        if isinstance(proxy, TensorProxy):
            if proxy.device is not devices.cpu and proxy.device.type is not devices.cpu.type:
                raise CannotExpress(f"{proxy.name} lives on {proxy.device}")
        elif not isinstance(proxy, IntegerProxy):
            raise CannotExpress(f"{proxy.name} is no tensor and no integer")
    table = Table(inner)
    try:
        row(table, bound)
    except OutsideTraceError as error:  # it compared sizes, and how they compare is no fact of the finished program
        raise CannotExpress("it depends on how open sizes compare") from error
    return table
