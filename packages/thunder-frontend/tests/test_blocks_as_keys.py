"""Equal blocks of a model that look themselves up somewhere: each finds what is there of its own."""

import weakref

import pytest
import torch
from torch import nn

from thunder_frontend import jit

LOOKS = {
    "key": (lambda block: block, lambda block, table: table.get(block, 1.0)),
    "key of tuples": (lambda block: (block, 1), lambda block, table: table.get((block, 1), 1.0)),
    "member": (lambda block: block, lambda block, table: 3.0 if block in table else 1.0),
    "member of a set": (lambda block: block, lambda block, table: 3.0 if block in set(table) else 1.0),
    "item": (lambda block: block, lambda block, table: table[block] if block in table else 1.0),
    "item of a copy": (lambda block: block, lambda block, table: {**table, 1: 2}[block] if block in [*table] else 1.0),
    "id": (id, lambda block, table: table.get(id(block), 1.0)),
    "id of a parameter": (lambda block: id(block.up.weight), lambda block, table: table.get(id(block.up.weight), 1.0)),
    "hash of a parameter": (
        lambda block: hash(block.up.weight), lambda block, table: table.get(hash(block.up.weight), 1.0)
    ),
    "hash": (hash, lambda block, table: table.get(hash(block), 1.0)),
    "order of ids": (id, lambda block, table: 3.0 if any([id(block) <= key for key in table]) else 1.0),
}  # fmt: skip


class Block(nn.Module):
    def __init__(self, table, look):
        super().__init__()
        self.up, self.down = nn.Linear(3, 5), nn.Linear(5, 3)
        self.tables, self.look = [table], look

    def forward(self, x):
        return self.down(torch.tanh(self.up(x))) * self.look(self, self.tables[0])


def model_of(name):
    """Return a model of equal blocks, the table that they look into, and what a block's key is."""
    key_of, look = LOOKS[name]
    table = {}
    torch.manual_seed(0)
    model = nn.Sequential(*[Block(table, look) for _ in range(5)])
    table[key_of(model[2])] = 3.0
    return model, table, key_of


@pytest.mark.parametrize("name", LOOKS)
def test_each_block_finds_its_own(name):
    model, table, key_of = model_of(name)
    compiled, x = jit(model), torch.arange(3.0)
    assert torch.equal(compiled(x), model(x))
    table[key_of(model[4])] = 5.0
    assert torch.equal(compiled(x), model(x))
    del table[key_of(model[2])]
    assert torch.equal(compiled(x), model(x))


def test_keys_that_are_weak_references():
    model, table, _ = model_of("key")
    weak = weakref.WeakKeyDictionary(table)
    for block in model:
        block.tables[0] = weak
    compiled, x = jit(model), torch.arange(3.0)
    assert torch.equal(compiled(x), model(x))
    weak[model[1]] = 7.0
    assert torch.equal(compiled(x), model(x))


def test_ids_of_what_each_call_makes_do_not_matter():
    def program(x):
        y = x * 2
        return y * len({id(y), id(y)}) + (id(y) == id(x))

    compiled = jit(program)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(3)), torch.ones(3) * 2)
