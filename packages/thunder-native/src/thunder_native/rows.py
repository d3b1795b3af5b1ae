"""Which calls of PyTorch native code can make, and how: a row for each, found by the path that the program prints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from thunder_ir import BoundSymbol, TensorProxy, devices, dtypes
from thunder_native.schema import dispatch, dtype_word
from thunder_native.table import CannotExpress, Table, bits, imported
from thunder_torch.convert import to_torch_dtype

Lowering = Callable[[Table, BoundSymbol], None]

ROWS: dict[str, Lowering] = {}
"""How calls are written, by the path of the function."""

NEW: set[str] = set()
"""Paths of the functions whose results share no memory with what they read."""

EXACT = 2**53
"""Integers up to this one are floating-point numbers."""


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

    Args:
        name: of the operator.
        overloads: tried in this order.
    """

    def write(table: Table, bound: BoundSymbol) -> None:
        reasons = []
        for overload in overloads or ("",):
            try:
                return dispatch(table, bound, name, overload)
            except CannotExpress as error:
                reasons.append(str(error))
        raise CannotExpress("; ".join(reasons))

    return write


def why_not(bound: BoundSymbol) -> str | None:
    """Return why a call is surely none for native code, or ``None``; its row has the last word."""
    if bound.symbol.path not in ROWS:
        return f"{bound.symbol.path or bound.symbol.id} has no row"
    for proxy in (*bound.inputs, *bound.outputs):
        if not isinstance(proxy, TensorProxy):
            return f"{proxy.name} is no tensor"
        if proxy.device.type is not devices.cpu.type:
            return f"{proxy.name} lives on {proxy.device}"
    return None


def _operands(bound: BoundSymbol) -> tuple[Any, Any]:
    if len(bound.args) != 2 or bound.kwargs:
        raise CannotExpress("it has other arguments than two operands")
    a, b = bound.args
    return a, b


def _floating(*values: Any) -> None:
    """Refuse all but tensors of one floating-point dtype, for which numbers are tensors that do not promote."""
    kinds = {v.dtype for v in values if isinstance(v, TensorProxy)}
    if len(kinds) != 1 or not kinds <= {dtypes.float32, dtypes.float64}:
        raise CannotExpress("its operands are not all float32, or all float64")


def _number(value: Any) -> float:
    """Return a number that floating-point arithmetic takes as it is.

    Raises:
        CannotExpress: it is none.
    """
    if value.__class__ not in (int, float) or math.isnan(value) or (value.__class__ is int and abs(value) > EXACT):
        raise CannotExpress(f"{value!r} is no number for floating-point arithmetic")
    return float(value)


def _sum(table: Table, bound: BoundSymbol, tensors: str, sign: float) -> None:
    a, b = _operands(bound)
    _floating(a, b)
    if not isinstance(a, TensorProxy):
        raise CannotExpress("a number stands on the left")
    if isinstance(b, TensorProxy):
        table.step("binary_alpha", imported(tensors), table.read(a), table.read(b), table.make(bound.output), bits(1.0))
    else:
        number = sign * _number(b)
        function = imported("aoti_torch_cpu_add_Scalar")
        table.step("scalar_alpha", function, table.read(a), table.make(bound.output), bits(number), bits(1.0))


@lowering("torch.add")
def add(table: Table, bound: BoundSymbol) -> None:
    """``a + b``."""
    _sum(table, bound, "aoti_torch_cpu_add_Tensor", 1.0)


@lowering("torch.sub")
def sub(table: Table, bound: BoundSymbol) -> None:
    """``a - b``; a number is added with the other sign, which is the same to the bit."""
    _sum(table, bound, "aoti_torch_aten_subtract_Tensor", -1.0)


@lowering("torch.mul")
def mul(table: Table, bound: BoundSymbol) -> None:
    """``a * b``."""
    a, b = _operands(bound)
    if isinstance(a, TensorProxy) and isinstance(b, TensorProxy):
        function = imported("aoti_torch_cpu_mul_Tensor")
        table.step("binary", function, table.read(a), table.read(b), table.make(bound.output))
        return
    _scalar(table, bound, "aoti_torch_cpu_mul_Scalar")


@lowering("torch.pow")
def power(table: Table, bound: BoundSymbol) -> None:
    """``a ** number``."""
    _scalar(table, bound, "aoti_torch_cpu_pow_Tensor_Scalar")


def _scalar(table: Table, bound: BoundSymbol, function: str) -> None:
    a, b = _operands(bound)
    _floating(a, b)
    if not isinstance(a, TensorProxy):
        raise CannotExpress("a number stands on the left")
    table.step("scalar", imported(function), table.read(a), table.make(bound.output), bits(_number(b)))


@lowering("torch.div", "torch.true_divide")
def div(table: Table, bound: BoundSymbol) -> None:
    """``a / b``; a number becomes a tensor without dimensions, whose dtype yields to that of one that has some."""
    a, b = _operands(bound)
    if isinstance(a, TensorProxy) and isinstance(b, TensorProxy):
        return dispatch(table, bound, "aten::div", "Tensor")
    _floating(a, b)
    tensor = a if isinstance(a, TensorProxy) else b
    if not tensor.ndim:
        raise CannotExpress("neither operand has dimensions")
    number = table.constant(_number(b if tensor is a else a))
    left, right = (table.read(a), number) if tensor is a else (number, table.read(b))
    words = [table.text("aten::div"), table.text("Tensor"), table.runtime.version, 2, 1, 0, 1, left, 1, right]
    table.step("dispatched", *words, table.make(bound.output))


@lowering("torch.nn.functional.linear")
def linear(table: Table, bound: BoundSymbol) -> None:
    """Of matrices as PyTorch itself does it; of other tensors by its operator."""
    values = dict(zip(("input", "weight", "bias"), bound.args, strict=False)) | bound.kwargs
    a, weight, bias = values["input"], values["weight"], values.get("bias")
    if a.ndim != 2 or weight.ndim != 2 or (bias is not None and bias.ndim != 1):
        return dispatch(table, bound, "aten::linear", "")
    dtype = dtype_word(to_torch_dtype(a.dtype))
    if bias is not None:
        words = [table.read(a), table.read(weight), table.read(bias)]
        table.step("linear", *words, table.make(bound.output), dtype)
        return
    turned = table.new()
    table.step("transposed", table.read(weight), turned)
    table.step("product", table.read(a), turned, table.make(bound.output), dtype)
    table.step("release", 1, turned)


@lowering("torch.matmul")
def matmul(table: Table, bound: BoundSymbol) -> None:
    """Of matrices as PyTorch itself does it; of other tensors by its operator."""
    a, b = _operands(bound)
    if a.ndim != 2 or b.ndim != 2:
        return dispatch(table, bound, "aten::matmul", "")
    dtype = dtype_word(to_torch_dtype(a.dtype))
    table.step("product", table.read(a), table.read(b), table.make(bound.output), dtype)


@lowering("torch.permute", new=False)
def permute(table: Table, bound: BoundSymbol) -> None:
    """Of a matrix without the dispatcher, if nobody can tell; else a view as any other."""
    a, dimensions = _operands(bound)
    if bound.output.name in table.inner and tuple(dimensions) == (1, 0):
        table.step("transposed", table.read(a), table.make(bound.output))
        return
    dispatch(table, bound, "aten::permute", "")


@lowering("torch.cat")
def cat(table: Table, bound: BoundSymbol) -> None:
    """Joined along a dimension."""
    values = dict(zip(("tensors", "dim"), bound.args, strict=False)) | bound.kwargs
    tensors, dimension = values.pop("tensors"), values.pop("dim", 0)
    if values or dimension.__class__ is not int or not all([isinstance(t, TensorProxy) for t in tensors]):
        raise CannotExpress("it joins other than tensors along a dimension")
    read = [table.read(t) for t in tensors]
    table.step("joined", table.make(bound.output), dimension, len(read), *read)


UNARY = (
    "relu", "tanh", "sigmoid", "exp", "log", "neg", "sin", "cos", "sqrt", "rsqrt", "abs", "erf", "reciprocal", "log1p",
    "expm1", "floor", "ceil", "square", "clone", "detach",
)  # fmt: skip
for _name in UNARY:
    lowering(f"torch.{_name}", new=_name != "detach")(dispatched(f"aten::{_name}"))

COMPUTING: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("torch.nn.functional.silu", "silu", ("",)),
    ("torch.nn.functional.gelu", "gelu", ("",)),
    ("torch.nn.functional.layer_norm", "layer_norm", ("",)),
    ("torch.native_layer_norm", "native_layer_norm", ("",)),
    ("torch.ops.aten.native_layer_norm_backward.default", "native_layer_norm_backward", ("",)),
    ("torch.nn.functional.scaled_dot_product_attention", "scaled_dot_product_attention", ("",)),
    ("torch.softmax", "softmax", ("int",)),
    ("torch.log_softmax", "log_softmax", ("int",)),
    ("torch.sum", "sum", ("", "dim_IntList")),
    ("torch.mean", "mean", ("", "dim")),
    ("torch.amax", "amax", ("",)),
    ("torch.maximum", "maximum", ("",)),
    ("torch.minimum", "minimum", ("",)),
    ("torch.where", "where", ("self",)),
    ("torch.bmm", "bmm", ("",)),
    ("torch.mm", "mm", ("",)),
)
"""Calls that make new memory: path, operator, overloads."""

for _path, _operator, _overloads in COMPUTING:
    lowering(_path)(dispatched(f"aten::{_operator}", *_overloads))

VIEWING: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("torch.reshape", "reshape", ("",)),
    ("torch.Tensor.view", "view", ("",)),
    ("torch.Tensor.expand", "expand", ("",)),
    ("torch.transpose", "transpose", ("int",)),
    ("torch.unsqueeze", "unsqueeze", ("",)),
    ("torch.squeeze", "squeeze", ("", "dim", "dims")),
    ("torch.split", "split", ("Tensor", "sizes")),
    ("torch.chunk", "chunk", ("",)),
    ("torch.select", "select", ("int",)),
    ("torch.narrow", "narrow", ("",)),
    ("torch.unbind", "unbind", ("int",)),
)
"""Calls that may return views."""

for _path, _operator, _overloads in VIEWING:
    lowering(_path, new=False)(dispatched(f"aten::{_operator}", *_overloads))
