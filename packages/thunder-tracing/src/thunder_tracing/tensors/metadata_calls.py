"""Torch functions that a program being acquired answers at once, from metadata, and those that it refuses."""

from __future__ import annotations

import itertools
import math
import operator
from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError, DataDependentError
from thunder_ir import NumberProxy, is_unknown
from thunder_ir.unknown import surely_equal
from thunder_torch.unknown_sizes import has_unknown_sizes
from thunder_tracing.tensors._einsum_views import rearranged
from thunder_tracing.tensors._handlers import answers, answers_each
from thunder_tracing.tensors._view_writes import laid_out
from thunder_tracing.tensors.sizes import as_size
from thunder_tracing.tensors.storage import count_apart, place_is_known
from thunder_tracing.tensors.traced_tensor import TracedTensor
from thunder_tracing.tensors.value_calls import VALUE, handed_out
from thunder_tracing.tensors.write_calls import WriteCalls

T = torch.Tensor


def getter(name: str) -> Any:
    """Return the function that PyTorch takes the reading of an attribute for."""
    return getattr(T, name).__get__


@answers_each(
    *[getter(n) for n in ("dtype", "device", "layout", "is_cuda", "is_cpu", "is_meta", "is_sparse", "is_mps",
                          "is_xpu", "is_quantized", "is_nested", "is_mkldnn", "itemsize", "is_sparse_csr")
      if hasattr(T, n)],
    T.is_floating_point, T.is_complex, T.is_signed, T.element_size, T.get_device, T.__hash__, T.is_same_size,
    torch.is_floating_point, torch.is_complex, torch.is_tensor, torch.is_signed, torch.is_same_size,
    torch._C._set_grad_enabled,
)  # fmt: skip
def _told_by_itself(function: Any, calls: WriteCalls, *args: Any, **kwargs: Any) -> Any:
    """The traced tensor, a tensor with metadata, tells it."""
    with torch._C.DisableTorchFunctionSubclass():
        return function(*args, **kwargs)


@answers(getter("shape"))
def _shape(calls: WriteCalls, tensor: T) -> Any:
    return handed_out(calls, as_size(calls.traced(tensor)._proxy.shape))


@answers(T.size)
def _size(calls: WriteCalls, tensor: T, dim: int | None = None) -> Any:
    shape = _shape(calls, tensor)
    if dim is None:
        return shape
    if not -max(len(shape), 1) <= dim < max(len(shape), 1):
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-max(len(shape), 1)}, {max(len(shape), 1) - 1}], "
            f"but got {dim})"
        )
    return shape[dim]


@answers(getter("ndim"), T.dim, T.ndimension)
def _ndim(calls: WriteCalls, tensor: T) -> int:
    return len(calls.traced(tensor)._proxy.shape)


@answers(*[getter(name) for name in ("names",) if hasattr(T, name)])
def _names(calls: WriteCalls, tensor: T) -> Any:
    traced = calls.traced(tensor)
    return (None,) * tensor.dim() if traced.given is None else calls.ask(traced, "names", traced.given.names)  # type: ignore[attr-defined]


@answers(T.numel, T.nelement, torch.numel)
def _numel(calls: WriteCalls, tensor: T) -> Any:
    return handed_out(calls, calls.traced(tensor)._proxy.numel)


@answers(T.__len__)
def _len(calls: WriteCalls, tensor: T) -> Any:
    shape = _shape(calls, tensor)
    if not shape:
        raise TypeError("len() of a 0-d tensor")
    return int(shape[0])


@answers(getter("_version"))
def _version(calls: WriteCalls, tensor: T) -> Any:
    if not isinstance(tensor, TracedTensor):  # one that stands in for the layout of another
        with torch._C.DisableTorchFunction():
            return tensor._version
    if calls.traced(tensor)._memory.inference:
        raise RuntimeError("Inference tensors do not track version counter.")
    raise AcquisitionError(
        "_version counts the writes to a tensor, so that a program which reads it holds for one call"
    )


@answers(getter("_base"))
def _base(calls: WriteCalls, tensor: T) -> Any:
    if not isinstance(tensor, TracedTensor):
        with torch._C.DisableTorchFunction():
            return tensor._base
    traced = calls.traced(tensor)
    given = traced.given
    if given is None or given._base is not None:
        raise AcquisitionError("what a tensor is a view of is not known inside of a compiled program")
    return calls.ask(traced, "_base", None)


@answers(T.__deepcopy__)
def _deepcopy(calls: WriteCalls, tensor: T, memo: dict[int, Any]) -> Any:
    if id(tensor) in memo:
        return memo[id(tensor)]
    traced = calls.traced(tensor)
    if not calls.leaves.is_leaf(traced):
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment."
        )
    contents = calls(laid_out, (calls(T.detach, (tensor,), {}), calls.layouts.strides(traced)), {})
    made = memo[id(tensor)] = calls.as_class(traced._stands_for, contents, calls.value(traced).requires_grad)
    gradient = calls.leaves.gradient(traced)
    if gradient is not None:
        calls.leaves.set_gradient(calls.traced(made), _deepcopy(calls, gradient, memo))
    return made


@dataclass(frozen=True, eq=False)
class Another:
    """Makes a tensor of the same memory, with the same attributes: what ``copy.copy`` of one asks for."""

    calls: WriteCalls
    tensor: TracedTensor

    def __call__(self) -> Any:
        """Return the tensor."""
        calls, traced = self.calls, self.tensor
        made = calls.as_class(traced._stands_for, traced, calls.requires_grad(traced))
        count_apart(made)
        made.__dict__.update(traced.attributes())
        return made

    def __reduce_ex__(self, protocol: object) -> Any:
        raise AcquisitionError(
            "a tensor is pickled or saved inside of a compiled program, whose values are known only when the program "
            "runs; return it, and save it outside"
        )


@answers(T.__reduce_ex__)
def reduced(calls: WriteCalls, tensor: T, protocol: object) -> Any:
    """What ``copy.copy`` asks for."""
    return Another(calls, calls.traced(tensor)), ()


_LAYOUT = (
    "how a tensor lies in memory is asked, whose sizes are known only when the program runs; contiguous() gives one "
    "that is laid out in order"
)


@answers(T.stride)
def _stride(calls: WriteCalls, tensor: T, dim: int | None = None) -> Any:
    traced = calls.traced(tensor)
    if has_unknown_sizes([traced._proxy]):
        in_order = calls.layouts.fake(traced).is_contiguous()
        if not in_order or any([is_unknown(size) for size in traced._proxy.shape[1:]]):
            raise DataDependentError(_LAYOUT)
    elif (found := _strides_in_order(calls, traced)) is not None:
        return found if dim is None else found[dim]
    _fix_sizes(traced)
    for other in calls.from_outside():
        _fix_strides(calls, other)
    strides = calls.layouts.strides(traced)
    return strides if dim is None else strides[dim]


def _strides_in_order(calls: WriteCalls, tensor: TracedTensor) -> tuple[Any, ...] | None:
    """Return the strides of a tensor with symbolic sizes that lies row by row, and is no view; ``None`` for others.

    A dimension of size 1 may have any stride.
    """
    shape = tensor._proxy.shape
    if tensor._viewed_as is not None or not any([isinstance(size, NumberProxy) for size in shape]):
        return None
    if not calls.layouts.fake(tensor).is_contiguous() or not all([size > 1 for size in shape]):
        return None
    return tuple(itertools.accumulate(shape[:0:-1], operator.mul, initial=1))[::-1]


def _fix_sizes(tensor: TracedTensor) -> None:
    """Fix the symbolic sizes of a tensor, and of those that it is a view of: strides rest on them."""
    for size in tensor._proxy.shape:
        if isinstance(size, NumberProxy) and not is_unknown(size):
            size.fixed()
    if tensor._viewed_as is not None:
        _fix_sizes(tensor._viewed_as.parent)


def _fix_strides(calls: WriteCalls, tensor: TracedTensor) -> None:
    """Fix the strides of an input with symbolic sizes: those of dimensions of size 1 may be any in what is in order."""
    given = tensor.given
    if given is None or "_input" not in vars(tensor) or 1 not in given.shape:
        return
    if any([isinstance(size, NumberProxy) for size in tensor._input.proxy.shape]):
        calls.ask(tensor, "stride", given.stride(), call=True)


@answers(T.is_contiguous)
def _is_contiguous(calls: WriteCalls, tensor: T, memory_format: torch.memory_format = torch.contiguous_format) -> bool:
    traced = calls.traced(tensor)
    found = calls.layouts.fake(traced).is_contiguous(memory_format=memory_format)
    if traced._viewed_as is not None:
        _fix_sizes(traced)
    if not found and has_unknown_sizes([traced._proxy]):  # it would be, if it turned out to have one element
        raise DataDependentError(_LAYOUT)
    return found


@answers(T.storage_offset)
def _storage_offset(calls: WriteCalls, tensor: T) -> int:
    traced = calls.traced(tensor)
    if not place_is_known(traced):
        raise DataDependentError(VALUE)
    return int(calls.layouts.offset(traced))


@answers_each(T.is_conj, torch.is_conj, T.is_neg, torch.is_neg)
def _told_by_fake(function: Any, calls: WriteCalls, tensor: T) -> Any:
    return function(calls.layouts.fake(calls.traced(tensor)))


@answers(T.resolve_conj, torch.resolve_conj, T.resolve_neg, torch.resolve_neg)
def _resolve(calls: WriteCalls, tensor: T) -> Any:
    example = calls.layouts.fake(calls.traced(tensor))
    return calls(torch.clone, (tensor,), {}) if example.is_conj() or example.is_neg() else tensor


@answers(T.is_inference, torch.is_inference)
def _is_inference(calls: WriteCalls, tensor: T) -> bool:
    return calls.traced(tensor)._memory.inference


@answers_each(T.is_shared, T.is_pinned, T._is_view)
def _said_outside(method: Any, calls: WriteCalls, tensor: T, device: object = None) -> Any:
    """PyTorch says it of an external tensor."""
    traced, name = calls.traced(tensor), method.__name__
    if traced.source is None:
        raise AcquisitionError(f"{name}() of a tensor that the program computes is not known inside of it")
    return calls.ask(traced, name, getattr(traced.given, name)(), call=True)


@answers(getter("output_nr"))
def _output_nr(calls: WriteCalls, tensor: T) -> int:
    traced = calls.traced(tensor)
    if traced.given is None:
        raise AcquisitionError("output_nr belongs to the history of a tensor, which a program has as a whole")
    return calls.ask(traced, "output_nr", traced.given.output_nr)  # type: ignore[no-any-return]


@answers(torch.broadcast_tensors)
def _broadcast_tensors(calls: WriteCalls, *tensors: Any) -> Any:
    """Each itself or, of another shape, a view of it: the call, which nothing reads, tells of what shape.

    Where only the run tells whether shapes are the same, views are made whose sizes it checks.
    """
    values = calls.values(tensors)
    shapes = _shapes(calls, torch.broadcast_tensors, values, {})
    if has_unknown_sizes(values):
        shapes = [_common_shape([tuple(value.shape) for value in values])] * len(values)
    return tuple([
        tensor if surely_equal(shape, tuple(value.shape)) else calls(T.expand, (tensor, shape), {})
        for tensor, value, shape in zip(tensors, values, shapes, strict=True)
    ])  # fmt: skip


def _common_shape(shapes: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the shape that shapes broadcast to, if sizes that only the run tells are that of the first or 1."""
    common: list[Any] = [1] * max(map(len, shapes))
    for shape in shapes:
        for place, size in enumerate(shape, len(common) - len(shape)):
            is_open = is_unknown(size)
            if not is_open and size == 1:
                continue
            if not is_unknown(common[place]) and common[place] == 1 or is_unknown(common[place]) and not is_open:
                common[place] = size
    return tuple(common)


def _shapes(calls: WriteCalls, function: Any, values: Any, kwargs: Any) -> list[tuple[Any, ...]]:
    """Return the shape of what each of several tensors becomes."""
    return [tuple(p.shape) for p in calls.on_values(function, values, kwargs)]


@answers(torch.meshgrid)
def _meshgrid(calls: WriteCalls, *tensors: Any, indexing: object = None) -> Any:
    """Each as a view of its own: along one dimension, the same along all others."""
    given = tuple(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], T) else tensors
    shapes = _shapes(calls, torch.meshgrid, calls.values(given), {"indexing": indexing or "ij"})
    places = list(range(len(given)))
    if indexing == "xy":
        places[:2] = places[1::-1]
    return tuple([_along(calls, *each) for each in zip(given, places, shapes, strict=True)])


def _along(calls: WriteCalls, tensor: object, place: int, shape: tuple[Any, ...]) -> Any:
    line = tuple([length if d == place else 1 for d, length in enumerate(shape)])
    return calls(T.expand, (calls(T.view, (tensor, line), {}), shape), {})


@answers(torch.einsum)
def _einsum(calls: WriteCalls, equation: object, *operands: Any) -> Any:
    if isinstance(equation, str) and len(operands) == 1 and isinstance(operands[0], T):
        view = rearranged(operands[0], calls.value(operands[0]).shape, equation, calls)
        if view is not None:
            return view
    with torch._C.DisableTorchFunctionSubclass():
        return calls.record(torch.einsum, (equation, *operands), {})


@answers(T.resize_)
def _resize(calls: WriteCalls, tensor: T, *size: Any, memory_format: Any = torch.contiguous_format) -> Any:
    return resize(calls, tensor, size[0] if len(size) == 1 and not isinstance(size[0], int) else size, memory_format)


@answers(T.resize_as_, torch.resize_as_)
def _resize_as(calls: WriteCalls, tensor: T, the_template: T, memory_format: Any = None) -> Any:
    return resize(calls, tensor, calls.value(the_template).shape, memory_format or torch.contiguous_format)


@answers_each(T.t_, T.transpose_, T.squeeze_, T.unsqueeze_, T.swapaxes_, T.swapdims_)
def _reshaped_in_place(method: Any, calls: WriteCalls, tensor: T, *args: Any, **kwargs: Any) -> Any:
    """The target becomes the view of it that the method without the underscore makes."""
    with torch._C.DisableTorchFunctionSubclass():
        view = getattr(T, method.__name__.removesuffix("_"))
        return calls.metadata_write(method, view, calls.traced(tensor), args, kwargs)


def resize(calls: WriteCalls, tensor: T, size: Any, memory_format: torch.memory_format) -> Any:
    """Do what ``resize_`` does to a contiguous tensor that keeps its number of elements: it views the same memory."""
    traced = calls.traced(tensor)
    before = calls.value(traced)
    if before.requires_grad and not (torch.is_inference_mode_enabled() or traced._memory.inference):
        raise RuntimeError("cannot resize variables that require grad")
    if tuple(size) == tuple(before.shape):
        return tensor
    same_memory = math.prod(size) == before.numel and memory_format is torch.contiguous_format
    if not same_memory or not calls.layouts.fake(traced).is_contiguous():
        raise AcquisitionError(
            "resize_ changes how much memory a tensor has, or which part of it; make a new tensor of the size wanted"
        )
    with torch._C.DisableTorchFunctionSubclass():
        return calls.metadata_write(T.resize_, T.view, traced, (tuple(size),), {})


@answers_each(T.share_memory_, T.pin_memory)
def _refused(method: Any, calls: WriteCalls, *args: Any, **kwargs: Any) -> Any:
    raise AcquisitionError(f"{method.__name__}() inside of a compiled program is not supported")


@answers_each(T.apply_, T.map_, T.map2_)
def _one_by_one(method: Any, calls: WriteCalls, *args: Any, **kwargs: Any) -> Any:
    raise AcquisitionError(
        f"{method.__name__}() calls Python for one element after the other, whose values are known only when the "
        "program runs; use operations on the whole tensor (torch.where, arithmetic)"
    )
