"""Random programs with branches, and calls that no program can hold.

``tools/soundness_sweep.py --only branches`` tries many more.
"""

import pytest
import torch
from branch_programs import Watched, agrees_with_eager


@pytest.mark.parametrize("seed", range(12))
def test_programs_do_what_they_do_in_eager(seed):
    agrees_with_eager(seed)


@pytest.mark.parametrize(
    ("program", "writes"),
    [
        (lambda x: [x * x, x.mul_(2)], True),
        (lambda x: [x.tanh(), x.mul_(2)], False),
        (lambda x: [x.exp().mul_(2)], True),
        (lambda x: [x.mul_(2), x * x], False),
    ],
    ids=["argument", "argument that is not saved", "result", "before it is saved"],
)
def test_gradients_may_be_refused_only_where_eager_writes_to_what_it_saved(program, writes):
    watched = Watched(program)
    watched(torch.ones(3, requires_grad=True) * 1)
    assert watched.writes_to_saved == writes
