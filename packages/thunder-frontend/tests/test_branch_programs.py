"""Random programs with branches, and calls that no program can hold.

``tools/soundness_sweep.py --only branches`` tries many more.
"""

import pytest
from branch_programs import agrees_with_eager


@pytest.mark.parametrize("seed", range(12))
def test_programs_do_what_they_do_in_eager(seed):
    agrees_with_eager(seed)
