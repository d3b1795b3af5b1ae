"""Random programs that read what others replace. ``tools/soundness_sweep.py --only containers`` tries many more."""

import contextlib

import pytest
from container_programs import agrees_with_eager
from programs import Refused

from thunder_ir import ThunderError


@pytest.mark.parametrize("seed", range(40))
def test_programs_read_what_their_users_put_there(seed):
    with contextlib.suppress(ThunderError, Refused):
        agrees_with_eager(seed)
