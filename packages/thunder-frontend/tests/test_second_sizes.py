"""Programs of usual layers for a second size, in which sizes are dynamic, load no SymPy and no compiler of PyTorch's."""

import subprocess
import sys

import pytest

PROGRAM = """
import sys

import torch
from torch import nn
from torch.nn import functional as F

from thunder_frontend import cache_misses, jit

torch.manual_seed(0)


class Rotated(nn.Module):
    def forward(self, x):
        angles = torch.arange(x.shape[1])[:, None].to(x.dtype)
        return x * angles.cos() + torch.cat([-x[..., 2:], x[..., :2]], -1) * angles.sin()


class Compared(nn.Module):
    def forward(self, x):
        wide = F.interpolate(x[:, None], scale_factor=2, mode="bilinear")
        grid = F.affine_grid(torch.eye(2, 3)[None].expand(x.shape[0], 2, 3), list(wide.shape), align_corners=False)
        read = F.grid_sample(wide, grid, align_corners=False).mean((1, 2, 3))
        alike = F.cosine_similarity(x[:, None], x[:, :, None], dim=-1).sum(-1) + torch.cdist(x, x).sum(-1)
        return x / x.norm(dim=-1, keepdim=True) + alike[..., None] + read[:, None, None]


image, sequence = (3, 8, 8), (4,)
MODELS = {
    "perceptron": (nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.1), nn.Linear(8, 2)), sequence, 0),
    "convnet": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Dropout(0.1), nn.Linear(8, 2),
        ),
        image, 0,
    ),
    "encoder": (nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), (2, 0, 4), 1),
    "rotated": (Rotated(), (2, 0, 4), 1),
    "compared": (Compared(), (2, 0, 4), 1),
}
model, shape, dim = MODELS[sys.argv[1]]
compiled = jit(model, cache="auto")
for size in (5, 6, 7):
    given = (size, *shape) if dim == 0 else tuple(size if d == 0 else d for d in shape)
    x = torch.randn(given, requires_grad=True)
    state = torch.get_rng_state()
    found = compiled(x)
    found.sum().backward()
    torch.set_rng_state(state)
    assert torch.allclose(found, model(x), atol=1e-5)
assert cache_misses(compiled) == 2
print(sorted({"sympy", "torch._dynamo", "torch.distributed.tensor"} & set(sys.modules)))
"""


@pytest.mark.parametrize("name", ["perceptron", "convnet", "encoder", "rotated", "compared"])
def test_a_second_size_loads_nothing_of_pytorchs_compilers(name):
    run = subprocess.run([sys.executable, "-c", PROGRAM, name], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "[]\n"), run.stderr
