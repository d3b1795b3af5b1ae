"""The executor in compiled functions, its extensions computed by stand-ins that hold each call to its signature."""

import subprocess
import sys

import pytest
import torch
from torch.testing import assert_close

import thunder_executors_apex as package
from thunder_executors import Library, get_executor
from thunder_executors_apex import availability
from thunder_executors_apex.executor import DEVICES
from thunder_frontend import jit, last_backward_traces, last_traces
from thunder_testing import StandIn, Table

functional = torch.nn.functional
KINDS = {"Tensor": torch.Tensor}
CROSS_ENTROPY = Table(
    "Apex xentropy_cuda",
    "commit 6424da3b",
    "NVIDIA/apex apex/contrib/csrc/xentropy/interface.cpp",
    """
def forward(logits: Tensor, labels: Tensor, smoothing: float, half_to_float: bool, /) -> tuple[Tensor, Tensor]: ...
def backward(grad_loss: Tensor, logits: Tensor, max_log_sum_exp: Tensor, labels: Tensor, smoothing: float, /) -> Tensor: ...
""",  # noqa: E501
    KINDS,
)
NORMS = Table(
    "Apex fused_layer_norm_cuda",
    "commit 6424da3b",
    "NVIDIA/apex csrc/layer_norm_cuda.cpp",
    """
def forward(input: Tensor, normalized_shape: list[int], eps: float, /) -> tuple[Tensor, Tensor, Tensor]: ...
def forward_affine(input: Tensor, normalized_shape: list[int], weight: Tensor, bias: Tensor, eps: float, /) -> tuple[Tensor, Tensor, Tensor]: ...
def backward(dout: Tensor, mean: Tensor | None, invvar: Tensor, input_or_output: Tensor, normalized_shape: list[int], eps: float, memory_efficient: bool, /) -> Tensor: ...
def backward_affine(dout: Tensor, mean: Tensor | None, invvar: Tensor, input_or_output: Tensor, normalized_shape: list[int], weight: Tensor, bias: Tensor, eps: float, memory_efficient: bool, /) -> tuple[Tensor, Tensor, Tensor]: ...
def rms_forward(input: Tensor, normalized_shape: list[int], eps: float, /) -> tuple[Tensor, Tensor]: ...
def rms_forward_affine(input: Tensor, normalized_shape: list[int], weight: Tensor, eps: float, /) -> tuple[Tensor, Tensor]: ...
def rms_backward(dout: Tensor, invvar: Tensor, input_or_output: Tensor, normalized_shape: list[int], eps: float, memory_efficient: bool, /) -> Tensor: ...
def rms_backward_affine(dout: Tensor, invvar: Tensor, input_or_output: Tensor, normalized_shape: list[int], weight: Tensor, eps: float, memory_efficient: bool, /) -> tuple[Tensor, Tensor]: ...
""",  # noqa: E501
    KINDS,
)
ROTARY = Table(
    "Apex fused_rotary_positional_embedding",
    "commit 6424da3b",
    "NVIDIA/apex csrc/megatron/fused_rotary_positional_embedding.cpp",
    """
def forward_cached(input: Tensor, cos: Tensor, sin: Tensor, transpose_output: bool, /) -> Tensor: ...
def backward_cached(output_grads: Tensor, cos: Tensor, sin: Tensor, transpose_output: bool, /) -> Tensor: ...
""",
    KINDS,
)


def contiguous(*tensors):
    assert all(t.is_contiguous() for t in tensors), "the extension reads its tensors in sequence"


def forward(logits, labels, smoothing, half_to_float):
    contiguous(logits, labels)
    assert labels.dtype is torch.int64 and bool(((labels >= 0) & (labels < logits.shape[1])).all())
    assert not half_to_float or logits.dtype is torch.float16
    wide = logits.float()
    losses = functional.cross_entropy(wide, labels, reduction="none")
    kept = torch.float32 if half_to_float else logits.dtype
    return losses, torch.logsumexp(wide, 1).to(kept)


def backward(grad_loss, logits, sums, labels, smoothing):
    contiguous(grad_loss, logits, sums, labels)
    widened = (grad_loss.dtype, logits.dtype) == (torch.float32, torch.float16)
    assert grad_loss.dtype is logits.dtype or widened
    p = torch.exp(logits.float() - sums.float()[:, None])
    return ((p - functional.one_hot(labels, logits.shape[1])) * grad_loss.float()[:, None]).to(logits.dtype)


def rows(x, shape):
    contiguous(x)
    return x.double().reshape(-1, torch.Size(shape).numel())


def kept(x):
    return torch.float64 if x.dtype is torch.float64 else torch.float32


def norm(centred):
    def run(x, shape, *rest):
        *parameters, eps = rest
        a = rows(x, shape)
        mean = a.mean(1) if centred else a.new_zeros(len(a))
        invvar = torch.rsqrt((a - mean[:, None]).square().mean(1) + eps)
        y = (a - mean[:, None]) * invvar[:, None]
        if parameters:
            contiguous(*parameters)
            y = y * parameters[0].double().flatten()
            y = y + parameters[1].double().flatten() if centred else y
        found = (y.to(x.dtype).reshape(x.shape), mean.to(kept(x)), invvar.to(kept(x)))
        return found if centred else (found[0], found[2])

    return run


def norm_gradient(centred):
    def run(dout, *rest):
        mean, rest = (rest[0], rest[1:]) if centred else (None, rest)
        invvar, x, shape, *parameters, eps, memory_efficient = rest
        assert not memory_efficient and invvar.dtype is kept(x)
        a, dy = rows(x, shape), rows(dout, shape)
        normal = (a - (0 if mean is None else mean.double()[:, None])) * invvar.double()[:, None]
        g = dy * parameters[0].double().flatten() if parameters else dy
        inner = g - normal * (g * normal).mean(1, keepdim=True) - (g.mean(1, keepdim=True) if centred else 0)
        dx = (inner * invvar.double()[:, None]).to(x.dtype).reshape(x.shape)
        sums = [(dy * normal).sum(0), dy.sum(0)]
        others = [s.to(p.dtype).reshape(p.shape) for s, p in zip(sums, parameters, strict=False)]
        return (dx, *others) if parameters else dx

    return run


def rotation(backward):
    def run(x, cos, sin, transpose_output):
        contiguous(cos, sin)
        assert not transpose_output and x.ndim == 4 and x.shape[0] == len(cos) and cos.shape == sin.shape
        assert cos.shape[1:3] == (1, 1) and cos.shape[3] % 2 == 0 and cos.shape[3] <= x.shape[3]
        assert cos.dtype is sin.dtype and cos.dtype in (torch.float32, x.dtype)
        half, width = cos.shape[3] // 2, cos.shape[3]
        turn = torch.zeros(len(cos), x.shape[3], x.shape[3], dtype=torch.float64)  # a matrix for each position
        at = torch.arange(x.shape[3])
        turn[:, at, at] = 1
        turn[:, at[:width], at[:width]] = cos[:, 0, 0].double()
        turn[:, at[:half], at[half:width]] = -sin[:, 0, 0, :half].double()
        turn[:, at[half:width], at[:half]] = sin[:, 0, 0, half:].double()
        equation = "sji,sbhj->sbhi" if backward else "sij,sbhj->sbhi"
        return torch.einsum(equation, turn, x.double()).to(x.dtype).contiguous()

    return run


ON_A_GPU = pytest.param(
    "device",
    marks=[pytest.mark.gpu, pytest.mark.skipif(package.missing() is not None, reason=f"{package.missing()}")],
)


@pytest.fixture(params=["stand-in", ON_A_GPU])
def extensions(request, monkeypatch):
    """The extensions: stand-ins on the CPU or, where they are built, themselves on a GPU, the default device then."""
    if request.param == "device":
        with torch.device("cuda"):
            yield
        return
    made = {
        "xentropy_cuda": StandIn(CROSS_ENTROPY, {"forward": forward, "backward": backward}),
        "fused_layer_norm_cuda": StandIn(
            NORMS,
            {name: norm(not name.startswith("rms")) for name in NORMS.forms if "forward" in name}
            | {name: norm_gradient(not name.startswith("rms")) for name in NORMS.forms if "backward" in name},
        ),
        "fused_rotary_positional_embedding": StandIn(
            ROTARY, {"forward_cached": rotation(False), "backward_cached": rotation(True)}
        ),
    }
    monkeypatch.setattr(availability, "extension", lambda library: made[library.module])
    monkeypatch.setattr(Library, "missing", lambda self: None)
    DEVICES[:] = ["cpu"]
    yield
    DEVICES[:] = ["cuda"]


def target(x):
    """Classes of four rows, the second of which is left out."""
    return torch.tensor([3, -100, 31, 0], device=x.device)


def tables(x, width):
    """Cosines and sines of angles that differ in the two halves, which those of rotations do not."""
    angles = torch.arange(len(x) * width, device=x.device).view(len(x), width) / 7
    return angles.cos(), angles.sin()


PROGRAMS = {
    "rotary": lambda x, w: package.rotary(x[:, :, None] * w[:, None, None], *tables(x, 32)),
    "rotary of a part": lambda x, w: package.rotary(x[:, :, None] * w[:, None, None], *tables(x, 12)),
    "rotary, transposed": lambda x, w: package.rotary(
        (x.transpose(0, 1) * w[:2, None])[:, None].transpose(1, 2), *tables(x[:2], 32)
    ),
    "layer norm": lambda x, w: functional.layer_norm(x, (32,), w[0], w[1]),
    "layer norm alone": lambda x, w: functional.layer_norm(x * w[0], (32,)),
    "layer norm of two dimensions": lambda x, w: functional.layer_norm(x, (2, 32), w[:2], w[2:]),
    "rms norm": lambda x, w: functional.rms_norm(x, (32,), w[0], 1e-3),
    "rms norm alone": lambda x, w: functional.rms_norm(x * w[0], (32,), eps=1e-3),
    "rms norm, transposed": lambda x, w: functional.rms_norm(x.transpose(0, 1), (32,), w[0], 1e-3),
    "loss, mean": lambda x, w: functional.cross_entropy(x[:, 0] * w[0], target(x)),
    "loss, sum": lambda x, w: functional.cross_entropy(x[:, 0] * w[0], target(x), reduction="sum"),
    "loss of each row": lambda x, w: functional.cross_entropy(
        x[:, 0] * w[0], target(x).clamp(min=0), reduction="none", ignore_index=31
    ),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_eagers(name, dtype, extensions):
    library = {"loss": availability.CROSS_ENTROPY, "rota": availability.ROTARY}.get(name[:4], availability.NORMS)
    if library.missing() is not None:
        pytest.skip(library.missing())
    function = PROGRAMS[name]
    x, w = torch.randn(4, 2, 32).to(dtype), torch.randn(4, 32).to(dtype)
    mine = [t.clone().requires_grad_() for t in (x, w)]
    truth = [t.double().requires_grad_() for t in (x, w)]
    run = jit(function, executors=[package.executor, "torch"])
    y, expected = run(*mine), function(*truth)
    size = {torch.float32: 1e-5, torch.float16: 8e-3, torch.bfloat16: 6e-2}[dtype]
    assert y.dtype is dtype
    dy = torch.randn_like(y)
    found, wanted = torch.autograd.grad(y, mine, dy), torch.autograd.grad(expected, truth, dy.double())
    assert_close(tuple(t.double() for t in (y, *found)), (expected.detach(), *wanted), rtol=size, atol=size)
    assert "apex" in str(last_traces(run)[-1]) and "apex" in str(last_backward_traces(run)[-1])


LEFT = {
    "smoothing": lambda x: functional.cross_entropy(x, torch.tensor([1, 2]), label_smoothing=0.1),
    "few classes": lambda x: functional.cross_entropy(x[:, :5], torch.tensor([1, 2])),
    "probabilities": lambda x: functional.cross_entropy(x, torch.softmax(x, -1)),
    "a weight without a bias": lambda x: functional.layer_norm(x, (32,), torch.ones(32)),
    "tables of doubles": lambda x: package.rotary(x[:, None, None], *[t.double() for t in tables(x, 32)]),
    "tables with gradients": lambda x: package.rotary(
        x[:, None, None], *[t.requires_grad_() for t in tables(x, 32)]
    ).detach(),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_it_declines_is_left_to_others(name, extensions):
    x = torch.randn(2, 32)
    run = jit(LEFT[name], executors=[package.executor, "torch"])
    assert_close(run(x), LEFT[name](x))
    assert "apex" not in str(last_traces(run)[-1])


def test_it_is_found_by_its_entry_point_and_says_why_it_cannot_run(monkeypatch):
    assert get_executor("apex") is package.executor
    if not any(library.installed() for library in availability.EXTENSIONS):
        assert "APEX_XENTROPY=1) is not installed" in package.missing()
    monkeypatch.setattr(Library, "missing", lambda self: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert package.missing() == "PyTorch sees no CUDA device"


def test_importing_it_imports_no_extension():
    program = "import sys, thunder_executors_apex; sys.exit('xentropy_cuda' in sys.modules or 'apex' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
