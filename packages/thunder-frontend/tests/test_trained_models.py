"""Models whose users change them between steps of training. ``tools/soundness_sweep.py`` tries many more."""

import pytest
from trained_models import agrees_with_eager

SEEDS = (*range(6), 20, 28, 31)
"""The last three change what requires grad right before a program's second call."""


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_a_user_does_between_steps_counts(seed):
    agrees_with_eager(seed)
