"""What a user does with a device, on the CPU and on a GPU where there is one: all of it is what eager does."""

import copy

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

import thunder

F = nn.functional
NO_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device")
DEVICES = ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, NO_GPU])]


@pytest.fixture(params=DEVICES)
def device(request):
    """The device that models and inputs are on; products of float32 are computed in float32 there."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        yield torch.device(request.param)
    torch.set_float32_matmul_precision(before)


class Recurrent(nn.Module):
    """A recurrent network; on GPUs its layers lie in one piece of memory."""

    def __init__(self, kind):
        super().__init__()
        self.layers = kind(8, 16, num_layers=2, batch_first=True)
        self.head = nn.Linear(16, 8)

    def forward(self, x):
        return self.head(self.layers(x)[0])


class Checkpointed(nn.Module):
    """Dropout that is computed again for the gradient."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.5), nn.Linear(32, 8))

    def forward(self, x):
        return x + checkpoint(self.body, x, use_reentrant=False)


class Attention(nn.Module):
    """Attention of its own input, with a mask that is made on its device."""

    def __init__(self, mask):
        super().__init__()
        self.mask = mask
        self.qkv, self.out = nn.Linear(8, 96), nn.Linear(32, 8)

    def forward(self, x):
        b, s, _ = x.shape
        q, k, v = (t.view(b, s, 2, 16).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        mask = torch.arange(s, device=x.device)[:, None] + 2 > torch.arange(s, device=x.device) if self.mask else None
        y = F.scaled_dot_product_attention(q, k, v, mask, is_causal=not self.mask)
        return self.out(y.transpose(1, 2).reshape(b, s, 32))


class Branching(nn.Module):
    """Control flow on values, numbers that leave the device, and tensors that go to the CPU and back."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        h = self.body(x)
        if h.mean() > 0:
            h = h * 2
        if not torch.isfinite(h).all():
            raise ValueError("not finite")
        row = int(h.sum((1, 2)).argmax())
        return h + h[row].cpu().mean().to(x.device) + torch.tensor([1.0, 2.0], device=x.device).sum()


class Convolutional(nn.Module):
    """Convolutions and batch norm, in the memory format of channels last."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(8, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
        self.second = nn.ConvTranspose2d(16, 8, 3, padding=1)

    def forward(self, x):
        image = x.transpose(1, 2)[..., None].expand(-1, -1, -1, 4).contiguous(memory_format=torch.channels_last)
        y = self.second(F.max_pool2d(self.norm(self.first(image)).relu(), 3, stride=1, padding=1))
        return y.mean(-1).transpose(1, 2)


MODELS = {
    "network": lambda: nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.LayerNorm(32), nn.Dropout(0.1), nn.Linear(32, 8)),
    "encoder": lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True),
    "LSTM": lambda: Recurrent(nn.LSTM),
    "GRU": lambda: Recurrent(nn.GRU),
    "checkpointed": Checkpointed,
    "causal attention": lambda: Attention(False),
    "masked attention": lambda: Attention(True),
    "branching": Branching,
    "convolutional": Convolutional,
}


def trained(run, model, device, steps=6, context=None, scaler=None):
    """Return losses of some steps of AdamW."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    generator = torch.Generator().manual_seed(1)
    torch.manual_seed(2)
    for i in range(steps):
        x = torch.randn(3, 5 + i % 2, 8, generator=generator).to(device, next(model.parameters()).dtype)
        optimizer.zero_grad()
        with context or torch.enable_grad():
            loss = (run(x) - x.roll(1, 1)).float().square().mean()
        if scaler is None:
            loss.backward()
            optimizer.step()
        else:
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        losses.append(loss.detach())
    return torch.stack(losses)


def both(name, device, dtype=torch.float32):
    torch.manual_seed(0)
    mine = MODELS[name]().to(device, dtype)
    return mine, copy.deepcopy(mine)


@pytest.mark.parametrize("name", MODELS)
def test_training_is_eagers_with_eagers_random_numbers(name, device):
    mine, other = both(name, device)
    assert_close(trained(thunder.jit(mine), mine, device), trained(other, other, device), rtol=1e-4, atol=1e-5)
    assert_close(list(mine.buffers()), list(other.buffers()))


@pytest.mark.parametrize("name", ["network", "encoder", "LSTM", "causal attention", "convolutional"])
def test_training_in_mixed_precision_is_eagers(name, device):
    mine, other = both(name, device)

    def train(run, model):
        return trained(run, model, device, context=torch.autocast(device.type, torch.bfloat16))

    try:
        expected = train(other, other)
    except RuntimeError as error:
        if "could not create a primitive" not in str(error):
            raise
        pytest.skip("oneDNN has no layer of this kind in bfloat16 for this processor")
    assert_close(train(thunder.jit(mine), mine), expected, rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("name", ["network", "causal attention"])
def test_training_with_scaled_gradients_is_eagers(name, device):
    mine, other = both(name, device)
    losses = [
        trained(
            run, model, device, context=torch.autocast(device.type, torch.float16),
            scaler=torch.amp.GradScaler(device.type, init_scale=2.0**10),
        )
        for run, model in ((thunder.jit(mine), mine), (other, other))
    ]  # fmt: skip
    assert_close(*losses, rtol=1e-2, atol=1e-2)


DRAWS = {
    "rand": lambda x: x + torch.rand_like(x),
    "randn": lambda x: x + torch.randn(x.shape, device=x.device),
    "dropout": lambda x: F.dropout(x, 0.3) + F.dropout(x, 0.5),
    "bernoulli": lambda x: x * torch.bernoulli(torch.full_like(x, 0.4)),
    "permutation": lambda x: x[torch.randperm(x.shape[0], device=x.device)],
    "integers": lambda x: x + torch.randint(9, x.shape, device=x.device),
    "normal": lambda x: x.clone().normal_() + x,
    "multinomial": lambda x: torch.multinomial(x.exp(), 2).to(x.dtype) + 1,
}


@pytest.mark.parametrize("name", DRAWS)
def test_random_numbers_are_eagers(name, device):
    x = torch.randn(40, 30, device=device)
    run = thunder.jit(DRAWS[name])
    for _ in range(3):
        torch.manual_seed(3)
        found = run(x), run(x)
        torch.manual_seed(3)
        assert_close(found, (DRAWS[name](x), DRAWS[name](x)), rtol=0, atol=0)


def test_a_generator_of_the_device_is_drawn_from(device):
    generators = [torch.Generator(device).manual_seed(5) for _ in range(2)]

    def function(x, generator):
        return x + torch.randn(x.shape, generator=generator, device=x.device)

    x = torch.zeros(10, device=device)
    run = thunder.jit(function)
    for _ in range(3):
        assert_close(run(x, generators[0]), function(x, generators[1]), rtol=0, atol=0)


def test_a_model_that_moves_is_compiled_for_where_it_is(device):
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    run = thunder.jit(model)
    x = torch.randn(2, 8)
    for target in ("cpu", device, "cpu"):
        model.to(target)
        found = run(x.to(target))
        assert found.device == torch.empty(0, device=target).device
        assert_close(found, model(x.to(target)))


def test_functions_make_tensors_where_eager_does(device):
    def function(x):
        with torch.device(x.device):
            a = torch.arange(3.0)
        return a + x, torch.zeros(3, device=x.device) + x, x.new_ones(3), torch.tensor([1, 2, 3]).to(x), torch.ones(2)

    x = torch.randn(3, device=device)
    found, expected = thunder.jit(function)(x), function(x)
    assert_close(found, expected)
    assert [t.device for t in found] == [t.device for t in expected]


def test_writes_and_views_are_eagers(device):
    def function(x, y):
        x[:, 0] = 1
        y.add_(x.t()[:2])
        return x.view(-1), y

    arguments = [torch.randn(3, 2, device=device), torch.randn(2, 3, device=device)]
    others = [t.clone() for t in arguments]
    found, expected = thunder.jit(function)(*arguments), function(*others)
    assert_close((*found, *arguments), (*expected, *others))
    assert found[0].data_ptr() == arguments[0].data_ptr() and found[1] is arguments[1]


@pytest.mark.gpu
@NO_GPU
def test_tensors_of_two_devices_are_refused_as_in_eager():
    def function(x, y):
        return x + y

    arguments = (torch.ones(3), torch.ones(3, device="cuda"))
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        function(*arguments)
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        thunder.jit(function)(*arguments)
    numbers = (torch.tensor(2.0), torch.ones(3, device="cuda"))
    assert_close(thunder.jit(function)(*numbers), function(*numbers))


@pytest.mark.gpu
@NO_GPU
def test_a_program_runs_on_the_stream_of_its_caller():
    model = nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 512)).cuda()
    run = thunder.jit(model)
    x = torch.randn(512, 512, device="cuda")
    expected = model(x)
    run(x)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # what is queued behind it is not done yet
        found = run(x.clone())
        done = stream.record_event()
    assert not done.query()
    stream.synchronize()
    assert_close(found, expected)


@pytest.mark.gpu
@NO_GPU
@pytest.mark.parametrize("backend", ["MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "CUDNN_ATTENTION"])
def test_attention_is_by_the_kernel_that_is_asked_for(backend):
    def function(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    inputs = [torch.randn(2, 4, 128, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3)]
    run = thunder.jit(function)
    kernels = []
    with sdpa_kernel(getattr(SDPBackend, backend)):
        for call in (run, run, function):
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                y = call(*inputs)
                gradients = torch.autograd.grad(y.float().square().sum(), inputs)
                torch.cuda.synchronize()
            kernels.append(({e.key for e in profile.key_averages()}, y.detach(), gradients))
    assert_close(kernels[1][1:], kernels[2][1:], rtol=2e-2, atol=2e-2)

    def attentions(names):
        return {n for n in names if "flash" in n or "fmha" in n or "cudnn" in n or "sdpa" in n}

    assert attentions(kernels[1][0]) == attentions(kernels[2][0])


@pytest.mark.gpu
@NO_GPU
def test_kernels_that_pytorch_compiles_from_text_are_launched_with_values():
    square = torch.cuda.jiterator._create_jit_fn("template <typename T> T square(T x, T y) { return x * x + y; }")
    x, y = torch.randn(5, device="cuda"), torch.randn(5, device="cuda")
    run = thunder.jit(lambda x, y: square(x * 2, y) + 1)
    for _ in range(2):
        assert_close(run(x, y), square(x * 2, y) + 1)


@pytest.mark.gpu
@NO_GPU
def test_operations_that_look_at_values_are_eagers():
    def function(x, at):
        picked = x[x > 0]
        x = x.clone()
        x[x < 0] = x.sum()
        return torch.cov(x), torch.corrcoef(x), torch.combinations(x[0]), picked, *torch.tensor_split(x, at, 1)

    x, at = torch.randn(3, 4, device="cuda"), torch.tensor([1, 3])
    run = thunder.jit(function)
    for _ in range(2):
        assert_close(run(x, at), function(x, at))


@pytest.mark.gpu
@NO_GPU
def test_memory_is_given_back():
    model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(4)]).cuda()
    run = thunder.jit(model)

    def most(call):
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        call(torch.randn(4096, 1024, device="cuda")).sum().backward()
        model.zero_grad()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before, torch.cuda.memory_allocated() - before

    for call in (run, model):
        most(call)
    (mine, left), (other, _) = most(run), most(model)
    assert left == 0
    assert mine <= other * 1.01


@pytest.mark.gpu
@NO_GPU
def test_the_backend_of_torch_compile_runs_on_it():
    mine, other = both("encoder", torch.device("cuda"))
    losses = [
        trained(run, model, torch.device("cuda"))
        for run, model in ((torch.compile(mine, backend="thunder"), mine), (other, other))
    ]
    assert losses[0].isfinite().all()
    assert_close(losses[0][:1], losses[1][:1], rtol=0.3, atol=0.3)  # their dropouts draw in another order
