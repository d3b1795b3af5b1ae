"""Random programs, on inputs in any layout, give what PyTorch gives call by call."""

import pytest
from random_programs import case, check

from thunder_executors_llvm import executor

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")


@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_what_pytorch_gives(seed):
    taken = [check(case(1000 * seed + number)) for number in range(5)]
    assert len(taken) == 5
