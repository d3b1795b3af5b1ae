"""Calls by PyTorch's dispatcher: arguments as an operator's schema names them, encoded as words."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import torch

from thunder_executors_llvm.library import torch_library
from thunder_ir import BoundSymbol, IntegerProxy, TensorProxy
from thunder_native.machine_dispatch import STACK
from thunder_native.table import CannotExpress, Slot, Table, Word, Words, bits, listed

(
    WORD, TENSOR, OPTIONAL_TENSOR, OPTIONAL_WORD, LIST, OPTIONAL_LIST, TENSORS, TEXT,
    NUMBER, OPTIONAL_NUMBER, MIXED, OPTIONAL_MIXED,
) = range(12)  # fmt: skip
"""Kinds of arguments, as :mod:`thunder_native.machine_dispatch` tells them apart."""


@dataclass(frozen=True, slots=True)
class Argument:
    """What an operator takes.

    Args:
        name, kind: as its schema has them, the kind without ``Optional``.
        optional: whether it may be none.
        required: whether there is no default.
        default: what it is if not given.
    """

    name: str
    kind: str
    optional: bool
    required: bool
    default: Any


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator as its schema says.

    Args:
        name, overload: of it.
        arguments: in order.
        results: how many; ``None`` if it returns a list.
        writes: whether it writes to what it takes.
        views: whether what it returns may be a view, of what it takes or of what it made on the way.
        head: the first words of each call of it: its name, its overload, PyTorch's version.
        memory: what words point to that are the same in each call.
    """

    name: str
    overload: str
    arguments: tuple[Argument, ...]
    results: int | None
    writes: bool
    views: bool
    head: tuple[int, ...]
    memory: tuple[object, ...]


@cache
def operator_of(name: str, overload: str) -> Operator:
    """Return the operator of a name."""
    schema = torch._C._get_schema(name, overload)
    arguments = []
    for argument in schema.arguments:
        kind, required = str(argument.real_type), not argument.has_default_value()
        optional = kind.startswith("Optional[")
        kind = kind[len("Optional[") : -1] if optional else kind
        arguments.append(
            Argument(argument.name, kind, optional, required, None if required else argument.default_value)
        )
    is_list = [str(r.real_type) for r in schema.returns] == ["List[Tensor]"]
    full = f"{name}.{overload}" if overload else name
    is_composite = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd")
    views = is_composite or any([r.alias_info is not None for r in schema.returns])
    results = None if is_list else len(schema.returns)
    texts = [ctypes.create_string_buffer(text.encode()) for text in (name, overload)]
    head = (*[ctypes.addressof(text) for text in texts], version())
    return Operator(name, overload, tuple(arguments), results, schema.is_mutable, views, head, tuple(texts))


@cache
def dtype_word(dtype: torch.dtype) -> int:
    """Return the number of a dtype in PyTorch's C interface."""
    function = getattr(torch_library(), f"aoti_torch_dtype_{str(dtype).removeprefix('torch.')}", None)
    if function is None:
        raise CannotExpress(f"{dtype} has no number")
    return int(function())


@cache
def version() -> int:
    """PyTorch's version in its own encoding: a byte each for major, minor and patch, from the highest down."""
    major, minor, *_ = torch.__version__.split(".")
    return (int(major) << 56) | (int(minor) << 48)


def dispatch(table: Table, bound: BoundSymbol, name: str, overload: str, args: Sequence[Any] | None = None) -> None:
    """Append the step that makes a call.

    Args:
        table: what is appended to.
        bound: the call; its arguments are those of the schema, by position or name.
        name, overload: of the operator.
        args: those by position, where they are not the call's.

    Raises:
        CannotExpress: an argument is of a kind that has no encoding.
    """
    operator = operator_of(name, overload)
    outputs = bound.output if isinstance(bound.output, (tuple, list)) else (bound.output,)
    if not all([isinstance(o, TensorProxy) for o in outputs]) or operator.results not in (None, len(outputs)):
        raise CannotExpress(f"{name} returns what is no tensor")
    if max(len(operator.arguments), len(outputs)) > STACK:
        raise CannotExpress(f"{name} takes or returns more than {STACK} values")
    _step(table, operator, bound.args if args is None else args, bound.kwargs, [o.name for o in outputs])


def call(table: Table, name: str, overload: str, *given: Any, into: str | None = None) -> Slot:
    """Append the step that calls an operator that returns one tensor; return where that is.

    Args:
        table: what is appended to.
        name, overload: of the operator.
        given: the first arguments; of the others it takes the defaults.
        into: the slot for what it returns; a new one if left out.

    Raises:
        CannotExpress: an argument is of a kind that has no encoding.
    """
    operator = operator_of(name, overload)
    made = table.new() if into is None else Slot(into)
    _step(table, operator, given, {}, [made.name])
    return made


def _step(
    table: Table, operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any], made: Sequence[str]
) -> None:
    arguments = operator.arguments
    if len(args) > len(arguments):
        raise CannotExpress(f"{operator.name} takes fewer arguments")
    given = _given(operator, args, kwargs) if kwargs else args
    pairs: list[Word] = []
    for argument, value in zip(arguments, given, strict=False):
        pairs += _encode(table, argument, value)
    if len(given) < len(arguments):
        words, memory = _defaults(operator.name, operator.overload, len(given))
        pairs += words
        table.memory += memory
    counts = len(arguments), len(made), int(operator.results is None)
    table.memory += operator.memory
    table.step("dispatched", *operator.head, *counts, *pairs, *made)
    table.asks |= operator.writes or (operator.views and not table.inner)


@cache
def _defaults(name: str, overload: str, given: int) -> tuple[list[Word], list[object]]:
    """Return the words of the arguments behind so many, of which none is given, and what these point to."""
    operator, table = operator_of(name, overload), Table()
    values = _given(operator, (None,) * given, {})
    pairs: list[Word] = []
    for argument, value in zip(operator.arguments[given:], values[given:], strict=True):
        pairs += _encode(table, argument, value)
    return pairs, table.memory


def _given(operator: Operator, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the values of all arguments."""
    arguments = operator.arguments
    values = list(args)
    named = 0
    for argument in arguments[len(values) :]:
        if argument.name in kwargs:
            values.append(kwargs[argument.name])
            named += 1
        elif argument.required:
            raise CannotExpress(f"{operator.name} wants {argument.name}")
        else:
            values.append(argument.default)
    if named < len(kwargs):
        raise CannotExpress(f"{operator.name} takes no {', '.join(kwargs)}")
    return values


def _encode(table: Table, argument: Argument, value: Any) -> tuple[int, Word]:
    """Return the two words of one argument."""
    inner, optional = argument.kind, argument.optional
    if value is None and optional:
        return WORD, 0
    if inner == "Tensor" and isinstance(value, (TensorProxy, Slot)):
        return (OPTIONAL_TENSOR if optional else TENSOR), value.name
    if inner in ("int", "SymInt") and isinstance(value, IntegerProxy):
        return (OPTIONAL_NUMBER if optional else NUMBER), value.name
    if inner == "List[Tensor]" and isinstance(value, (tuple, list)):
        if all([isinstance(v, TensorProxy) for v in value]):
            return TENSORS, listed([v.name for v in value])
    if inner.startswith("List[") and value == ():
        return (OPTIONAL_LIST if optional else LIST), listed([])
    if inner in ("List[int]", "List[bool]"):
        wanted = int if inner == "List[int]" else bool
        items = [value] if value.__class__ is int else value
        if isinstance(items, (tuple, list)) and all([v.__class__ is wanted for v in items]):
            return (OPTIONAL_LIST if optional else LIST), listed([int(v) for v in items])
        if isinstance(items, (tuple, list)) and all([isinstance(v, (int, IntegerProxy)) for v in items]):
            return (OPTIONAL_MIXED if optional else MIXED), _mixed(items)
    if inner == "str" and not optional and isinstance(value, str):
        return TEXT, listed([len(value.encode()), table.text(value)])
    word = _word(inner, value)
    if word is None:
        raise CannotExpress(f"{argument.name}={value!r} is no {inner} that has an encoding")
    return (OPTIONAL_WORD if optional else WORD), word


def _mixed(items: Sequence[int | IntegerProxy]) -> Words:
    """Return how many integers there are; for each, whether it is the program's, and it or its slot."""
    pairs = [(1, v.name) if isinstance(v, IntegerProxy) else (0, int(v)) for v in items]
    return Words((len(items), *[word for pair in pairs for word in pair]))


def _word(kind: str, value: Any) -> int | None:
    if kind == "Device" and isinstance(value, (torch.device, str)) and torch.device(value).type == "cpu":
        return 0xFFFFFFFF if torch.device(value).index is None else 0  # the kind of device is 0 in the upper half
    if kind == "MemoryFormat" and value in (0, torch.contiguous_format):
        return int(torch_library().aoti_torch_memory_format_contiguous_format())  # type: ignore[union-attr]
    if kind in ("int", "SymInt") and value.__class__ is int:
        return int(value)
    if kind == "bool" and value.__class__ is bool:
        return int(value)
    if kind == "float" and value.__class__ in (int, float):
        return bits(float(value))
    if kind == "ScalarType" and isinstance(value, torch.dtype):
        return dtype_word(value)
    return None
