"""``import thunder`` and a first call load none of PyTorch's compilers, which take longer than all of Thunder."""

import subprocess
import sys

import pytest

HEAVY = (
    "functorch.compile", "networkx", "pandas", "scipy", "sympy",
    "torch._decomp.decompositions_for_jvp", "torch._dynamo", "torch._export",
    "torch._functorch.aot_autograd", "torch._inductor", "torch.distributed.fsdp", "torch.distributed.tensor",
    "torch.fx.experimental.symbolic_shapes", "torch.onnx._internal", "triton",
)  # fmt: skip
FIRST_CALL = """
def program(x, w, b):
    return torch.tanh(x @ w + b).sum()
torch.manual_seed(0)
x, w, b = torch.randn(3, 4), torch.randn(4, 5, requires_grad=True), torch.randn(5, requires_grad=True)
compiled = thunder.jit(program)
for _ in range(3):
    compiled(x, w, b).backward()
"""
FIRST_CALL_OF_A_MODEL = """
from torch import nn
from torch.nn import functional as F
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(16, 8), nn.Embedding(4, 8)
        self.norm, self.heads, self.out = nn.LayerNorm(8), nn.Linear(8, 24), nn.Linear(8, 16)
    def forward(self, x, targets):
        batch, length = x.shape
        x = self.tokens(x) + self.places(torch.arange(length, device=x.device))
        q, k, v = [t.view(batch, length, 2, 4).transpose(1, 2) for t in self.heads(self.norm(x)).split(8, dim=2)]
        turned = torch.cat([-k[..., 2:], k[..., :2]], -1) * torch.arange(length).float().cos()[:, None]
        attended = F.scaled_dot_product_attention(q, turned, v, is_causal=True)
        x = x + attended.transpose(1, 2).contiguous().view(batch, length, 8)
        logits = self.out(F.gelu(x.softmax(-1)))
        return F.cross_entropy(logits.view(-1, 16), targets.reshape(-1))
compiled = thunder.jit(Model())
for _ in range(3):
    compiled(torch.zeros(2, 4, dtype=torch.long), torch.ones(2, 4, dtype=torch.long)).backward()
"""


MANY_KINDS = """
import torch.nn.functional as F
def program(x, w, target):
    h = F.dropout(x @ w, 0.5)
    h = h * torch.rsqrt((h * h).mean(-1, keepdim=True) + 1e-5)
    first, second = h.chunk(2, -1)
    h = F.layer_norm(torch.cat((-second, first), -1).bfloat16().float(), (4,))
    return F.cross_entropy(h.cumsum(0), target)
x, w, target = torch.randn(3, 4), torch.randn(4, 4, requires_grad=True), torch.tensor([0, 3, 1])
compiled = thunder.jit(program)
for _ in range(3):
    compiled(x, w, target).backward()
"""
FOR_GPUS = (
    "apex", "cudnn", "nvfuser_direct", "thunder_executors_apex", "thunder_executors_cudnn", "thunder_executors_nvfuser",
    "thunder_executors_transformer_engine", "thunder_executors_triton", "thunder_transforms.cudagraphs",
    "transformer_engine",
)  # fmt: skip
"""What is imported only where somebody names it."""


@pytest.mark.parametrize(
    "then",
    ["", FIRST_CALL, FIRST_CALL_OF_A_MODEL],
    ids=["import", "first call and backward", "first call and backward of a model"],
)
def test_loads_none_of_pytorchs_compilers(then):
    assert not {*HEAVY, *FOR_GPUS} & loaded_by(then)


def loaded_by(then):
    """Return the modules that the import, and what comes then, load in a fresh process."""
    program = (
        f"import sys, torch\nbefore = set(sys.modules)\nimport thunder\n{then}\nprint(*(set(sys.modules) - before))"
    )
    run = subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, capture_output=True, text=True)
    return set(run.stdout.split())


def test_kernels_in_python_that_tell_metadata_do_not_load_dynamo():
    assert "torch._dynamo" not in loaded_by(MANY_KINDS)
