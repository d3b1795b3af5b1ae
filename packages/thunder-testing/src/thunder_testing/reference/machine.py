"""The table of what runs each prim with NumPy, and the function that runs a trace by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from thunder_ir import DType, DTypeError, RuleTable, Symbol, Trace, dtypes
from thunder_ir.passes import evaluate, expand

reference: RuleTable[Symbol, Callable[..., Any]] = RuleTable("reference", "@reference")
"""What runs a prim on NumPy arrays, in the dtype that NumPy happens to give."""

_NUMPY_NAMES = {"bool8": "bool", "bfloat16": "float32", "complex32": "complex64"}


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Return NumPy's dtype; where it has none, the next wider one.

    Raises:
        DTypeError: ``dtype`` is an eight-bit float.
    """
    if dtype.is_floating and dtype.bits == 8:
        raise DTypeError(f"NumPy has no {dtype}")
    return np.dtype(_NUMPY_NAMES.get(dtype.name, dtype.name))


def dtype_of(array: Any) -> DType:
    """Return the dtype of an array."""
    return dtypes.dtype(np.asarray(array).dtype.name)


def run_reference(trace: Trace, *args: Any) -> Any:
    """Run a program on NumPy arrays, prim by prim, and check what each returns against its metadata.

    Args:
        trace: the program; composites are expanded.
        args: arrays and numbers for its inputs.

    Returns:
        Its output, with arrays in place of tensors.

    Raises:
        MissingRuleError: there is no reference for a prim.
        AssertionError: a result has another shape than the trace says.

    Example:
        >>> import numpy as np
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> run_reference(trace_of(lambda x: prims.mul(x, x), Tensor((3,))), np.arange(3.0))
        array([0., 1., 4.], dtype=float32)
    """
    whole = expand(trace)
    outputs = iter([bound.output for bound in whole.bound_symbols])

    def choose(symbol: Symbol) -> Callable[..., Any]:
        run, expected = reference[symbol], next(outputs)

        def checked(*values: Any, **kwargs: Any) -> Any:
            with np.errstate(all="ignore"):
                return _as_expected(symbol, run(*values, **kwargs), expected)

        return checked

    return evaluate(whole, args, choose)


def _as_expected(symbol: Symbol, value: Any, expected: Any) -> Any:
    """The value in the dtype of its proxy; an error if it has another shape."""
    if isinstance(expected, (tuple, list)):
        return tuple([_as_expected(symbol, v, e) for v, e in zip(value, expected, strict=True)])
    shape = getattr(expected, "shape", None)
    if shape is None:
        return value
    array = np.asarray(value)
    if array.shape != tuple([getattr(n, "value", n) for n in shape]):
        raise AssertionError(f"{symbol.id} returned shape {array.shape} for {expected.type_string}")
    return array.astype(numpy_dtype(expected.dtype), copy=False)
