"""Strides of what the program computes in order: with sizes that change, they are numbers that change."""

import pytest
import torch

from thunder_frontend import cache_misses, jit

ASKED = {
    "computed": lambda x: x * (x * 2).stride(0),
    "joined": lambda x: torch.cat([x, x], -1).stride(),
    "of an input": lambda x: x + x.stride(0),
    "frames": lambda x: (x * 2).as_strided((x.shape[0] - 1, 2), ((x * 2).stride(0), 1)),
    "of three dimensions": lambda x: torch.stack([x, x]).stride(0) + x,
}


@pytest.mark.parametrize("name", ASKED)
def test_two_programs_serve_all_sizes(name):
    function = ASKED[name]
    compiled = jit(function)
    for n in range(3, 9):
        x = torch.randn(n, n + 2)
        found, expected = compiled(x), function(x)
        assert found == expected if isinstance(found, tuple) else torch.equal(found, expected)
    assert cache_misses(compiled) == 2


def test_other_layouts_are_told_as_they_are():
    compiled = jit(lambda x: (x + 1).stride())
    for n in range(3, 7):
        for x in (torch.randn(n, n + 1), torch.randn(n + 1, n).t(), torch.randn(n, 2 * n)[:, ::2]):
            assert compiled(x) == (x + 1).stride()
