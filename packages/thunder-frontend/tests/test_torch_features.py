"""Features of PyTorch inside of programs: modes, random numbers, custom functions, modules of all kinds."""

import pytest
import torch
from against_eager import copied, same_as_eager
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.ao.nn import quantizable
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode
from torch.testing._utils import freeze_rng_state
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import FlopCounterMode

from thunder_frontend import AcquisitionError, cache_misses, jit


def quiet_inside(x):
    with torch.no_grad():
        y = x * 2
    return y + x


def quiet(x):
    with torch.no_grad():
        return x * 2


def lower_precision(x, w):
    with torch.autocast("cpu", torch.bfloat16):
        return x @ w


class Cubed(torch.autograd.Function):
    """Squares; its gradient, wrong on purpose, tells that it is the one used."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, cotangent):
        (x,) = ctx.saved_tensors
        return cotangent * 3 * x


def differentiates(x):
    (gradient,) = torch.autograd.grad((x**2).sum(), x)
    return gradient


@pytest.mark.parametrize(
    ("program", "args"),
    [
        (quiet_inside, (torch.randn(3, requires_grad=True),)),
        (quiet, (torch.randn(3, requires_grad=True),)),
        (lower_precision, (torch.randn(3, 3), torch.randn(3, 3))),
        (lambda x: x + torch.rand(3) + torch.randn_like(x) + torch.bernoulli(torch.full((3,), 0.5)), (torch.randn(3),)),
        (
            lambda x: checkpoint(lambda y: y.sin() * y.cos(), x, use_reentrant=False) * 2,
            (torch.randn(3, requires_grad=True),),
        ),
        (lambda x: Cubed.apply(x) * 2, (torch.randn(3, requires_grad=True),)),
        (differentiates, (torch.randn(3, requires_grad=True),)),
        (lambda x: torch.view_as_complex(x).abs(), (torch.randn(3, 2),)),
        (lambda x: torch.linalg.solve(x, x @ x) + torch.linalg.inv(x), (torch.randn(3, 3),)),
        (lambda x: x + torch.tensor([1.0, 2.0, 3.0]), (torch.randn(3),)),
        (lambda x: (x.argmax(), x * 2), (torch.randn(3, requires_grad=True),)),
        (
            lambda x, y: (x * 2, y.detach() * 3),
            (torch.randn(3, requires_grad=True), torch.randn(3, requires_grad=True)),
        ),
    ],
    ids=lambda p: getattr(p, "__name__", None),
)
def test_programs_do_what_pytorch_does(program, args):
    same_as_eager(program, *args)


def hooked():
    module = nn.Linear(3, 3)
    module.register_forward_hook(lambda m, args, out: out * 2)
    module.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    return module


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (hooked, (2, 3)),
        (lambda: nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), (2, 3)),
        (lambda: nn.LSTM(3, 4, batch_first=True), (2, 5, 3)),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), (2, 5, 8)),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval(), (2, 5, 8)),
        (
            lambda: nn.Sequential(
                nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1)
            ),
            (2, 3, 6, 6),
        ),
        (lambda: nn.LazyLinear(3), (2, 4)),
    ],
    ids=["hooks", "weight_norm", "lstm", "transformer", "transformer_eval", "convolution", "lazy"],
)
def test_modules_do_what_pytorch_does(make, shape):
    module = make()
    x = torch.randn(shape)
    if any(isinstance(m, nn.LazyLinear) for m in module.modules()):
        module(x)
    twin = copied(module)
    torch.testing.assert_close(jit(twin)(x), module(x))


def test_dropout_draws_eagers_numbers():
    module = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))
    compiled = jit(module)
    for seed in range(3):
        x = torch.randn(4, 8)
        torch.manual_seed(seed)
        expected = module(x)
        torch.manual_seed(seed)
        assert torch.equal(compiled(x), expected)


def test_a_module_given_as_an_argument_is_guarded_and_trained():
    compiled = jit(lambda module, x: module(x))
    x = torch.randn(2, 3)
    for module in (nn.Linear(3, 3), nn.Linear(3, 3)):
        torch.testing.assert_close(compiled(module, x), module(x))
        compiled(module, x).sum().backward()
        assert module.weight.grad is not None


def test_autocast_and_default_dtype_are_guarded():
    compiled = jit(lambda x, w: x @ w + torch.ones(3))
    x, w = torch.randn(3, 3), torch.randn(3, 3)
    assert compiled(x, w).dtype == torch.float32
    with torch.autocast("cpu", torch.bfloat16):
        assert compiled(x, w).dtype == torch.float32
        assert jit(torch.matmul)(x, w).dtype == torch.bfloat16
    torch.set_default_dtype(torch.float64)
    try:
        assert compiled(x, w).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_second_derivatives_go_through_compiled_functions():
    compiled = jit(lambda x: (x**3).sum())
    x = torch.randn(3, requires_grad=True)
    (first,) = torch.autograd.grad(compiled(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    torch.testing.assert_close(second, 6 * x)


def test_casts_are_made_once_under_autocast():
    compiled = jit(lambda x, w: (x @ w).float() @ w)
    x, w = torch.randn(3, 3), torch.randn(3, 3, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        expected = (x @ w).float() @ w
        result = compiled(x, w)
        assert torch.equal(result, expected)
        assert result.dtype == expected.dtype
    result.float().sum().backward()
    (gradient,) = torch.autograd.grad(expected.float().sum(), w)
    torch.testing.assert_close(w.grad, gradient, rtol=2e-2, atol=2e-2)


def test_functorch_transforms_see_through_compiled_functions():
    compiled = jit(lambda x: (x**2).sum())
    x = torch.randn(3)
    compiled(x)
    torch.testing.assert_close(torch.func.grad(compiled)(x), 2 * x)
    torch.testing.assert_close(torch.func.vmap(compiled)(torch.stack([x, x])), torch.stack([(x**2).sum()] * 2))


def test_default_devices_are_guarded():
    compiled = jit(lambda x: x + torch.ones(3))
    x = torch.randn(3)
    with torch.device("cpu"):
        assert compiled(x).device.type == "cpu"
    assert compiled(x).device.type == "cpu"
    with torch.device("meta"):
        assert jit(lambda n: torch.ones(n))(3).device.type == "meta"


def test_checkpointed_regions_are_computed_again():
    def program(x, w, checkpointed):
        def region(x):
            return torch.tanh(torch.sigmoid(x @ w) * 2).exp()

        y = checkpoint(region, x, use_reentrant=False) if checkpointed else region(x)
        return y.sum()

    x, w = torch.randn(64, 64, requires_grad=True), torch.randn(64, 64, requires_grad=True)
    saved = {}
    for checkpointed in (False, True):
        compiled = jit(program)
        x.grad = w.grad = None
        compiled(x, w, checkpointed).backward()
        saved[checkpointed] = sum(d.bytes for d in compiled.compiled[-1].computation.split.decisions if d.saved)
        torch.testing.assert_close(x.grad, torch.autograd.grad(program(x, w, False), x)[0])
    assert saved[True] < saved[False]


def feed_forward(x, w, v):
    return torch.nn.functional.dropout(torch.nn.functional.gelu(torch.nn.functional.dropout(x, 0.2) @ w), 0.3) @ v


def attention(x, w, v):
    heads = x.view(2, 64, 4, 16).transpose(1, 2)
    y = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, dropout_p=0.1)
    return y.transpose(1, 2).reshape(128, 64) @ w @ v


def noise(x, w, v):
    x = x + torch.randn_like(x) * torch.rand(64)
    return torch.nn.functional.rrelu(torch.bernoulli(torch.sigmoid(x)) * x @ w, training=True) @ v


@pytest.mark.parametrize("options", [{}, {"memory_budget": 0.2}, {"memory_budget": 0.0}])
@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("region", [feed_forward, attention, noise])
def test_random_numbers_of_what_is_computed_again_are_the_same(region, checkpointed, options):
    def program(x, w, v):
        for _ in range(2):
            x = checkpoint(region, x, w, v, use_reentrant=False) if checkpointed else region(x, w, v)
            x = torch.nn.functional.dropout(x, 0.1)
        return (x * x).mean()

    torch.manual_seed(0)
    given = [(0.1 * torch.randn(*shape)).requires_grad_() for shape in ((128, 64), (64, 128), (128, 64))]
    results = []
    compiled = jit(program, **options)
    for run in (program, compiled, compiled):
        torch.manual_seed(1)
        value = run(*given)
        between = torch.rand(3)
        results.append((value, between, torch.autograd.grad(value, given), torch.rand(3)))

    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(results[2], results[0])


def test_masks_in_a_checkpointed_region_are_not_saved():
    def program(x, w, v):
        return checkpoint(feed_forward, x, w, v, use_reentrant=False).sum()

    given = [torch.randn(*shape, requires_grad=True) for shape in ((128, 64), (64, 128), (128, 64))]
    compiled = jit(program)
    compiled(*given)

    split = compiled.compiled[-1].computation.split
    assert split.saved_bytes == 0
    assert [type(p).__name__ for p in split.saved if p.name not in {q.name for q in split.forward.inputs}] == [
        "AnyProxy", "AnyProxy",
    ]  # fmt: skip


class Doubles(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {})) * 2


def test_dispatch_modes_see_the_operations_around_a_call_and_are_refused_inside():
    def program(x):
        with Doubles():
            return x + 1

    with pytest.raises(AcquisitionError, match="Doubles, a TorchDispatchMode"):
        jit(program)(torch.ones(2))
    compiled = jit(lambda x: x + 1)
    compiled(torch.ones(2))
    given = torch.ones(2)
    with Doubles():
        result = compiled(given)
    assert result.tolist() == [4.0, 4.0]
    assert compiled(given).tolist() == [2.0, 2.0]
    assert len(compiled.compiled) == 1


class Logs(TorchFunctionMode):
    def __init__(self):
        super().__init__()
        self.log = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.log.append(func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_function_modes_inside_see_each_call_once():
    mode, other = Logs(), Logs()

    def program(x, mode):
        with mode:
            y = x.sin() * len(mode.log)
        return y + 1

    compiled = jit(program, fallback="split")
    for rows in (2, 3, 4):
        x = torch.ones(rows)
        assert torch.equal(compiled(x, mode), program(x, other))
        assert mode.log == other.log
    with pytest.raises(AcquisitionError, match="Logs, a TorchFunctionMode"):
        jit(program)(x, mode)
    assert mode.log == other.log


def test_operations_of_compiled_modules_are_counted():
    module = nn.Linear(3, 4)
    compiled = jit(module)
    counts = []
    for called in (module, compiled, compiled):
        called(torch.ones(2, 3))
        with FlopCounterMode(display=False) as counter:
            called(torch.ones(2, 3))
        counts.append(counter.get_total_flops())
    assert counts == [2 * 2 * 3 * 4] * 3


@pytest.mark.parametrize(
    "call", [lambda x: x.apply_(lambda v: v + 1), lambda x: x.map_(x, lambda a, b: a + b)], ids=["apply_", "map_"]
)
def test_calls_of_python_for_each_element_are_refused(call):
    with pytest.raises(AcquisitionError, match="one element after the other.*use operations on the whole tensor"):
        jit(lambda x: call(x * 2))(torch.ones(2))


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda: quantizable.LSTM(4, 5, 2), 1),
        (lambda: quantizable.LSTMCell(4, 5), 1),
        (lambda: quantizable.MultiheadAttention(4, 2), 3),
    ],
)
def test_modules_made_for_quantization_are_programs(make, count):
    torch.manual_seed(0)
    module = make()
    arguments = [torch.randn(*((2, 4) if isinstance(module, quantizable.LSTMCell) else (3, 2, 4)))] * count
    torch.testing.assert_close(jit(module)(*arguments), module(*arguments))


def test_a_sequence_of_quasirandom_points_goes_on_from_call_to_call():
    engines = [torch.quasirandom.SobolEngine(3, scramble=True, seed=1) for _ in range(2)]
    functions = [lambda x: x + engines[0].draw(2), jit(lambda x: x + engines[1].draw(2))]
    x = torch.ones(3)
    for _ in range(3):
        assert torch.equal(*[function(x) for function in functions])


def test_a_seed_set_by_a_helper_of_pytorchs_is_set_on_each_call():
    def program(x):
        with freeze_rng_state():
            torch.manual_seed(7)
            drawn = torch.bernoulli(x)
        return drawn, torch.rand(2)

    compiled = jit(program)
    for seed in range(3):
        results = []
        for function in (program, compiled):
            torch.manual_seed(seed)
            results.append(function(torch.full((20,), 0.5)))
        torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_kernels_of_attention_may_be_chosen_anew(requires_grad):
    def program(q):
        return nn.functional.scaled_dot_product_attention(q, q, q)

    compiled, q = jit(program), torch.randn(2, 4, 16, 8, requires_grad=requires_grad)
    compiled(q)
    with sdpa_kernel([SDPBackend.MATH]):
        assert torch.equal(compiled(q), program(q))
    assert torch.equal(compiled(q), program(q))
    assert cache_misses(compiled) == 2


SCORES = {
    "keys and values of one sequence": ((2, 4, 8, 8), (1, 4, 5, 8), (1, 4, 5, 8), None),
    "keys of one sequence": ((2, 4, 8, 8), (1, 4, 5, 8), (2, 4, 5, 8), None),
    "queries of one sequence": ((1, 4, 8, 8), (2, 4, 5, 8), (2, 4, 5, 8), None),
    "one head": ((2, 4, 8, 8), (2, 1, 5, 8), (2, 1, 5, 8), None),
    "a mask for all rows": ((2, 4, 8, 8), (2, 4, 5, 8), (2, 4, 5, 8), (1, 5)),
    "a mask for all keys": ((2, 4, 8, 8), (2, 4, 5, 8), (2, 4, 5, 8), (2, 1, 8, 1)),
}


@pytest.mark.parametrize("case", SCORES)
def test_attention_of_operands_that_broadcast(case):
    *shapes, mask = SCORES[case]
    operands = [torch.randn(shape, requires_grad=True) for shape in shapes]
    mask = None if mask is None else torch.randn(mask)
    compiled = jit(nn.functional.scaled_dot_product_attention)
    results = [f(*operands, attn_mask=mask) for f in (compiled, nn.functional.scaled_dot_product_attention)]
    gradients = [torch.autograd.grad(y.square().sum(), operands) for y in results]
    torch.testing.assert_close(*results)
    torch.testing.assert_close(*gradients)


def test_more_values_than_keys_are_no_attention():
    operands = [torch.randn(2, 4, n, 8, requires_grad=True) for n in (8, 5, 6)]
    with pytest.raises(Exception, match="matmul|size|shape"):
        jit(nn.functional.scaled_dot_product_attention)(*operands)


@pytest.mark.parametrize("shape", [(3, 2, 2, 4, 5), (3, 2, 4, 5), (1, 2, 2, 4, 5), (8, 5), (2, 2, 4, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bool])
@pytest.mark.parametrize("requires_grad", [True, False])
def test_masks_that_are_larger_than_the_scores_are_refused(shape, dtype, requires_grad):
    q, k = torch.ones(1, 2, 4, 3, requires_grad=requires_grad), torch.ones(1, 2, 5, 3)

    def attends(q, k, mask):
        return nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=mask)

    mask = torch.ones(shape).to(dtype)
    for function in (attends, jit(attends)):
        with pytest.raises(RuntimeError):
            function(q, k, mask)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("loss", [nn.functional.l1_loss, nn.functional.mse_loss, nn.functional.huber_loss])
@pytest.mark.parametrize("shapes", [[(2, 3), (2, 3), (2, 3)], [(2, 3), (3,), (2, 3)], [(2, 3), (2, 3), (1, 3)]])
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_losses_have_weights(loss, reduction, shapes):
    def weighted(a, b, weight):
        return loss(a, b, reduction=reduction, weight=weight)

    tensors = [torch.rand(shape, requires_grad=True) for shape in shapes]
    if shapes[2] != shapes[0]:
        with pytest.raises(ValueError, match="Weights and input must have the same size"):
            jit(weighted)(*tensors)
        return
    ours, eagers = [torch.autograd.grad(run(*tensors).sum(), tensors) for run in (jit(weighted), weighted)]
    torch.testing.assert_close(ours, eagers)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_conversions_to_the_dtype_at_hand_lay_out_anew_what_is_asked_for(requires_grad):
    x = torch.randn(2, 3, 2, 3, requires_grad=requires_grad)
    for convert in (torch.Tensor.float, torch.Tensor.cpu, torch.Tensor.double):
        same_as_eager(lambda x, convert=convert: convert(x, memory_format=torch.channels_last) * 2, x)
        same_as_eager(lambda x, convert=convert: convert(x) * 2, x)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("dtypes", [(torch.float64, torch.float32), (torch.float32, torch.float64)])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_of_logits_is_of_the_dtype_of_its_targets(weighted, dtypes, reduction):
    def loss(a, target, weight):
        return nn.functional.binary_cross_entropy_with_logits(
            a, target, weight=weight if weighted else None, pos_weight=weight if weighted else None, reduction=reduction
        )

    a, target = torch.randn(3, 4, dtype=dtypes[0], requires_grad=True), torch.rand(3, 4, dtype=dtypes[1])
    weight = torch.rand(4, dtype=dtypes[1])
    eagers = loss(a, target, weight)
    with FakeTensorMode() as mode:
        if loss(*[mode.from_tensor(t) for t in (a, target, weight)]).dtype != eagers.dtype:
            pytest.skip("this PyTorch's fake tensors have another dtype than its kernel gives")
    ours = jit(loss, fallback="error")(a, target, weight)
    torch.testing.assert_close(ours, eagers)
    gradients = [torch.autograd.grad(result.sum(), a)[0] for result in (ours, eagers)]
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-6)


@pytest.mark.filterwarnings("ignore:where received a uint8 condition")
@pytest.mark.parametrize(
    "program",
    [
        lambda x, mask: torch.where((x > 0).prod(-1, keepdim=True, dtype=torch.bool), x, x * 2),
        lambda x, mask: x * x.detach().round().sum(0, dtype=torch.bool),
        lambda x, mask: x * x.detach().round().prod(dtype=torch.bool),
        lambda x, mask: torch.where(mask, x, x * 2),
        lambda x, mask: x.where(mask * 3, 0.5),
    ],
)
def test_truths_of_other_dtypes_decompose(program):
    x = torch.tensor([[0.2, 1.0, 2.0], [-1.0, 0.3, 0.0]], requires_grad=True)
    mask = torch.tensor([[1, 0, 2]], dtype=torch.uint8)
    same_as_eager(program, x, mask)
    jit(program, fallback="error")(x, mask)
