"""Calls by PyTorch's dispatcher: arguments as an operator's schema names them, encoded as words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch

from thunder_executors_llvm.library import torch_library
from thunder_ir import BoundSymbol, IntegerProxy, TensorProxy
from thunder_native.machine_dispatch import STACK
from thunder_native.table import CannotExpress, Slot, Table, bits

(
    WORD, TENSOR, OPTIONAL_TENSOR, OPTIONAL_WORD, LIST, OPTIONAL_LIST, TENSORS, TEXT,
    NUMBER, OPTIONAL_NUMBER, MIXED, OPTIONAL_MIXED,
) = range(12)  # fmt: skip
"""Kinds of arguments, as :mod:`thunder_native.machine_dispatch` tells them apart."""


@cache
def schema_of(name: str, overload: str) -> Any:
    """Return the schema of an operator."""
    return torch._C._get_schema(name, overload)


@cache
def dtype_word(dtype: torch.dtype) -> int:
    """Return the number of a dtype in PyTorch's C interface."""
    function = getattr(torch_library(), f"aoti_torch_dtype_{str(dtype).removeprefix('torch.')}", None)
    if function is None:
        raise CannotExpress(f"{dtype} has no number")
    return int(function())


def dispatch(table: Table, bound: BoundSymbol, name: str, overload: str) -> None:
    """Append the step that makes a call.

    Args:
        table: what is appended to.
        bound: the call; its arguments are those of the schema, by position or name.
        name, overload: of the operator.

    Raises:
        CannotExpress: an argument is of a kind that has no encoding.
    """
    schema = schema_of(name, overload)
    given = _given(bound.args, bound.kwargs, schema)
    outputs = bound.output if isinstance(bound.output, (tuple, list)) else (bound.output,)
    listed = [str(r.real_type) for r in schema.returns] == ["List[Tensor]"]
    if not all([isinstance(o, TensorProxy) for o in outputs]) or not (listed or len(outputs) == len(schema.returns)):
        raise CannotExpress(f"{name} returns what is no tensor")
    if max(len(given), len(outputs)) > STACK:
        raise CannotExpress(f"{name} takes or returns more than {STACK} values")
    pairs = _pairs(table, schema, given)
    made = [table.make(o) for o in outputs]
    _step(table, name, overload, pairs, made, listed)


def call(table: Table, name: str, overload: str, *given: Any, into: int | None = None) -> Slot:
    """Append the step that calls an operator that returns one tensor; return where that is.

    Args:
        table: what is appended to.
        name, overload: of the operator.
        given: the first arguments; of the others it takes the defaults.
        into: the slot for what it returns; a new one if left out.

    Raises:
        CannotExpress: an argument is of a kind that has no encoding.
    """
    schema = schema_of(name, overload)
    pairs = _pairs(table, schema, _given(given, {}, schema))
    made = Slot(table.new() if into is None else into)
    _step(table, name, overload, pairs, [made.index], listed=False)
    return made


def _pairs(table: Table, schema: Any, given: list[Any]) -> list[int]:
    pairs: list[int] = []
    for argument, value in zip(schema.arguments, given, strict=True):
        pairs += _encode(table, str(argument.real_type), value, argument.name)
    return pairs


def _step(table: Table, name: str, overload: str, pairs: list[int], made: list[int], listed: bool) -> None:
    table.step(
        "dispatched", table.text(name), table.text(overload), table.runtime.version, len(pairs) // 2, len(made),
        int(listed), *pairs, *made,
    )  # fmt: skip


def _given(args: Sequence[Any], kwargs: Mapping[str, Any], schema: Any) -> list[Any]:
    arguments = schema.arguments
    if len(args) > len(arguments):
        raise CannotExpress(f"{schema.name} takes fewer arguments")
    rest = dict(kwargs)
    values = list(args)
    for argument in arguments[len(values) :]:
        if argument.name in rest:
            values.append(rest.pop(argument.name))
        elif argument.has_default_value():
            values.append(argument.default_value)
        else:
            raise CannotExpress(f"{schema.name} wants {argument.name}")
    if rest:
        raise CannotExpress(f"{schema.name} takes no {', '.join(rest)}")
    return values


def _encode(table: Table, kind: str, value: Any, name: str) -> tuple[int, int]:
    """Return the two words of one argument."""
    optional = kind.startswith("Optional[")
    inner = kind[len("Optional[") : -1] if optional else kind
    if value is None and optional:
        return WORD, 0
    if inner == "Tensor" and isinstance(value, (TensorProxy, Slot)):
        return (OPTIONAL_TENSOR if optional else TENSOR), table.read(value)
    if inner in ("int", "SymInt") and isinstance(value, IntegerProxy):
        return (OPTIONAL_NUMBER if optional else NUMBER), table.read(value)
    if inner == "List[Tensor]" and isinstance(value, (tuple, list)):
        if all([isinstance(v, TensorProxy) for v in value]):
            return TENSORS, table.words([table.read(v) for v in value])
    if inner in ("List[int]", "List[bool]"):
        wanted = int if inner == "List[int]" else bool
        items = [value] if value.__class__ is int else value
        if isinstance(items, (tuple, list)) and all([v.__class__ is wanted for v in items]):
            return (OPTIONAL_LIST if optional else LIST), table.words([int(v) for v in items])
        if isinstance(items, (tuple, list)) and all([isinstance(v, (int, IntegerProxy)) for v in items]):
            return (OPTIONAL_MIXED if optional else MIXED), _mixed(table, items)
    if kind == "str" and isinstance(value, str):
        return TEXT, table.words([len(value.encode()), table.text(value)])
    word = _word(inner, value)
    if word is None:
        raise CannotExpress(f"{name}={value!r} is no {kind} that has an encoding")
    return (OPTIONAL_WORD if optional else WORD), word


def _mixed(table: Table, items: Sequence[int | IntegerProxy]) -> int:
    """Return the address of how many integers there are; for each, whether it is the program's, and it or its slot."""
    pairs = [(1, table.read(v)) if isinstance(v, IntegerProxy) else (0, int(v)) for v in items]
    return table.words([word for pair in pairs for word in pair], len(items))


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
