"""External arrays that the program puts into containers of its own, and gives to code in C, are guarded."""

import numpy as np
import pytest
import torch

from thunder_frontend import cache_misses, jit


class Held:
    array, others = np.ones(3), [np.ones(3)]


@pytest.mark.parametrize("program", [
    lambda x: x + torch.from_numpy(np.concatenate([Held.array, Held.array]))[:3],
    lambda x: x + torch.from_numpy(np.stack((Held.array, Held.array)))[0],
    lambda x: x + torch.from_numpy(np.array([[Held.array], [Held.array]]))[0, 0],
    lambda x: x + torch.from_numpy(np.array([Held.others[0] for _ in range(2)]))[0],
    lambda x: x + torch.from_numpy(sum([Held.array, Held.array])),
    lambda x: x + torch.tensor([Held.array, Held.array])[0],
    lambda x: x + torch.from_numpy(np.array(list({"a": Held.array}.values())))[0],
])  # fmt: skip
@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
def test_a_change_of_their_values_is_seen(program):
    Held.array[:], Held.others[0][:] = 1, 1
    compiled = jit(program)
    x = torch.zeros(3, dtype=torch.float64)
    for value in (1, 2, 1):
        Held.array[:], Held.others[0][:] = value, value
        torch.testing.assert_close(compiled(x), program(x), rtol=0, atol=0)
    assert cache_misses(compiled) == 2
