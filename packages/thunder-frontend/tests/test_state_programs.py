"""Random programs that leave state behind. ``tools/soundness_sweep.py --only state`` tries many more."""

import contextlib

import pytest
from programs import Refused
from state_programs import agrees_with_eager

from thunder_ir import ThunderError


@pytest.mark.parametrize("seed", range(40))
def test_programs_leave_behind_what_eager_leaves(seed):
    with contextlib.suppress(ThunderError, Refused):
        agrees_with_eager(seed)
