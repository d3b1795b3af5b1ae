"""What a dict finds a tensor by: equal for tensors that are the same for a program, and for no others."""

import itertools

import torch

from thunder_guards._guards.computed import FEW, contents, same_tensor

FEW_ONES = [
    torch.tensor([1, 0]), torch.tensor([0, 1]), torch.tensor([[1, 0]]), torch.tensor([[1], [0]]), torch.tensor(1),
    torch.tensor([1, 0], dtype=torch.int32), torch.tensor([True, False]), torch.tensor([1, 0], dtype=torch.uint8),
    torch.tensor([1, 5, 0])[::2], torch.tensor([]), torch.tensor([], dtype=torch.int64),
    torch.ones(0, 3, dtype=torch.int64), torch.tensor([1.0, 0.0]), torch.tensor([1.0, -0.0]),
    torch.tensor([float("nan"), 0.0]), torch.tensor([1j, 0]), torch.tensor(2**62), torch.tensor(2**62 + 1),
]  # fmt: skip
MANY_ONES = [torch.arange(size).clamp_(low) for size in (FEW, FEW + 1) for low in (0, 1)]


def test_it_is_equal_where_tensors_are_the_same_for_a_program_and_nowhere_else():
    for a, b in itertools.product([*FEW_ONES, *MANY_ONES], repeat=2):
        assert (contents(a) == contents(b)) is same_tensor(a, b), (a, b)
        assert hash(contents(a)) == hash(contents(a.clone()))
