"""The results of elementwise kernels, and of joins, lie in memory as eager PyTorch has them."""

import itertools
import random

import pytest
import torch

from thunder_ir import record
from thunder_torch import find_symbol, metadata, proxy_of, torch_language
from thunder_torch.elementwise_layouts import elementwise_strides

KERNELS = {1: torch.neg, 2: torch.add, 3: torch.addcmul}


def _operand(draw, shape):
    """Return a tensor that broadcasts to a shape, its dimensions in some order, perhaps with gaps or repeated."""
    sizes = [1 if draw.random() < 0.2 else size for size in shape][draw.choice([0, 0, min(1, len(shape) - 1)]) :]
    made = torch.empty_permuted(sizes, draw.sample(range(len(sizes)), len(sizes)))
    if draw.random() < 0.2:
        made = torch.empty((*sizes, 2))[..., 0]
    return made[:1].expand(made.shape) if draw.random() < 0.2 else made


@pytest.mark.parametrize("seed", range(20))
def test_results_of_elementwise_kernels_lie_as_pytorch_lays_them(seed):
    draw = random.Random(seed)
    for _ in range(200):
        shape = tuple(draw.choice((1, 2, 3, 4)) for _ in range(draw.randint(1, 5)))
        operands = [_operand(draw, shape) for _ in range(draw.randint(1, 3))]
        result = KERNELS[len(operands)](*operands)
        given = [(tuple(t.shape), t.stride()) for t in operands]
        assert elementwise_strides(tuple(result.shape), given) == result.stride(), given


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), (2, 3, 4, 5), (2, 1, 4, 5), (2, 3, 1, 1)], ids=str)
def test_joins_lie_as_pytorch_lays_them(shape):
    layouts = [torch.ones(shape)[:1].expand(shape), torch.ones((*shape[:-1], 2 * shape[-1]))[..., ::2]]
    layouts += [torch.empty_permuted(shape, order).fill_(1) for order in itertools.permutations(range(len(shape)))]
    symbol = find_symbol(torch.cat)
    for one, other in itertools.product(layouts, layouts):
        a, b = proxy_of(one, "a"), proxy_of(other, "b")
        metadata._MEMO.clear()
        told = record(lambda a, b: symbol([a, b], 1), [a, b], language=torch_language).output
        assert told.strides == torch.cat([one, other], 1).stride(), (one.stride(), other.stride())
