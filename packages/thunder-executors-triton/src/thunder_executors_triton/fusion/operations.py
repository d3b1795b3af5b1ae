"""What the operations of loop nests are in Triton: one row each. What has no row is left to others."""

from __future__ import annotations

from collections.abc import Callable

from thunder_ir import DType, dtypes

Text = Callable[..., str]

TYPES = {
    dtypes.bool8: "tl.int1", dtypes.uint8: "tl.uint8", dtypes.int8: "tl.int8", dtypes.int16: "tl.int16",
    dtypes.int32: "tl.int32", dtypes.int64: "tl.int64", dtypes.float16: "tl.float16", dtypes.bfloat16: "tl.bfloat16",
    dtypes.float32: "tl.float32", dtypes.float64: "tl.float64",
}  # fmt: skip

ANY: dict[str, Text] = {
    "eq": "({} == {})".format, "ne": "({} != {})".format, "lt": "({} < {})".format, "le": "({} <= {})".format,
    "gt": "({} > {})".format, "ge": "({} >= {})".format, "where": "tl.where({}, {}, {})".format,
}  # fmt: skip

NUMBERS: dict[str, Text] = {
    "add": "({} + {})".format, "sub": "({} - {})".format, "mul": "({} * {})".format, "neg": "(-{})".format,
    "abs": "tl.abs({})".format,
    "maximum": "tl.maximum({}, {}, propagate_nan=tl.PropagateNan.ALL)".format,
    "minimum": "tl.minimum({}, {}, propagate_nan=tl.PropagateNan.ALL)".format,
    "sign": "tl.where({0} > 0, 1, tl.where({0} < 0, -1, 0)).to({0}.dtype)".format,
}  # fmt: skip

FLOATS: dict[str, Text] = {
    "ceil": "tl.ceil({})".format, "cos": "tl.cos({})".format, "div": "quotient({}, {})".format,
    "erf": "tl.erf({})".format, "exp": "tl.exp({})".format, "exp2": "tl.exp2({})".format,
    "floor": "tl.floor({})".format, "isfinite": '(tl.abs({}) < float("inf"))'.format,
    "isinf": '(tl.abs({}) == float("inf"))'.format, "isnan": "({0} != {0})".format, "log": "tl.log({})".format,
    "log2": "tl.log2({})".format, "reciprocal": "quotient(1.0, {})".format, "rsqrt": "quotient(1.0, root({}))".format,
    "sigmoid": "quotient(1.0, 1.0 + tl.exp(-{}))".format, "sin": "tl.sin({})".format, "sqrt": "root({})".format,
    "tanh": "tangent({})".format,
}  # fmt: skip

INTEGERS: dict[str, Text] = {
    "bitwise_and": "({} & {})".format, "bitwise_or": "({} | {})".format, "bitwise_xor": "({} ^ {})".format,
}  # fmt: skip

BOOLS: dict[str, Text] = {**INTEGERS, "bitwise_not": "({} == 0)".format}

INDICES: dict[str, Text] = {"floor_divide": "({} // {})".format, "remainder": "({} % {})".format}
"""Of integers that are not negative, by constants above zero: parts of an index."""

REDUCTIONS = {
    "sum": "tl.sum({}, axis=1, keep_dims=True)",
    "max": "greatest({})",
    "min": "-greatest(-{})",
    "argmax": "first_greatest({})",
    "argmin": "first_greatest(-{})",
}
"""Over the elements of each point; those beyond the last hold what changes nothing."""

COMBINED = {
    "sum": "{} + {}",
    "max": "tl.maximum({}, {}, propagate_nan=tl.PropagateNan.ALL)",
    "min": "tl.minimum({}, {}, propagate_nan=tl.PropagateNan.ALL)",
}
"""Of what was found before and the next elements."""

NEUTRAL = {
    "sum": "0",
    "max": '-float("inf")',
    "min": 'float("inf")',
    "argmax": '-float("inf")',
    "argmin": 'float("inf")',
}


def row(operation: str, dtype: DType) -> Text | None:
    """Return what writes an operation on operands whose last one is of ``dtype``; ``None`` where nothing does."""
    if dtype.is_bool:
        return BOOLS.get(operation) or ANY.get(operation)
    if dtype.is_floating:
        found = FLOATS.get(operation) if dtype in (dtypes.float32, dtypes.float64) else None
        return found or NUMBERS.get(operation) or ANY.get(operation)
    return INTEGERS.get(operation) or NUMBERS.get(operation) or ANY.get(operation)
