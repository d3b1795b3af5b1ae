"""Metadata of PyTorch's operations by their decompositions, where these say all that PyTorch would.

PyTorch's mode for fake tensors goes through much Python code for each operation, and loads SymPy for the first. Sizes
and dtypes are those of the decomposition; how results lie in memory is told by what kind of operation it is, and by its
traits. Where neither tells, PyTorch is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_ir import OpTags, TensorProxy
from thunder_torch.convert import contiguous_strides
from thunder_torch.elementwise_layouts import elementwise_strides
from thunder_torch.names import schemas_of
from thunder_torch.specs import NUMBERS, TensorSpec, tensors_of
from thunder_torch.traits import Trait, has_trait
from thunder_torch.views import view_argument

Strides = tuple[int, ...]
Layout = Callable[[Strides, list[TensorProxy]], Strides | None]
"""Returns the strides of a result of some shape by the tensors that were given, or ``None`` if they do not tell."""


WARN_WITHOUT_DIM = frozenset({F.softmax, F.log_softmax, F.softmin})
"""Functions of which PyTorch's own warns where no dimension is given as their second argument."""


def told_by(
    decomposed: Callable[..., Any], origin: Callable[..., Any], tags: frozenset[OpTags]
) -> Callable[[tuple[Any, ...], dict[str, Any]], Any] | None:
    """Return what tells the specifications of the results of an operation; ``None`` if PyTorch is always asked.

    Args:
        decomposed: returns the proxies that the decomposition makes of its arguments, and records nothing.
        origin: PyTorch's function.
        tags: traits of the operation that passes rely on.
    """
    layout = layout_of(origin, tags)
    if layout is None or OpTags.RANDOM in tags:
        return None
    constant = OpTags.CONSTANT_FOR_DERIVATIVE in tags or has_trait(origin, Trait.SHAPE_ONLY)
    only_tensors = _only_tensors(origin)
    product, converts = OpTags.MATMUL in tags, view_argument(origin) is not None
    takes_flags = not tags.isdisjoint({OpTags.REDUCTION, OpTags.MATMUL}) or has_trait(origin, Trait.KEEPS_ROWS)

    def told(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tensors, values = tensors_of(args, kwargs), (*args, *kwargs.values())
        if any([i in only_tensors and v.__class__ in NUMBERS for i, v in enumerate(args)]):
            return None  # PyTorch refuses it in the right words
        if origin in WARN_WITHOUT_DIM and (args[1] if len(args) > 1 else kwargs.get("dim")) is None:
            return None
        if kwargs.get("out") is not None:
            return None
        if not _on_one_device(tensors) or any([v.__class__ is torch.memory_format for v in values]):
            return None
        if not takes_flags and any([v is True for v in values]):  # which may be ``inplace``, or ``requires_grad``
            return None
        if product and not all([t.device.type == "cpu" and t.dtype.is_inexact for t in tensors]):
            return None
        try:
            output = decomposed(*args, **kwargs)
        except Exception:  # as PyTorch may know it, and else says it in the right words
            return None
        if converts and output is tensors[0]:
            return _itself(output)
        return _specified(output, tensors, layout, constant)

    return told


def layout_of(origin: Callable[..., Any], tags: frozenset[OpTags]) -> Layout | None:
    """Return how the results of an operation lie in memory; ``None`` if only PyTorch knows."""
    if has_trait(origin, Trait.IN_ROWS):
        return _in_rows
    if has_trait(origin, Trait.JOINS):
        return _in_rows_unless_images
    if has_trait(origin, Trait.KEEPS_ROWS):
        return _in_rows_of_rows
    if has_trait(origin, Trait.KEEPS_ORDER):
        return _in_their_order
    if view_argument(origin) is not None:
        return None
    if OpTags.ELEMENTWISE in tags:
        return _in_their_order
    if OpTags.REDUCTION in tags:
        return _in_rows_of_one
    product = OpTags.MATMUL in tags and not has_trait(origin, Trait.OTHERWISE_ON_META)  # not what permutes one
    return _in_rows_of_rows if product else None


def _only_tensors(origin: Callable[..., Any]) -> frozenset[int]:
    """Return the positions at which PyTorch takes tensors alone; the first one unless a schema says otherwise."""
    found = [[str(a.type) for a in schema.arguments if not a.kwarg_only] for schema in schemas_of(origin)]
    if not found:
        return frozenset({0})
    of_tensors = [types for types in found if "Tensor" in types]
    places = range(min(map(len, of_tensors), default=0))
    return frozenset([i for i in places if all([types[i] == "Tensor" for types in of_tensors])])


def _in_rows(shape: Strides, tensors: list[TensorProxy]) -> Strides | None:
    return contiguous_strides(shape)


def _in_rows_of_rows(shape: Strides, tensors: list[TensorProxy]) -> Strides | None:
    return contiguous_strides(shape) if all(map(_without_gaps, tensors)) else None


def _in_rows_unless_images(shape: Strides, tensors: list[TensorProxy]) -> Strides | None:
    if any([_is_no_image(t) for t in tensors]):
        return contiguous_strides(shape)
    return _in_rows_of_rows(shape, tensors)


def _is_no_image(tensor: TensorProxy) -> bool:
    """Whether elements along the last dimension, and not those of another channel, lie side by side."""
    if tensor.ndim not in (4, 5):
        return tensor.ndim > 1
    return tensor.strides is not None and tensor.strides[-1] == 1 < tensor.strides[1] and 1 not in tensor.shape


def _in_rows_of_one(shape: Strides, tensors: list[TensorProxy]) -> Strides | None:
    """Reductions lie so; where a second tensor is given they may be something else (``torch.max`` of two)."""
    return contiguous_strides(shape) if len(tensors) == 1 else _in_rows_of_rows(shape, tensors)


def _in_their_order(shape: Strides, tensors: list[TensorProxy]) -> Strides | None:
    if all(map(_without_gaps, tensors)):
        return contiguous_strides(shape)
    operands: list[tuple[Any, Any]] = [
        (_sizes(t), contiguous_strides(_sizes(t)) if t.strides is None else tuple(t.strides)) for t in tensors
    ]
    if 0 in shape or any([stride.__class__ is not int for _, strides in operands for stride in strides]):
        return None
    return elementwise_strides(shape, operands)


def _on_one_device(tensors: list[Any]) -> bool:
    if any([t.__class__ is not TensorProxy for t in tensors]):
        return False
    return all([t.device == tensors[0].device and t.device.type != "meta" for t in tensors])


def _without_gaps(tensor: TensorProxy) -> bool:
    shape = _sizes(tensor)
    if tensor.strides is not None and tuple(tensor.strides) != contiguous_strides(shape):
        return False
    return len(shape) < 3 or 1 not in shape[1:]  # else it could be taken for an image with its channels last


def _sizes(tensor: TensorProxy) -> Any:
    return tuple(tensor.shape)


def _itself(given: TensorProxy) -> TensorSpec:
    return TensorSpec(_sizes(given), given.dtype, given.device, given.requires_grad, given.strides, 0, 0)


def _specified(output: Any, given: list[TensorProxy], layout: Layout, constant: bool) -> Any:
    if output.__class__ is not TensorProxy or any([output is t for t in given]):
        return None
    if any([output.device != t.device for t in given]) or not given and output.device.type != "cpu":
        return None
    strides = layout(_sizes(output), given)
    if strides is None:
        return None
    known = all([t.strides is not None for t in given])
    tracked = not constant and torch.is_grad_enabled() and any([t.requires_grad for t in given])
    tracked = tracked and output.dtype.is_inexact
    return TensorSpec(_sizes(output), output.dtype, output.device, tracked, strides if known else None, None, None)
