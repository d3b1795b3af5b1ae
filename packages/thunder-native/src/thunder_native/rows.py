"""The rows of calls that compute or make tensors: a row for each function."""

from __future__ import annotations

import math
from typing import Any

import torch

import thunder_prims as prims
from thunder_ir import BoundSymbol, TensorProxy, dtypes
from thunder_native import indexing, integers, views
from thunder_native.arguments import arguments
from thunder_native.executor import SMALL
from thunder_native.kernels import by_kernel
from thunder_native.program import is_small
from thunder_native.registry import Lowering, dispatched, lowering
from thunder_native.schema import call, dispatch, dtype_word
from thunder_native.table import CannotExpress, Table, Words, bits, imported
from thunder_native.views import inner_or
from thunder_torch.convert import to_torch_dtype

EXACT = 2**53
"""Integers up to this one are floating-point numbers."""


def spread(name: str, overload: str = "") -> Lowering:
    """Return the row of a function that takes sizes behind its tensors, as one argument or as several."""

    def write(table: Table, bound: BoundSymbol) -> None:
        tensors = [a for a in bound.args if isinstance(a, TensorProxy)]
        rest = bound.args[len(tensors) :]
        if rest and isinstance(rest[0], torch.dtype):  # the bits of a tensor as another dtype
            return dispatch(table, bound, name, "dtype")
        sizes = rest[0] if len(rest) == 1 and isinstance(rest[0], (tuple, list)) else rest
        dispatch(table, bound.replace(args=(*tensors, tuple(sizes))), name, overload)

    return write


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
        table.step("binary_alpha", imported(tensors), a.name, b.name, bound.output.name, bits(1.0))
    else:
        number = sign * _number(b)
        function = imported("aoti_torch_cpu_add_Scalar")
        table.step("scalar_alpha", function, a.name, bound.output.name, bits(number), bits(1.0))


@lowering("torch.add")
def add(table: Table, bound: BoundSymbol) -> None:
    """``a + b``."""
    if integers.is_sum(bound):
        return integers.integer_sum(table, bound)
    _sum(table, bound, "aoti_torch_cpu_add_Tensor", 1.0)


@lowering("torch.sub")
def sub(table: Table, bound: BoundSymbol) -> None:
    """``a - b``; a number is added with the other sign, which is the same to the bit."""
    _sum(table, bound, "aoti_torch_aten_subtract_Tensor", -1.0)


@lowering("torch.rsub")
def rsub(table: Table, bound: BoundSymbol) -> None:
    """``number - a``; the number becomes a tensor without dimensions, whose dtype yields to that of ``a``."""
    a, b = _operands(bound)
    _floating(a, b)
    if isinstance(b, TensorProxy) or not a.ndim:
        raise CannotExpress("it subtracts from a tensor, or of one without dimensions")
    number = table.number(_number(b))
    function = imported("aoti_torch_aten_subtract_Tensor")
    table.step("binary_alpha", function, number.name, a.name, bound.output.name, bits(1.0))
    table.release(number)


@lowering("torch.mul")
def mul(table: Table, bound: BoundSymbol) -> None:
    """``a * b``."""
    a, b = _operands(bound)
    if isinstance(a, TensorProxy) and isinstance(b, TensorProxy):
        function = imported("aoti_torch_cpu_mul_Tensor")
        table.step("binary", function, a.name, b.name, bound.output.name)
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
    table.step("scalar", imported(function), a.name, bound.output.name, bits(_number(b)))


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
    number = table.number(_number(b if tensor is a else a))
    left, right = (a, number) if tensor is a else (number, b)
    call(table, "aten::div", "Tensor", left, right, into=bound.output.name)
    table.release(number)


@lowering("torch.nn.functional.linear")
def linear(table: Table, bound: BoundSymbol) -> None:
    """Of matrices, and of the rows of other tensors, as PyTorch itself does it; else by its operator."""
    a, weight, bias = arguments(bound, "input", "weight", bias=None)
    if a.ndim < 2 or weight.ndim != 2 or (bias is not None and bias.ndim != 1):
        return dispatch(table, bound, "aten::linear", "")
    dtype = _dtype(bound.output)
    if a.ndim > 2:
        return _linear_of_rows(table, bound, a, weight, bias, dtype)
    if bias is not None:
        words = [a.name, weight.name, bias.name]
        table.step("affine", *words, bound.output.name, dtype, 1, _size(bias, bound.output))
        return
    turned = table.new()
    table.step("permuted", weight.name, turned.name, 2, 1, 0)
    table.step("product", a.name, turned.name, bound.output.name, dtype)
    table.release(turned)


def _linear_of_rows(table: Table, bound: BoundSymbol, a: Any, weight: Any, bias: Any, dtype: int) -> None:
    dispatch(table, bound, "aten::linear", "")
    sizes = (*a.shape, *bound.output.shape)
    known = all([size.__class__ is int for size in sizes]) and 0 not in sizes
    if not known or (bias is not None and (a.ndim != 3 or not table.inner)):  # then PyTorch returns a view
        return
    _, words = table.steps.pop()
    flat, shape = (math.prod(a.shape[:-1]), a.shape[-1]), tuple(bound.output.shape)
    strides = tuple([math.prod(shape[d + 1 :]) for d in range(len(shape))])
    read = (a.name, weight.name, a.name if bias is None else bias.name, bound.output.name)
    size = 0 if bias is None else _size(bias, bound.output)
    lies = Words(flat), Words((flat[1], 1)), len(shape), Words(shape), Words(strides), Words(words)
    table.step("linear", *read, dtype, int(bias is not None), size, math.prod(flat), *lies)


@lowering("torch.addmm")
def addmm(table: Table, bound: BoundSymbol) -> None:
    """``bias + a @ b`` of matrices."""
    if len(bound.args) != 3 or bound.kwargs:
        raise CannotExpress("it scales what it adds")
    bias, a, b = bound.args
    size = _size(bias, bound.output)
    table.step("affine", a.name, b.name, bias.name, bound.output.name, _dtype(bound.output), 0, size)


def _dtype(room: TensorProxy) -> int:
    """Return the word of the dtype of the memory for a result; PyTorch refuses operands of another one."""
    return dtype_word(to_torch_dtype(room.dtype))


def _size(bias: TensorProxy, output: TensorProxy) -> int:
    """Return the bytes of an element of a bias; 0 where PyTorch is to spread it out."""
    return to_torch_dtype(bias.dtype).itemsize if bias.dtype == output.dtype and is_small(output, SMALL) else 0


@lowering("torch.matmul")
def matmul(table: Table, bound: BoundSymbol) -> None:
    """Of matrices as PyTorch itself does it; of other tensors by its operator."""
    a, b = _operands(bound)
    if a.ndim != 2 or b.ndim != 2:
        return dispatch(table, bound, "aten::matmul", "")
    table.step("product", a.name, b.name, bound.output.name, _dtype(bound.output))


def by_onednn(table: Table, bound: BoundSymbol, a: Any, matrix: Any, bias: Any, turns: bool) -> None:
    """A product by oneDNN, of a matrix that is transposed, or that is to be turned for it; biases lie in sequence."""
    if not torch.backends.mkldnn.enabled:
        raise CannotExpress("oneDNN is switched off")
    switches = imported("_ZN2at13globalContextEv"), imported("_ZNK2at7Context17userEnabledMkldnnEv")
    table.step("for_onednn", matrix.name, *switches)  # Python copies others before
    turned, added = table.new() if turns else matrix, bias
    if turns:
        table.step("permuted", matrix.name, turned.name, 2, 1, 0)
    if bias is not None:
        added = call(table, "aten::contiguous", "", bias)
    call(table, "mkldnn::_linear_pointwise", "", a, turned, added, "none", (), None, into=bound.output.name)
    for slot in [turned] * turns + [added] * (bias is not None):
        table.release(slot)


@lowering("thunder_executors_onednn.products.linear")
def onednn_linear(table: Table, bound: BoundSymbol) -> None:
    """``a @ weight.T + bias``."""
    a, weight, bias = arguments(bound, "input", "weight", "bias")
    by_onednn(table, bound, a, weight, bias, turns=False)


@lowering("thunder_executors_onednn.products.matmul")
def onednn_matmul(table: Table, bound: BoundSymbol) -> None:
    """``a @ b`` of a matrix."""
    a, b = _operands(bound)
    by_onednn(table, bound, a, b, None, turns=True)


@lowering("thunder_executors_onednn.products.addmm")
def onednn_addmm(table: Table, bound: BoundSymbol) -> None:
    """``bias + a @ b`` of a matrix."""
    bias, a, b = arguments(bound, "bias", "a", "b")
    by_onednn(table, bound, a, b, bias, turns=True)


@lowering("thunder_executors_torch.linalg.outer")
def outer(table: Table, bound: BoundSymbol) -> None:
    """Columns times rows, put into rows where the operands have it lie otherwise."""
    a, b = _operands(bound)
    shape = tuple(bound.output.shape)
    if _are_batches(a, b, shape):
        strides = tuple([math.prod(shape[d + 1 :]) for d in range(len(shape))])
        lies = Words(tuple(a.shape)), Words(tuple(b.shape)), Words(shape), Words(strides)
        size = to_torch_dtype(a.dtype).itemsize
        table.step("outer", a.name, b.name, bound.output.name, len(shape), _dtype(bound.output), size, *lies)
        return
    made = table.new()
    table.step("binary", imported("aoti_torch_cpu_mul_Tensor"), a.name, b.name, made.name)
    call(table, "aten::contiguous", "", made, into=bound.output.name)
    table.release(made)


def _are_batches(a: TensorProxy, b: TensorProxy, shape: tuple[Any, ...]) -> bool:
    """Whether columns and rows are float32 or float64, of as many batches, and of known sizes beyond one."""
    known = all([size.__class__ is int and size > 1 for size in shape])
    exact = a.dtype == b.dtype and a.dtype in (dtypes.float32, dtypes.float64)
    return known and exact and len(shape) in (2, 3) and a.shape[:-2] == b.shape[:-2] == shape[:-2]


for _name in ("view", "reshape"):
    _row = inner_or(views.shaped(f"aten::{_name}"), spread(f"aten::{_name}"))
    lowering(f"torch.Tensor.{_name}", *["torch.reshape"] * (_name == "reshape"), new=False)(_row)
lowering("torch.Tensor.expand", new=False)(spread("aten::expand"))
lowering("torch.permute", "torch.Tensor.permute", new=False)(inner_or(views.permuted, spread("aten::permute")))
lowering("torch.transpose", new=False)(inner_or(views.transposed, dispatched("aten::transpose", "int")))
_split, _chunk = dispatched("aten::split", "Tensor", "sizes"), dispatched("aten::chunk")
lowering("torch.split", new=False)(inner_or(views.pieces("split_size_or_sections"), _split))
lowering("torch.Tensor.split", new=False)(inner_or(views.pieces("split_size"), _split))
lowering("torch.chunk", new=False)(inner_or(views.pieces("chunks"), _chunk))
for _name in ("zeros", "ones"):
    lowering(f"torch.{_name}")(spread(f"aten::{_name}"))
lowering("torch.Tensor.new_zeros")(spread("aten::new_zeros"))


@lowering("torch.nn.functional.embedding")
def embedding(table: Table, bound: BoundSymbol) -> None:
    """Rows of a matrix at indices, none of them renormalised."""
    last: dict[str, Any] = {"norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False}
    indices, weight, _, most, *_ = arguments(bound, "input", "weight", padding_idx=None, max_norm=None, **last)
    if most is not None:
        raise CannotExpress("it renormalises rows")
    dispatch(table, bound.replace(args=(weight, indices), kwargs={}), "aten::embedding", "")


@lowering("torch.cat")
def cat(table: Table, bound: BoundSymbol) -> None:
    """Joined along a dimension."""
    tensors, dimension = arguments(bound, "tensors", dim=0)
    if dimension.__class__ is not int or not all([isinstance(t, TensorProxy) for t in tensors]):
        raise CannotExpress("it joins other than tensors along a dimension")
    read = [t.name for t in tensors]
    table.step("joined", bound.output.name, dimension, len(read), *read)


@lowering("torch.ops.aten.threshold_backward.default")
def threshold_backward(table: Table, bound: BoundSymbol) -> None:
    """``where(a <= threshold, 0, dy)``, which is the same to the bit; no number for PyTorch's own can be encoded."""
    dy, a, threshold = arguments(bound, "grad_output", "self", "threshold")
    _floating(dy, a)
    number = _number(threshold)
    if dy.shape != a.shape:
        raise CannotExpress("its operands have other shapes")

    def masked(dy: TensorProxy, a: TensorProxy) -> TensorProxy:
        return prims.where(prims.le(a, number), 0.0, dy)

    by_kernel(table, bound, masked, dy, a)


@lowering("thunder_executors_torch.masks.added_to_scores")
def added_to_scores(table: Table, bound: BoundSymbol) -> None:
    """Zeros where a mask is true, and minus infinity elsewhere."""
    result = bound.output

    def turned(mask: TensorProxy) -> TensorProxy:
        return prims.where(mask, prims.full(mask.shape, 0.0, result.dtype, result.device), -math.inf)

    mask, _ = arguments(bound, "mask", "dtype")
    by_kernel(table, bound, turned, mask)


lowering("torch.index_copy")(integers.index_copy)
lowering("thunder_executors_torch.indexing.check_indices")(integers.checked_indices)
lowering("torch.Tensor.__getitem__", new=False)(inner_or(indexing.inner, indexing.outer))


MOST = 4096
"""How many elements may be kept of what is always the same."""


@lowering("torch.arange", "torch.full")
def constant(table: Table, bound: BoundSymbol) -> None:
    """Of plain numbers: computed once, and copied, as somebody may write to it."""
    if bound.inputs or math.prod(bound.output.shape) > MOST:
        raise CannotExpress("its arguments are the program's, or it has many elements")
    made = table.constant(getattr(torch, bound.symbol.path.removeprefix("torch."))(*bound.args, **bound.kwargs))
    call(table, "aten::clone", "", made, into=bound.output.name)
    table.release(made)


@lowering("torch.full_like")
def full_like(table: Table, bound: BoundSymbol) -> None:
    """Of zeros or ones, for which there are operators without a number."""
    a, value = _operands(bound)
    if value.__class__ not in (int, float) or value not in (0, 1) or math.copysign(1.0, value) < 0:
        raise CannotExpress("it is filled with another number than 0 or 1")
    dispatch(table, bound.replace(args=(a,)), "aten::ones_like" if value else "aten::zeros_like", "")


def conversion(dtype: torch.dtype) -> Lowering:
    """Return the row of a method that is called like the dtype that it converts to."""

    def write(table: Table, bound: BoundSymbol) -> None:
        dispatch(table, bound.replace(args=(*bound.args, dtype)), "aten::to", "dtype")

    return write


for _name in ("float", "double", "half", "bfloat16", "long", "int", "bool"):
    lowering(f"torch.Tensor.{_name}", new=False)(conversion(getattr(torch, _name)))


UNARY = (
    "relu", "tanh", "sigmoid", "exp", "log", "neg", "sin", "cos", "sqrt", "rsqrt", "abs", "erf", "reciprocal", "log1p",
    "expm1", "floor", "ceil", "square", "clone", "detach", "erfc", "exp2", "log2", "log10", "sign", "round", "trunc",
    "logical_not", "isnan", "isfinite", "cosh", "sinh", "tan", "atan", "asinh", "sgn", "zeros_like", "ones_like",
)  # fmt: skip
for _name in UNARY:
    lowering(f"torch.{_name}", new=_name != "detach")(dispatched(f"aten::{_name}"))

COMPUTING: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("torch.nn.functional.silu", "silu", ("",)),
    ("torch.nn.functional.gelu", "gelu", ("",)),
    ("torch.nn.functional.layer_norm", "layer_norm", ("",)),
    ("torch.native_layer_norm", "native_layer_norm", ("",)),
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
    ("torch.lstm_cell", "lstm_cell", ("",)),
    ("torch.gru_cell", "gru_cell", ("",)),
    ("torch.stack", "stack", ("",)),
    ("torch.embedding", "embedding", ("",)),
    ("torch._softmax_backward_data", "_softmax_backward_data", ("",)),
    ("torch._log_softmax_backward_data", "_log_softmax_backward_data", ("",)),
    ("torch._scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention_for_cpu", ("",)),
    ("torch.index_select", "index_select", ("",)),
    ("torch.gather", "gather", ("",)),
    ("torch.argmax", "argmax", ("",)),
    ("torch.amin", "amin", ("",)),
    ("torch.cumsum", "cumsum", ("",)),
    ("torch.tril", "tril", ("",)),
    ("torch.eq", "eq", ("Tensor",)),
    ("torch.ne", "ne", ("Tensor",)),
    ("torch.lt", "lt", ("Tensor",)),
    ("torch.le", "le", ("Tensor",)),
    ("torch.gt", "gt", ("Tensor",)),
    ("torch.ge", "ge", ("Tensor",)),
    ("torch.logical_and", "logical_and", ("",)),
    ("torch.logical_or", "logical_or", ("",)),
    ("torch.diagonal_scatter", "diagonal_scatter", ("",)),
)
"""Calls that make new memory: path, operator, overloads."""

ACTIVATIONS = ("relu", "hardswish", "relu6", "mish")
IN_C = ("silu", "hardswish", "mish", "max_pool2d_with_indices")
for _name in ACTIVATIONS:
    lowering(f"torch.nn.functional.{_name}")(dispatched(f"aten::{_name}"))
for _name in IN_C:
    lowering(f"torch._C._nn.{_name}")(dispatched(f"aten::{_name}"))


@lowering("torch.conv2d")
def conv2d(table: Table, bound: BoundSymbol) -> None:
    """Of a batch of images; of one image PyTorch returns a view."""
    image, *_ = arguments(bound, "input", "weight", bias=None, stride=1, padding=0, dilation=1, groups=1)
    if image.ndim != 4:
        raise CannotExpress("its input is no batch")
    dispatch(table, bound, "aten::conv2d", "")


for _path, _operator, _overloads in COMPUTING:
    lowering(_path)(dispatched(f"aten::{_operator}", *_overloads))

VIEWING: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("torch.flatten", "flatten", ("using_ints",)),
    ("torch.Tensor.to", "to", ("dtype",)),
    ("torch.Tensor.contiguous", "contiguous", ("",)),
    ("torch.t", "t", ("",)),
    ("torch.unsqueeze", "unsqueeze", ("",)),
    ("torch.squeeze", "squeeze", ("", "dim", "dims")),
    ("torch.select", "select", ("int",)),
    ("torch.narrow", "narrow", ("",)),
    ("torch.unbind", "unbind", ("int",)),
    ("torch.diagonal", "diagonal", ("",)),
    ("torch.movedim", "movedim", ("int", "intlist")),
    ("torch.Tensor.unflatten", "unflatten", ("int",)),
)
"""Calls that may return views."""

for _path, _operator, _overloads in VIEWING:
    lowering(_path, new=False)(dispatched(f"aten::{_operator}", *_overloads))
