"""Indexing as ``a[...]`` does it, basic and advanced, and the functions that read and write at such indices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import thunder_prims as prims
from thunder_ir import DimensionError, DTypeError, IntegerProxy, NumberProxy, ShapeError, TensorProxy, dtypes
from thunder_lang.creation import full, tensor
from thunder_lang.dims import as_tensor, canonical_dim, need_tensor
from thunder_lang.gathering import source_like
from thunder_lang.language import core
from thunder_lang.operands import broadcast_shapes, broadcast_to, convert
from thunder_lang.promotion import kind_of

__all__ = ["getitem", "index_put", "setitem", "take"]


@dataclass(slots=True)
class _Selection:
    """What a key selects: a slice per dimension, which of them are dropped, where dimensions and indices come in.

    Args:
        starts, stops, steps: per dimension of the tensor.
        dropped: dimensions indexed by an integer.
        taken: dimensions indexed by an integer tensor without dimensions, which drops them too.
        layout: the dimensions of the slice in order, ``None`` where a new one of length 1 comes in.
        indices: for places in ``layout``, the tensors of indices.
    """

    starts: list[Any] = field(default_factory=list)
    stops: list[Any] = field(default_factory=list)
    steps: list[Any] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    taken: dict[int, TensorProxy] = field(default_factory=dict)
    layout: list[int | None] = field(default_factory=list)
    indices: dict[int, TensorProxy] = field(default_factory=dict)

    def slice(self, start: Any, stop: Any, step: Any) -> int:
        """Take a slice of the next dimension; return which that is."""
        self.starts.append(start)
        self.stops.append(stop)
        self.steps.append(step)
        return len(self.starts) - 1

    def slices(self, a: TensorProxy) -> bool:
        """Whether less than all of ``a`` is selected by the slices."""
        whole = all([stop is n or stop == n for stop, n in zip(self.stops, a.shape, strict=True)])
        return not whole or any([s != 0 for s in self.starts]) or any([s != 1 for s in self.steps])


@core.method("getitem")
def getitem(a: TensorProxy, key: Any) -> TensorProxy:
    """Return ``a[key]``.

    Args:
        a: any dtype.
        key: an integer, a slice, ``None``, an ellipsis, a boolean, a list of integers or booleans, a tensor of
            integers; or a tuple of such.

    Raises:
        IndexError: an index is out of bounds, or there are more than dimensions, or a key is of another type.
        ShapeError: a key is a tensor of booleans: the result's shape would depend on values.
        ValueError: the step of a slice is not positive.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_lang import core
        >>> print(trace_of(lambda x: x[1, ..., ::2], Tensor((4, 5, 6)), language=core))
        def program(x: "float32[4, 5, 6]"):
            t0 = prims.slice(x, (1, 0, 0), (2, 5, 6), (1, 1, 2))  # float32[1, 5, 3]
            t1 = prims.squeeze(t0, (0,))  # float32[5, 3]
            return t1

    Source:
        ``torch.Tensor.__getitem__``.
    """
    a = need_tensor("getitem", a)
    selection = _parse(a, key)
    a = _region(a, selection)[-1]
    if not selection.indices:
        return a
    indices = _prepared(a, selection.indices)
    if len(selection.indices) == 1:
        ((place, index),) = [(i, index) for i, index in enumerate(indices) if index is not None]
        return as_tensor(prims.take(a, index, place))
    return as_tensor(prims.index(a, indices))


def _region(a: TensorProxy, selection: _Selection) -> list[TensorProxy]:
    """What a key selects before its indices: the slice, then step by step without dimensions that tensors drop.

    The last one is without dimensions that integers drop, and with new ones.
    """
    if selection.slices(a):
        a = prims.slice(a, tuple(selection.starts), tuple(selection.stops), tuple(selection.steps))
    steps = [a]
    for dim in sorted(selection.taken, reverse=True):
        a = prims.take(a, _wrapped(selection.taken[dim], a.shape[dim], a), dim)
        steps.append(a)
    dropped = tuple([d - sum([t < d for t in selection.taken]) for d in selection.dropped])
    if dropped:
        a = prims.squeeze(a, dropped)
    if None in selection.layout:
        lengths = iter(a.shape)
        shape = tuple([1 if entry is None else next(lengths) for entry in selection.layout])
        kept = tuple([place for place, entry in enumerate(selection.layout) if entry is not None])
        a = prims.broadcast_in_dim(a, shape, kept)
    return [*steps, a]


def _parse(a: TensorProxy, key: Any) -> _Selection:
    keys = list(key) if isinstance(key, tuple) or _is_legacy_tuple(key) else [key]
    keys = [_as_key(k) for k in keys]
    used = sum([_consumed(k) for k in keys])
    if used > a.ndim:
        raise DimensionError(f"too many indices for {a.type_string}: {used} for {a.ndim} dimensions")
    if not any([k is ... for k in keys]):
        keys.append(...)
    selection = _Selection()
    missing = a.ndim - used
    for k in keys:
        if k is ...:
            for _ in range(missing):
                selection.layout.append(selection.slice(0, a.shape[len(selection.starts)], 1))
            missing = 0
        else:
            _add(a, selection, k)
    return selection


def _is_legacy_tuple(key: Any) -> bool:
    """Whether a list counts as a tuple: PyTorch takes one so that holds more than numbers."""
    return isinstance(key, list) and any([not isinstance(k, (int, IntegerProxy)) for k in key])


def _as_key(key: Any) -> Any:
    """Bring one item of a key to one of the kinds that :func:`_add` knows."""
    if key is None or key is ... or isinstance(key, (bool, slice, int, IntegerProxy)):
        return key
    if isinstance(key, TensorProxy):
        return _checked_index(key)
    if isinstance(key, (list, tuple)):
        return _of_sequence(key)
    if isinstance(key, str):
        raise TypeError("a tensor cannot be indexed by a string")
    if hasattr(key, "__index__") and not isinstance(key, NumberProxy):
        return operator.index(key)
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and tensors of int64, int32 or bool8 are valid indices "
        f"(got {type(key).__name__})"
    )


def _checked_index(index: TensorProxy) -> TensorProxy:
    if index.dtype.is_bool:
        raise ShapeError(
            f"indexing with {index.type_string} gives a shape that depends on its values, which are not known while "
            "a program is recorded; use where or masked_fill"
        )
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise DimensionError(f"tensors used as indices must be of int64, int32 or bool8, got {index.type_string}")
    return index


class _Indices(list[Any]):
    """Several tensors of indices that one item of a key stands for."""


def _of_sequence(key: Sequence[Any]) -> Any:
    """A list of integers as a tensor; of booleans, as the places of those that hold."""
    if any([isinstance(item, TensorProxy) for item in key]):
        raise DimensionError("a list of tensors is no index; stack them, or index with a tuple of them")
    shape = _shape_of(key)
    leaves = _leaves(key)
    if leaves and all([isinstance(leaf, bool) for leaf in leaves]):
        return _Indices([shape, *_places(leaves, shape)])
    if not all([isinstance(leaf, int) or hasattr(leaf, "__index__") for leaf in leaves]):
        raise DimensionError("a list used as an index must hold integers or booleans")
    return [key]


def _shape_of(key: Any) -> tuple[int, ...]:
    if not isinstance(key, (list, tuple)):
        return ()
    return (len(key), *(_shape_of(key[0]) if key else ()))


def _leaves(key: Any) -> list[Any]:
    if isinstance(key, (list, tuple)):
        return [leaf for item in key for leaf in _leaves(item)]
    return [key]


def _places(leaves: list[bool], shape: tuple[int, ...]) -> list[list[int]]:
    """Per dimension, where in a tensor of ``shape`` those of the leaves are that hold."""
    held = [i for i, leaf in enumerate(leaves) if leaf]
    places: list[list[int]] = []
    for length in reversed(shape):
        places.insert(0, [i % length for i in held])
        held = [i // length for i in held]
    return places


def _consumed(key: Any) -> int:
    """How many dimensions an item of a key is about."""
    if key is None or key is ... or isinstance(key, bool):
        return 0
    return len(key) - 1 if isinstance(key, _Indices) else 1


def _add(a: TensorProxy, selection: _Selection, key: Any) -> None:
    """Add one item of a key, which is about the next dimension."""
    layout = selection.layout
    if key is None:
        layout.append(None)
        return
    if isinstance(key, bool):
        layout.append(None)
        selection.indices[len(layout) - 1] = tensor([0] if key else [], dtypes.int64, a.device)
        return
    dim = len(selection.starts)
    length = a.shape[dim]
    if isinstance(key, (int, IntegerProxy)):
        if not -length <= key < length:
            raise DimensionError(f"index {key} is out of bounds for dimension {dim} with size {length}")
        start = key + length if key < 0 else key
        selection.dropped.append(selection.slice(start, start + 1, 1))
    elif isinstance(key, slice):
        layout.append(selection.slice(*_bounds(key, length)))
    elif isinstance(key, TensorProxy) and not key.shape:
        selection.taken[selection.slice(0, length, 1)] = key
    else:
        _add_indices(a, selection, key)


def _add_indices(a: TensorProxy, selection: _Selection, key: Any) -> None:
    if isinstance(key, TensorProxy):
        tensors = [key]
    elif isinstance(key, _Indices):
        at = len(selection.starts)
        if tuple(a.shape[at : at + len(key[0])]) != key[0]:
            raise DimensionError(f"the shape of the mask {key[0]} at index {at} does not match {a.type_string}")
        tensors = [tensor(places, dtypes.int64, a.device) for places in key[1:]]
    else:
        tensors = [tensor(key[0], dtypes.int64, a.device)]
    for index in tensors:
        dim = len(selection.starts)
        selection.layout.append(selection.slice(0, a.shape[dim], 1))
        selection.indices[len(selection.layout) - 1] = index


def _bounds(key: slice, length: Any) -> tuple[Any, Any, Any]:
    """Start, stop and step of a slice, within the dimension."""
    start, stop, step = (_number(n) for n in (key.start, key.stop, key.step))
    step = 1 if step is None else step
    if step <= 0:
        raise ValueError("step must be greater than zero")
    start = 0 if start is None else _clamped(start, length)
    stop = length if stop is None else _clamped(stop, length)
    return start, (stop if start <= stop else start), step


def _number(value: Any) -> Any:
    if isinstance(value, TensorProxy):
        return prims.item(value)
    if value is None or isinstance(value, (int, IntegerProxy)):
        return value
    return operator.index(value)


def _clamped(place: Any, length: Any) -> Any:
    if place < 0:
        place = place + length
        return 0 if place < 0 else place
    return length if place > length else place


def _wrapped(index: TensorProxy, length: Any, a: TensorProxy) -> TensorProxy:
    """Indices as ``int64`` on the device of ``a``, counted from its start; those of no place stay what they are."""
    index = convert(as_tensor(prims.device_put(index, a.device)), dtypes.int64)
    from_end = prims.bitwise_and(prims.lt(index, 0), prims.ge(index, -length))
    return as_tensor(prims.where(from_end, prims.add(index, length), index))


def _prepared(a: TensorProxy, indices: dict[int, TensorProxy]) -> tuple[TensorProxy | None, ...]:
    """The indices per dimension of ``a``, wrapped and of one shape."""
    try:
        common = broadcast_shapes(*[index.shape for index in indices.values()])
    except ShapeError as error:
        raise DimensionError(f"shape mismatch: indexing tensors could not be broadcast together: {error}") from None
    ready = {place: broadcast_to(_wrapped(i, a.shape[place], a), common) for place, i in indices.items()}
    return tuple([ready.get(place) for place in range(max(ready) + 1)])


@core.method("setitem")
def setitem(a: TensorProxy, key: Any, value: Any) -> TensorProxy:
    """Return ``a`` with ``a[key]`` replaced; ``a`` itself does not change.

    Args:
        a: any dtype.
        key: as for :func:`getitem`; or a tensor of booleans, of the leading dimensions of ``a``.
        value: a number, or a tensor that broadcasts to ``a[key]``; it is converted to the dtype of ``a``.

    Raises:
        IndexError: as for :func:`getitem`.
        ShapeError: the value does not broadcast to what is replaced.
    """
    a = need_tensor("setitem", a)
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if isinstance(mask, TensorProxy) and mask.dtype.is_bool:
        return _set_where(a, mask, value)
    selection = _parse(a, key)
    *steps, region = _region(a, selection)
    value = _value(a, value)
    if selection.indices:
        indices = _prepared(region, selection.indices)
        wanted = _fitted(value, _shape_at(region, indices))
        changed = prims.index_put(region, indices, wanted, False)
    else:
        changed = _fitted(value, region.shape)
    changed = _put_back(changed, steps, selection)
    if not selection.slices(a):
        return changed
    bounds = [tuple(x) for x in (selection.starts, selection.stops, selection.steps)]
    return as_tensor(prims.slice_scatter(a, changed, *bounds))


def _put_back(changed: TensorProxy, steps: list[TensorProxy], selection: _Selection) -> TensorProxy:
    """The slice with what was selected of it changed: :func:`_region` backwards."""
    if changed.shape != steps[-1].shape:
        changed = prims.reshape(changed, steps[-1].shape)
    for dim, before in zip(sorted(selection.taken), reversed(steps[:-1]), strict=True):
        index = prims.reshape(_wrapped(selection.taken[dim], before.shape[dim], before), (1,))
        lifted = prims.reshape(changed, (*before.shape[:dim], 1, *before.shape[dim + 1 :]))
        changed = prims.index_copy(before, index, lifted, dim)
    return changed


def _value(a: TensorProxy, value: Any) -> TensorProxy:
    """The value as a tensor of the dtype and on the device of ``a``."""
    if isinstance(value, TensorProxy):
        return convert(as_tensor(prims.device_put(value, a.device)), a.dtype)  # type: ignore[no-any-return]
    if kind_of(value) > a.dtype.kind and kind_of(value) is dtypes.Kind.COMPLEX:
        raise DTypeError(f"a complex number cannot be put into {a.type_string} without overflow")
    return full((), value, a.dtype, a.device)


def _fitted(value: TensorProxy, shape: Any) -> TensorProxy:
    """The value broadcast; dimensions of length 1 in front of those wanted are dropped, as PyTorch does."""
    surplus = value.ndim - len(shape)
    if surplus > 0 and all([n == 1 for n in value.shape[:surplus]]):
        value = as_tensor(prims.squeeze(value, tuple(range(surplus))))
    try:
        return broadcast_to(value, shape)
    except ShapeError as error:
        raise ShapeError(f"setitem: shape mismatch: {error}") from None


def _set_where(a: TensorProxy, mask: TensorProxy, value: Any) -> TensorProxy:
    """Replace where a mask of the leading dimensions holds, by what does not depend on how many places that are."""
    if mask.ndim > a.ndim or tuple(a.shape[: mask.ndim]) != tuple(mask.shape):
        raise DimensionError(f"the shape of the mask {mask.type_string} does not match {a.type_string}")
    value = _value(a, value)
    rest = a.ndim - mask.ndim
    if value.ndim > rest:
        if value.ndim > rest + 1 or value.shape[0] != 1:
            raise ShapeError(
                f"setitem with a mask of {mask.type_string} and a value of {value.type_string} depends on how many "
                "elements the mask selects, which is not known while a program is recorded; use where"
            )
        value = as_tensor(prims.squeeze(value, (0,)))
    wide = as_tensor(prims.broadcast_in_dim(mask, a.shape, tuple(range(mask.ndim)))) if rest else mask
    return as_tensor(prims.where(wide, broadcast_to(value, a.shape), a))


@core.method("take")
def take(a: TensorProxy, indices: TensorProxy, dim: int | None = None) -> TensorProxy:
    """Return the elements at ``indices`` along a dimension, or of all elements in one if none is given.

    Args:
        a: any dtype.
        indices: integers, counted from the end where negative, shape ``(i_0, ..., i_m)``.
        dim: a dimension of ``a``.

    Returns:
        The shape of ``a`` with ``i_0, ..., i_m`` in place of ``dim``; without ``dim``, that of ``indices``.
    """
    a, indices = need_tensor("take", a), need_tensor("take", indices, "the indices")
    if dim is None:
        a, dim = as_tensor(prims.reshape(a, (a.numel,))), 0
    dim = canonical_dim("take", a.ndim, dim)
    return as_tensor(prims.take(a, _wrapped(indices, a.shape[dim], a), dim))


@core.method("index_put")
def index_put(
    a: TensorProxy, indices: Sequence[TensorProxy | None], values: Any, accumulate: bool = False
) -> TensorProxy:
    """Return ``a`` with the elements at tuples of indices replaced, or added to.

    Args:
        a: any dtype.
        indices: per leading dimension, a tensor of integers, or ``None`` for all of it.
        values: what broadcasts to the shape of ``a[indices]``; dtype of ``a``.
        accumulate: add, repeatedly where an index repeats.
    """
    if len(indices) == 1 and indices[0] is not None and indices[0].dtype.is_bool and not accumulate:
        return _set_where(a, indices[0], values)
    given = {place: _checked_index(index) for place, index in enumerate(indices) if index is not None}
    if len(indices) > a.ndim:
        raise DimensionError(f"too many indices for {a.type_string}: {len(indices)}")
    values = source_like("index_put", a, values) if isinstance(values, TensorProxy) else _value(a, values)
    if not given:
        return broadcast_to(values, a.shape)
    ready = _prepared(a, given)
    values = _fitted(values, _shape_at(a, ready))
    return as_tensor(prims.index_put(a, ready, values, accumulate))


def _shape_at(a: TensorProxy, indices: tuple[TensorProxy | None, ...]) -> Any:
    """The shape of ``a`` at ``indices``, in NumPy's order."""
    given = [i for i, index in enumerate(indices) if index is not None]
    common = next(index.shape for index in indices if index is not None)
    rest = [d for i, d in enumerate(a.shape) if i not in given]
    first = given[0] if given == list(range(given[0], given[-1] + 1)) else 0
    return (*rest[:first], *common, *rest[first:])
