"""Models that repeat a block: acquired once and played again, with nothing to be seen of it but the time it takes."""

import copy
from collections import Counter

import pytest
import torch
from torch import nn

from thunder_frontend import cache_misses, jit, last_traces
from thunder_frontend._block_reuse import blocks
from thunder_frontend._jit import compiled_function


class Inner(nn.Module):
    gain = 1.5

    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.slope = 0.5

    def forward(self, x):
        return self.down(torch.nn.functional.leaky_relu(self.up(x), self.slope)) * self.gain


class Block(nn.Module):
    def __init__(self, width, index=0):
        super().__init__()
        self.norm, self.inner, self.drop = nn.LayerNorm(width), Inner(width), nn.Dropout(0.5)
        self.register_buffer("shift", torch.randn(width))
        self.index = index
        self.options = {"scale": 2.0, "skips": [1]}

    def forward(self, x, bias=None, seen=None):
        y = self.drop(self.inner(self.norm(x))) * self.options["scale"] + self.shift
        if bias is not None:
            y = y + bias
        if seen is not None:
            seen.append(y)
        return x + y if self.options["skips"] else y


class Model(nn.Module):
    def __init__(self, block=Block, count=4, width=6):
        super().__init__()
        torch.manual_seed(0)
        self.blocks = nn.ModuleList([block(width) for _ in range(count)])

    def forward(self, x, **kwargs):
        x = x * 1.5
        for block in self.blocks:
            x = block(x, **kwargs)
        return x


@pytest.fixture
def answered(monkeypatch):
    """The modules whose calls were answered without running them."""
    modules = []
    play = blocks.ReusedBlock.__call__

    def counted(self):
        result = play(self)
        modules.append(self.call[0])
        return result

    monkeypatch.setattr(blocks.ReusedBlock, "__call__", counted)
    return modules


def check(model, *args, compiled=None, **kwargs):
    """Compare a forward pass and all gradients with eager's; return what was compiled."""
    compiled = jit(model) if compiled is None else compiled
    found = []
    for run in (model, compiled):
        model.zero_grad()
        torch.manual_seed(1)
        result = run(*args, **kwargs)
        result.sum().backward()
        found.append([result, *[p.grad for p in model.parameters()]])
    for ours, eagers in zip(*found, strict=True):
        if eagers is None:
            assert ours is None
        else:
            torch.testing.assert_close(ours, eagers, rtol=1e-6, atol=1e-6)
    return compiled


def test_equal_blocks_are_acquired_once(answered):
    model = Model()
    check(model, torch.randn(3, 6, requires_grad=True))
    assert answered == list(model.blocks)[1:]


def guarded(fn):
    """What each guard of the specialisation compiled last says, with where its value is found."""
    program = compiled_function(fn).compiled[-1].specialisation.program
    return Counter(
        (type(g).__name__, str(g.source), getattr(g, "part", None), repr(key))
        for g in program.guards
        for key in getattr(g, "keys", (None,))
    )


def test_the_program_and_its_guards_are_the_same_as_without(monkeypatch):
    model, x = Model(), torch.randn(3, 6)
    once = jit(model)
    once(x)
    monkeypatch.setattr(blocks.BlockReuse, "begin", lambda *_: None)
    each = jit(model)
    each(x)
    assert str(last_traces(once)[0]) == str(last_traces(each)[0])
    assert guarded(once) == guarded(each)


def test_dropout_draws_anew_in_every_block():
    model = Model().train()
    check(model, torch.ones(3, 6))


def hook_on_output(model):
    model.blocks[2].register_forward_hook(lambda module, args, output: output * 3)


def other_number(model):
    model.blocks[2].inner.slope = 0.1


def attribute_before_that_of_the_class(model):
    model.blocks[2].inner.gain = 2.5


def other_entry(model):
    model.blocks[2].options["scale"] = 5.0


def shorter_list(model):
    model.blocks[2].options["skips"].clear()


def not_training(model):
    model.blocks[2].drop.eval()


def frozen(model):
    model.blocks[2].inner.up.weight.requires_grad_(False)


def without_bias(model):
    model.blocks[2].inner.up.bias = None


def another_class(model):
    class Other(Inner):
        def forward(self, x):
            return self.down(self.up(x))

    model.blocks[2].inner.__class__ = Other


def another_forward(model):
    model.blocks[2].inner.forward = lambda x: x * 2


def tied(model):
    model.blocks[2].inner.up = model.blocks[1].inner.up


def shared_block(model):
    model.blocks[2] = model.blocks[1]


def transposed_weight(model):
    inner = model.blocks[2].inner
    inner.up.weight = nn.Parameter(inner.up.weight.detach().t().contiguous().t())


CHANGES = [
    hook_on_output, other_number, attribute_before_that_of_the_class, other_entry, shorter_list, not_training, frozen, without_bias, another_class,
    another_forward, tied, shared_block, transposed_weight,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_block_that_differs_is_acquired_by_itself(change):
    model = Model().train()
    change(model)
    check(model, torch.randn(3, 6))


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_a_block_that_was_played_again_is_noticed(change):
    model, x = Model().train(), torch.randn(3, 6)
    compiled = check(model, x)
    check(model, x, compiled=compiled)
    assert cache_misses(compiled) == 1
    change(model)
    check(model, x, compiled=compiled)


def test_what_a_program_hands_from_block_to_block_is_seen():
    class Collecting(Model):
        def forward(self, x):
            seen = []
            for block in self.blocks:
                x = block(x, seen=seen)
            return torch.stack(seen).sum() + x

    check(Collecting(), torch.randn(3, 6))


def test_attributes_of_the_tables_of_modules_are_those_of_each_block():
    class Labelled(Block):
        def forward(self, x):
            return super().forward(x) * self._forward_hooks.label

    model, x = Model(Labelled), torch.randn(3, 6)
    for label, block in enumerate(model.blocks):
        block._forward_hooks.label = label + 1
    compiled = check(model, x)
    model.blocks[3]._forward_hooks.label = 7
    check(model, x, compiled=compiled)


def test_a_cell_that_every_block_reads_is_guarded_once():
    scale = 2.0

    class Scaled(Block):
        def forward(self, x):
            return super().forward(x) * scale

    model, x = Model(Scaled), torch.randn(3, 6)
    compiled = check(model, x)
    program = compiled_function(compiled).compiled[-1].specialisation.program
    cells = [id(g.source.base.held) for g in program.guards if g.source.kind == "cell"]
    assert len(cells) == len(set(cells)) > 0
    scale = 3.0
    check(model, x, compiled=compiled)


def test_arguments_that_differ_are_told_apart(answered):
    class Alternating(Model):
        def forward(self, x, bias):
            x = x * 1.5
            for index, block in enumerate(self.blocks):
                x = block(x, bias if index % 2 else None)
            return x

    model = Alternating()
    check(model, torch.randn(3, 6, requires_grad=True), torch.randn(6))
    assert [m for m in answered if isinstance(m, Block)] == list(model.blocks)[2:]


def test_one_tensor_given_twice_is_not_two():
    class Pair(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.linear = nn.Linear(width, width)
            self.act = nn.Sequential(nn.ReLU())

        def forward(self, a, b):
            return self.linear(a) if a is b else self.act(a) - b

    class Pairs(Model):
        def forward(self, x):
            y = self.blocks[0](x * 2, x)
            z = self.blocks[1](y, y)
            return self.blocks[2](z, y) + self.blocks[3](z, z)

    check(Pairs(Pair), torch.randn(3, 6))


def test_objects_that_blocks_share_stay_shared():
    class Chained(Block):
        def forward(self, x):
            return super().forward(x) * (2.0 if self.next is self.first else 3.0)

    model = Model(Chained)
    for index, block in enumerate(model.blocks):
        object.__setattr__(block, "first", model.blocks[0])
        object.__setattr__(block, "next", model.blocks[(index + 1) % 4])
    check(model, torch.randn(3, 6))


class Counting(Block):
    def forward(self, x):
        self.shift.add_(1)
        self.index = self.index + 1
        return super().forward(x) * self.index


def test_blocks_that_write_to_themselves():
    model, x = Model(Counting), torch.randn(3, 6)
    other = copy.deepcopy(model)
    compiled = jit(other)
    for _ in range(3):
        torch.manual_seed(3)
        expected = model(x)
        torch.manual_seed(3)
        torch.testing.assert_close(compiled(x), expected)
    assert [b.index for b in model.blocks] == [b.index for b in other.blocks] == [3] * 4
    torch.testing.assert_close(other.blocks[3].shift, model.blocks[3].shift)


def test_a_global_written_between_blocks_is_read_anew():
    class Writing(Model):
        def forward(self, x):
            for block in self.blocks:
                x = block(x) + self.level
                self.level.mul_(2)
            return x

    class Reading(Block):
        def forward(self, x):
            return super().forward(x) + self.level[0]

    model = Writing(Reading)
    model.register_buffer("level", torch.ones(1))
    for block in model.blocks:
        block.level = model.level
    other = copy.deepcopy(model)
    compiled = jit(other)
    for _ in range(2):
        torch.manual_seed(1)
        expected = model(torch.ones(2, 6))
        torch.manual_seed(1)
        torch.testing.assert_close(compiled(torch.ones(2, 6)), expected)


@pytest.mark.parametrize("enabled", [True, False])
def test_grad_mode_is_a_part_of_a_call(enabled):
    class Partly(Model):
        def forward(self, x):
            with torch.no_grad():
                x = self.blocks[0](x)
            x = self.blocks[1](x)
            with torch.set_grad_enabled(enabled):
                x = self.blocks[2](x)
            return self.blocks[3](x)

    check(Partly(), torch.randn(3, 6))


def test_blocks_that_read_their_number_are_told_apart():
    class Numbered(Block):
        def forward(self, x):
            return super().forward(x) * self.index

    model = Model(Numbered)
    for index, block in enumerate(model.blocks):
        block.index = index
    check(model, torch.randn(3, 6))


def test_blocks_that_ignore_their_number_are_not(answered):
    model = Model()
    for index, block in enumerate(model.blocks):
        block.index = index
    check(model, torch.randn(3, 6, requires_grad=True))
    assert len(answered) == 3


class Masked(Block):
    def forward(self, x):
        kept = x[x > self.shift.mean()]
        return super().forward(x) + kept.sum() * kept.shape[0] + torch.ones(kept.shape[0]).sum()


class Scaled(Block):
    def forward(self, x):
        return super().forward(x) * x.mean().item()


@pytest.mark.parametrize("block", [Masked, Scaled])
def test_sizes_and_numbers_that_a_run_tells_are_those_of_each_block(block):
    model = Model(block).eval()
    compiled = check(model, torch.randn(3, 6))
    check(model, torch.randn(3, 6), compiled=compiled)
    assert cache_misses(compiled) == 1


def symbolic(model, rows, compiled=None):
    """Check a model whose sizes are dynamic with each number of rows; return what was compiled."""
    compiled = jit(model, cache="symbolic values") if compiled is None else compiled
    for n in rows:
        check(model, torch.randn(n, 6, requires_grad=True), compiled=compiled)
    return compiled


class Halving(Block):
    def forward(self, x):
        half = x.shape[0] // 2
        y = torch.cat([x[half:], x[:half]])
        return super().forward(x) + y * (half + 1)


class Transposing(Block):
    def forward(self, x):
        return super().forward(x.t().contiguous().t()).t().contiguous().t() + x.reshape(-1).sum()


@pytest.mark.parametrize("block", [Block, Halving, Transposing])
def test_blocks_with_open_sizes_are_acquired_once(block, answered):
    model = Model(block)
    compiled = symbolic(model, [4, 5])
    alike = list(model.blocks)[2 if block is Transposing else 1 :]  # the first is given another layout than the others
    assert [module for module in answered if isinstance(module, Block)] == alike * 2
    symbolic(model, [8, 7, 9, 13], compiled)
    assert cache_misses(compiled) == 2


def test_the_program_with_open_sizes_is_the_same_as_without(monkeypatch):
    texts = []
    for begin in (blocks.BlockReuse.begin, lambda *_: None):
        monkeypatch.setattr(blocks.BlockReuse, "begin", begin)
        compiled = symbolic(Model(), [4, 5])
        texts.append((str(last_traces(compiled)[0]), guarded(compiled)))
    assert texts[0] == texts[1]


def test_numbers_left_open_are_those_of_each_block():
    class Stepped(Block):
        def forward(self, x):
            x = super().forward(x) * self.index
            return x * 2 if self.index > 2 else x

    model = Model(Stepped).eval()
    compiled = symbolic(model, [3])
    for numbers in ([1, 1, 1, 1], [4, 4, 4, 4], [5, 5, 5, 5], [6, 7, 8, 9], [6, 0, 8, 9], [0, 7, 0, 9], [7, 7, 7, 1]):
        for block, index in zip(model.blocks, numbers, strict=True):
            block.index = index
        symbolic(model, [3], compiled)


def test_a_number_left_open_in_one_block_alone():
    class Stepped(Block):
        def forward(self, x):
            return super().forward(x) * (2 if self.index > 2 else 1)

    model = Model(Stepped).eval()
    compiled = symbolic(model, [3])
    for which in (2, 1, 3, 0):
        for index in (3, 4, 0, 5, 0):
            model.blocks[which].index = index
            symbolic(model, [3], compiled)


def test_calls_with_other_open_sizes_are_told_apart():
    class Growing(Model):
        def forward(self, x):
            for block in self.blocks:
                x = block(torch.cat([x, x[:1]]))
            return x

    compiled = symbolic(Growing(), [9, 10, 11, 14])
    assert cache_misses(compiled) == 2


def test_blocks_given_symbolic_numbers(answered):
    class Given(Block):
        def forward(self, x, rows):
            return super().forward(x).view(rows, -1) / rows

    class Giving(Model):
        def forward(self, x):
            rows = x.shape[0]
            for block in self.blocks:
                x = block(x, rows)
            return x

    model = Giving(Given)
    compiled = symbolic(model, [4, 5])
    assert len(answered) == 6
    symbolic(model, [8, 9, 2, 13], compiled)
    assert cache_misses(compiled) == 2
