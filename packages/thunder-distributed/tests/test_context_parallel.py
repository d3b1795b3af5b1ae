"""Attention over parts of a sequence: on several processes, and with all ranks in one."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from thunder_autograd import grad_transform_on_trace
from thunder_distributed import Axis, AxisError, context_parallel, sequence_part
from thunder_distributed.context import attention_over
from thunder_distributed.passes import collectives_of
from thunder_distributed.ranks import on_all_ranks
from thunder_ir import Tensor, trace_of, verify
from thunder_torch import symbol_of

SCENARIOS = "context_scenarios.py"
RANKS = 4
AXIS = Axis("context", RANKS)


def test_on_two_processes(scenario, check):
    check(scenario)


def parts(whole, dim=2):
    """Return what each rank has: its chunk from the front, and that from the end."""
    chunks = whole.chunk(2 * RANKS, dim)
    return [torch.cat([chunks[r], chunks[2 * RANKS - 1 - r]], dim) for r in range(RANKS)]


def attention(**options):
    def program(query, key, value):
        return symbol_of(F.scaled_dot_product_attention)(query, key, value, **options)

    return program


@pytest.mark.parametrize("is_causal", [True, False])
@pytest.mark.parametrize(("method", "heads", "width"), [("ring", 2, 4), ("ring", 1, 6), ("heads", 4, 4)])
def test_every_rank_gets_its_part_of_attention_and_of_its_gradients(is_causal, method, heads, width):
    torch.manual_seed(0)
    shapes = [(2, 4, 16, 4), (2, heads, 16, 4), (2, heads, 16, width)]
    whole = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    dy = torch.randn(2, 4, 16, width, dtype=torch.float64)
    gqa = heads != 4
    expected = F.scaled_dot_product_attention(*whole, is_causal=is_causal, enable_gqa=gqa)
    gradients = torch.autograd.grad(expected, whole, dy)

    local = [Tensor((s[0], s[1], s[2] // RANKS, s[3]), "float64", requires_grad=True) for s in shapes]
    trace = attention_over(trace_of(attention(is_causal=is_causal, enable_gqa=gqa), *local), AXIS, method)
    verify(trace)
    joint = grad_transform_on_trace(trace)
    verify(joint)
    given = zip(*[parts(t.detach()) for t in (*whole, dy)], strict=True)
    for rank, (y, found) in enumerate(on_all_ranks(joint, list(map(list, given)))):
        torch.testing.assert_close(y, parts(expected)[rank])
        for mine, all_of_it in zip(found, gradients, strict=True):
            torch.testing.assert_close(mine, parts(all_of_it)[rank])


def test_keys_go_around_once_and_their_gradients_with_them_home():
    local = [Tensor((2, 4, 8, 4), requires_grad=True)] * 3
    forward = attention_over(trace_of(attention(is_causal=True), *local), AXIS)
    joint = grad_transform_on_trace(forward)
    sent = [b.args[0].type_string for b in collectives_of(joint)]
    assert sent == ["float32[2, 2, 4, 8, 4]"] * (3 + 3 + 4)  # key and value: forward, again, and gradients


class Model(nn.Module):
    def __init__(self, attend):
        super().__init__()
        self.attend = attend
        self.register_buffer("table", torch.arange(32.0).view(16, 2))

    def forward(self, x):
        return self.attend(self, x)


def heads(x):
    return x.view(1, 1, *x.shape)


def counted(model, x):
    return F.scaled_dot_product_attention(heads(x + torch.arange(8.0)[:, None]), heads(x), heads(x))


def from_table(model, x):
    return F.scaled_dot_product_attention(heads(x + model.table[:8]), heads(x), heads(x))


def masked(model, x):
    return F.scaled_dot_product_attention(heads(x), heads(x), heads(x), attn_mask=torch.ones(8, 8, dtype=torch.bool))


def dropping(model, x):
    return F.scaled_dot_product_attention(heads(x), heads(x), heads(x), dropout_p=0.1)


def written_out(model, x):
    return (x @ x.T).softmax(-1) @ x


@pytest.mark.parametrize(
    ("attend", "error", "message"),
    [
        (counted, RuntimeError, r"arange at .* counts the positions of a sequence from 0.*pass positions to the model"),
        (from_table, RuntimeError, r"getitem at .* takes the first entries of table, .*context_parallel\(buffers="),
        (masked, NotImplementedError, "attention with a mask over the parts of a sequence: use is_causal=True"),
        (dropping, NotImplementedError, "attention with dropout"),
        (written_out, RuntimeError, "a model that has no attention"),
    ],
)
def test_what_does_not_know_that_it_has_a_part_is_refused(one_process, attend, error, message):
    model = context_parallel(Model(attend))
    with pytest.raises(error, match=message):
        model(torch.ones(8, 2))


def test_buffers_go_along_with_the_sequence(one_process):
    model = context_parallel(Model(from_table), buffers={"tab*": 0}, check=False)
    x = torch.randn(8, 2)
    torch.testing.assert_close(model(x), Model(from_table)(x))


def test_bad_arguments_are_refused(one_process):
    with pytest.raises(ValueError, match="knows the methods 'ring', 'heads', not 'tree'"):
        context_parallel(nn.Linear(2, 2), method="tree")
    with pytest.raises(KeyError, match="no buffer is called 'cos'; there are table"):
        context_parallel(Model(counted), buffers={"cos": 0})
    with pytest.raises(ValueError, match="a sequence of 7 cannot be cut for 1 processes.*pad it to 8"):
        sequence_part(torch.ones(2, 7))


def test_without_a_process_group_the_error_says_how_to_get_one():
    with pytest.raises(AxisError, match="start the program with torchrun"):
        context_parallel(nn.Linear(2, 2))
