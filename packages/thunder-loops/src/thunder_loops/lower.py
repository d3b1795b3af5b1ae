"""From a region of a program to loop nests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from thunder_ir import DType, NumberProxy, Proxy, TensorProxy, Trace, dtypes
from thunder_ir.passes import expand
from thunder_loops import adding, elementwise, gathering, pooling, products, reduction, scanning, shape
from thunder_loops.grouping import Grouping
from thunder_loops.nest import Buffer, LoopProgram
from thunder_loops.rules import CannotLower
from thunder_loops.space import size_of

ACCUMULATE: Mapping[DType, DType] = {
    dtypes.float16: dtypes.float64,
    dtypes.bfloat16: dtypes.float64,
    dtypes.float32: dtypes.float64,
}
"""In which dtype elements are added up, where it is not their own."""

_FAMILIES = adding, elementwise, gathering, pooling, products, reduction, scanning, shape
"""What files its rules on import."""


def lower(
    region: Trace, accumulate: Mapping[DType, DType] = ACCUMULATE, told: Iterable[NumberProxy] = ()
) -> LoopProgram:
    """Return the loop nests that compute what a region computes.

    Args:
        region: inputs, calls of prims and composites, and outputs; tensors and numbers.
        accumulate: the dtype in which elements of a dtype are added up.
        told: sizes that are known beside those of the inputs, where the nests are not to run.

    Raises:
        CannotLower: a call has no loop nest; the message says which, and why.

    Example:
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_loops import lower
        >>> print(lower(trace_of(lambda a, b: prims.add(a, prims.exp(b)), Tensor((2, 3)), Tensor((2, 3)))))
        def program(a0: "float32[2, 3]", a1: "float32[2, 3]", out0: "float32[2, 3]"):
            for (i0, i1,) in space(i0=2, i1=3):
                v0 = load(a0, (i0, i1))  # float32
                v1 = load(a1, (i0, i1))  # float32
                v2 = exp(v1)  # float32
                v3 = add(v0, v2)  # float32
                store(out0, (i0, i1), v3)
    """
    flat = expand(region)
    inputs = {p.name: _buffer(f"a{i}", p) for i, p in enumerate(flat.inputs)}
    outputs = {p.name: _buffer(f"out{i}", p) for i, p in enumerate(flat.outputs)}
    known = {size for b in inputs.values() for size in b.shape} | set(map(size_of, told))
    for size in [size for b in outputs.values() for size in b.shape]:
        if isinstance(size, str) and size not in known:
            raise CannotLower(f"no input tells the size {size.removeprefix('n_')}")
    grouping = Grouping(flat, inputs, outputs, accumulate)
    nests = grouping.nests()
    first, checks = grouping.checks()
    temporaries = grouping.temporaries(nests)
    return LoopProgram(
        flat.name, tuple(inputs.values()), tuple(outputs.values()), temporaries, (*first, *nests), checks
    )


_NUMBERS = {bool: dtypes.bool8, int: dtypes.int64, float: dtypes.float64}


def _buffer(name: str, proxy: Proxy) -> Buffer:
    if isinstance(proxy, TensorProxy):
        if proxy.dtype not in elementwise.NATIVE:
            raise CannotLower(f"elements of {proxy.dtype} have no loop nest")
        return Buffer(name, proxy.dtype, tuple([size_of(d) for d in proxy.shape]))
    if isinstance(proxy, NumberProxy) and proxy.python_type in _NUMBERS:
        return Buffer(name, _NUMBERS[proxy.python_type], (), is_number=True)
    raise CannotLower(f"{proxy.name} is neither a tensor nor a real number")
