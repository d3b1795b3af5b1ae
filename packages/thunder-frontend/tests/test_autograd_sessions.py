"""What users do with results of programs in autograd. ``tools/soundness_sweep.py`` tries many more."""

import pytest
from autograd_sessions import agrees_with_eager


@pytest.mark.parametrize("seed", range(12))
def test_results_are_differentiated_as_eagers(seed):
    agrees_with_eager(seed)
