"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_rules

import thunder_prims as prims

GENERATOR = np.random.default_rng(7)
ANYWHERE = GENERATOR.uniform(-2, 2, (2, 3))
POSITIVE = GENERATOR.uniform(0.2, 3, (2, 3))
INSIDE = GENERATOR.uniform(-0.9, 0.9, (2, 3))
ABOVE_ONE = GENERATOR.uniform(1.2, 3, (2, 3))
COMPLEX = GENERATOR.uniform(-2, 2, (2, 3)) + 1j * GENERATOR.uniform(-2, 2, (2, 3))

REAL_CASES = {
    ANYWHERE.tobytes(): (
        ANYWHERE,
        "abs asinh atan cos cosh exp exp2 expm1 frexp neg sigmoid sign sin sinh tan tanh reciprocal".split(),
    ),
    POSITIVE.tobytes(): (POSITIVE, "log log10 log1p log2 rsqrt sqrt".split()),
    INSIDE.tobytes(): (INSIDE, "acos asin atanh".split()),
    ABOVE_ONE.tobytes(): (ABOVE_ONE, ["acosh"]),
}
SMOOTH = [(name, values) for values, names in REAL_CASES.values() for name in names]
HOLOMORPHIC = (
    "abs acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log10 log1p log2 neg reciprocal rsqrt sigmoid "
    "sign sin sinh sqrt tan tanh"
).split()


@pytest.mark.parametrize(("name", "values"), SMOOTH, ids=[name for name, _ in SMOOTH])
def test_rules_hold_for_reals(name, values):
    check_rules(getattr(prims, name), values, second=name not in ("sign", "frexp"))


@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_rules_hold_for_complex_numbers(name):
    check_rules(getattr(prims, name), COMPLEX)
