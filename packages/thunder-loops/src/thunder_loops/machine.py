"""The reference machine: executes the printed text of loop programs with NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from thunder_ir import DType
from thunder_loops.nest import LoopProgram, Size
from thunder_loops.operations import NUMPY, OPERATIONS, REDUCTIONS, SCANS, Array, Reduction, converted


def sizes_of(program: LoopProgram, *arrays: Any) -> dict[str, int]:
    """Return the open sizes of a program, as its inputs tell them.

    Args:
        program: what is to run.
        arrays: for each input, something with a ``shape``, or a number.
    """
    found: dict[str, int] = {}
    for buffer, array in zip(program.inputs, arrays, strict=True):
        if not buffer.is_number:
            found.update({n: s for n, s in zip(buffer.shape, array.shape, strict=True) if isinstance(n, str)})
    return found


def run(program: LoopProgram, *arrays: Any, sizes: dict[str, int] | None = None) -> tuple[Any, ...]:
    """Execute a program on NumPy arrays, and return its outputs.

    Args:
        program: what is executed: the text that it prints as.
        arrays: one per input. Elements of ``bfloat16`` come and go as ``float32``.
        sizes: the open sizes that no input tells.

    Example:
        >>> import numpy as np
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_loops import lower, run
        >>> program = lower(trace_of(lambda a: prims.mul(a, 3), Tensor((2,))))
        >>> run(program, np.array([1, 2], np.float32))[0].tolist()
        [3.0, 6.0]
    """
    known = sizes_of(program, *arrays) | (sizes or {})
    outputs = [np.zeros(_known(b.shape, known), NUMPY[b.dtype]) for b in program.outputs]
    names: dict[str, Any] = {**_MACHINE, **known}
    names["temporary"] = lambda dtype, shape: np.zeros(_known(shape, known), NUMPY[dtype])
    given = [np.asarray(a, NUMPY[b.dtype]) for a, b in zip(arrays, program.inputs, strict=True)]
    exec(compile(str(program), program.name, "exec"), names)  # the text is the program; there is no second truth
    with np.errstate(all="ignore"):
        names[program.name](*given, *outputs)
    return tuple(outputs)


def _known(shape: Sequence[Size], sizes: dict[str, int]) -> list[int]:
    return [sizes[n] if isinstance(n, str) else n for n in shape]


def _space(**sizes: int) -> Iterator[tuple[Array, ...]]:
    """Yield, once, the variables of all loops, each as an array along a dimension of its own."""
    count = len(sizes)
    variables = [
        np.arange(n).reshape([-1 if d == i else 1 for d in range(count)]) for i, n in enumerate(sizes.values())
    ]
    yield tuple(variables) or (np.int64(0),)


def _load(buffer: Array, index: tuple[Array, ...], when: Array | None = None) -> Array:
    if 0 in buffer.shape:  # then nobody reads the value
        return np.zeros(
            np.broadcast_shapes(() if when is None else when.shape, *[np.shape(i) for i in index]), buffer.dtype
        )
    if when is None:
        return buffer[index]
    inside = tuple([np.where(when, i, 0) for i in index])
    return np.where(when, buffer[inside], buffer.dtype.type(0))


def _store(buffer: Array, index: tuple[Array, ...], value: Array) -> None:
    if not index:
        buffer[()] = np.reshape(value, ())
        return
    buffer[index] = np.broadcast_to(value, np.broadcast_shapes(np.shape(value), *[np.shape(i) for i in index]))


def _add_to(
    buffer: Array, index: tuple[Array, ...], value: Array, dtype: DType, *over: Array, when: Array | None = None
) -> None:
    """Add one element after the other, each sum rounded; those at one place come in row-major order of the axes."""
    given = np.True_ if when is None else when
    *places, values, wanted = [a.ravel() for a in np.broadcast_arrays(*index, value, given, *over)][: len(index) + 2]
    for n in np.flatnonzero(wanted):
        place = tuple([int(p[n]) for p in places])
        buffer[place] = converted(buffer[place] + values[n], dtype)


def _dims(axes: tuple[Array, ...]) -> tuple[int, ...]:
    """Return the dimensions of loop variables; those of one iteration need none, as nothing is reduced there."""
    return tuple([d for a in axes for d, size in enumerate(a.shape) if size != 1])


def _reduce(reduction: Reduction) -> Callable[..., Array]:
    def apply(value: Array, *axes: Array) -> Array:
        shape = np.broadcast_shapes(np.shape(value), *[a.shape for a in axes])
        return reduction.meaning(np.broadcast_to(value, shape), _dims(axes))

    return apply


def _scan(scan: Callable[..., Array]) -> Callable[..., Array]:
    def apply(value: Array, axis: Array, reverse: bool = False) -> Array:
        dims = _dims((axis,))
        if not dims:
            return value
        full = np.broadcast_to(value, np.broadcast_shapes(np.shape(value), axis.shape))
        turned = np.flip(full, dims) if reverse else full
        made = scan(turned, axis=dims[0], dtype=full.dtype)
        return np.flip(made, dims) if reverse else made

    return apply


def _constant(value: Any, dtype: DType) -> Array:
    return np.asarray(value).astype(NUMPY[dtype])


def _within(wrong: Array) -> None:
    if wrong.any():
        raise IndexError("an index leads out of its tensor")


_MACHINE: dict[str, Any] = {
    **{name: operation.meaning for name, operation in OPERATIONS.items()},
    **{dtype.name: dtype for dtype in NUMPY},
    "add_to": _add_to,
    "constant": _constant,
    "load": _load,
    "position": lambda index, dtype: np.asarray(index, NUMPY[dtype]),
    "space": _space,
    "store": _store,
    "to": converted,
    "within": _within,
    **{f"reduce_{name}": _reduce(reduction) for name, reduction in REDUCTIONS.items()},
    **{f"scan_{name}": _scan(scan) for name, scan in SCANS.items()},
}
