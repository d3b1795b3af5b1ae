"""Random programs that compute with arrays among their arguments do what they do in eager.

``tools/soundness_sweep.py --only arrays`` tries many more.
"""

import pytest
from array_programs import agrees_with_eager
from programs import Refused

from thunder_guards.errors import ThunderError


@pytest.mark.parametrize("seed", range(40))
def test_programs_do_what_they_do_in_eager(seed):
    try:
        agrees_with_eager(seed)
    except (Refused, ThunderError):
        return  # eager raises, too, or there is no program
