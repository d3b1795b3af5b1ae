"""Random programs that compute with arrays among their arguments do what they do in eager.

``tools/soundness_sweep.py --only arrays`` tries many more.
"""

import pytest
from array_programs import agrees_with_eager

WITHOUT_PROGRAM = (6, 12, 17)
"""Seeds of what eager refuses at once, or no program can hold."""


@pytest.mark.parametrize("seed", [seed for seed in range(40) if seed not in WITHOUT_PROGRAM])
def test_programs_do_what_they_do_in_eager(seed):
    agrees_with_eager(seed)
