"""Arrays for samples: values that do not repeat, of the dtypes and shapes that break things."""

from __future__ import annotations

from typing import Any

import numpy as np

SHAPES: tuple[tuple[int, ...], ...] = ((4, 5), (0,), (), (1, 3, 1))
FLOATS = ("float32", "float64")
INTEGERS = ("uint8", "int32", "int64")


def values(dtype: str, shape: tuple[int, ...] = (4, 5), low: float = -2.0, high: float = 3.0, seed: int = 0) -> Any:
    """Return an array of values between ``low`` and ``high``.

    Args:
        dtype: NumPy's name of it; integers lie at least two apart from each other only where the range allows.
        shape: of the array.
        low, high: bounds; unsigned integers start at 0.
        seed: another one gives other values.
    """
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.startswith("complex"):
        parts = random.uniform(low, high, (2, *shape))
        return np.asarray(parts[0] + 1j * parts[1]).astype(dtype)
    if dtype.startswith(("int", "uint")):
        first = max(0, int(low * 10)) if dtype.startswith("uint") else int(low * 10)
        return random.integers(first, int(high * 10) + 1, shape).astype(dtype)
    return np.asarray(random.uniform(low, high, shape)).astype(dtype)


def distinct(dtype: str, shape: tuple[int, ...] = (4, 5), seed: int = 0) -> Any:
    """Return an array in which no value comes twice."""
    count = int(np.prod(shape))
    order = np.random.default_rng(seed).permutation(count) - (0 if dtype.startswith("uint") else count // 2)
    return order.reshape(shape).astype(dtype)
