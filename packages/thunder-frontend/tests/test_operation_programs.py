"""Random programs that call Thunder's own operations. ``tools/soundness_sweep.py --only operations`` tries many more."""

import contextlib

import pytest
from operation_programs import agrees_with_eager

from thunder_guards.errors import HandedOverError


@pytest.mark.parametrize("seed", range(40))
def test_programs_of_own_operations_agree_with_eager(seed):
    with contextlib.suppress(HandedOverError):
        agrees_with_eager(seed)
