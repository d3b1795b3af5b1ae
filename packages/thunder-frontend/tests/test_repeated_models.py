"""Stacks of equal blocks that their users change one by one. ``tools/soundness_sweep.py`` tries many more."""

import pytest
from repeated_models import agrees_with_eager


@pytest.mark.parametrize("seed", range(12))
def test_whatever_makes_blocks_differ_counts(seed):
    agrees_with_eager(seed)
