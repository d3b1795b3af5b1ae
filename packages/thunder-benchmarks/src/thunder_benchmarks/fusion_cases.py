"""Functions whose kernels are worth fusing, each with what it is called with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

Function = Callable[..., Any]
ROWS = (2048, 1024)
TOKENS = (8, 512)
HEADS = (4, 16, 512, 64)
CLASSES = 32000
IMAGES = (16, 64, 56, 56)
WEIGHTS = 100


@dataclass(frozen=True)
class Case:
    """A function and what it is called with.

    Args:
        function: of tensors.
        shapes: of these; normal random numbers.
        indices: shapes of integers that come after them, each with the number that they are below.
        dtype: of the numbers.
        trains: whether there are gradients to compute.
    """

    function: Function
    shapes: Sequence[tuple[int, ...]]
    indices: Sequence[tuple[tuple[int, ...], int]] = ()
    dtype: torch.dtype = torch.float32
    trains: bool = True

    def inputs(self) -> list[torch.Tensor]:
        """Return what it is called with."""
        numbers = [torch.randn(shape).to(self.dtype) for shape in self.shapes]
        return numbers + [torch.randint(0, below, shape) for shape, below in self.indices]


def chain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Twenty pointwise operations."""
    z = torch.tanh(x * 1.1 + y) * x
    z = torch.relu(torch.sigmoid(z) + y) - 0.5 * x
    z = torch.exp(-z * z) * y + x
    z = torch.sin(z) * torch.cos(z)
    return torch.sqrt(z * z + 1.0)


def gelu_bias_residual(x: torch.Tensor, b: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
    """Bias, gelu and residual."""
    return F.gelu(x + b) + r


def layer_norm_gelu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Layer normalisation and gelu."""
    return F.gelu(F.layer_norm(x, (x.shape[-1],), w, b))


def rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Root-mean-square normalisation, written out."""
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


def softmax(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Scale, bias and softmax, written out."""
    s = x * 0.125 + bias
    e = torch.exp(s - torch.amax(s, -1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def swiglu(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The gate of an MLP."""
    return F.silu(x) * y


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    """Scale and log-softmax."""
    return F.log_softmax(x * 0.5, -1)


def cross_entropy(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Cross entropy over many classes."""
    return F.cross_entropy(x, target)


def log_softmax_nll(x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The same in two steps, with a scale."""
    return F.nll_loss(F.log_softmax(x * 0.5, -1), target)


def rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding of heads."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def dropout_add_layer_norm(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Dropout, residual and layer normalisation."""
    return F.layer_norm(F.dropout(x, 0.1) + r, (x.shape[-1],), w, b)


def batch_norm_relu(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Batch normalisation of images in training, and relu."""
    return F.relu(F.batch_norm(x, None, None, w, b, training=True))


def embedding_scaled(table: torch.Tensor, positions: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Embedding, scaled, with positions."""
    return F.embedding(tokens, table) * 8.0 + positions


def cumulative(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """What comes to each place of a row, weighted."""
    return x.exp().cumsum(-1) * y


def cumulative_columns(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The same down the columns."""
    return x.exp().cumsum(0) * y


def residual(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Arithmetic alone."""
    return (x * y + x).relu()


def float_rms_norm(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Root mean square normalisation as in most models of half precision: computed in ``float32``."""
    wide = x.float()
    return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * w


def adamw(*tensors: torch.Tensor) -> None:
    """A step of AdamW: weights, gradients and both moments of many tensors."""
    for w, g, m, v in zip(*[tensors[i::4] for i in range(4)], strict=True):
        w.mul_(0.9999)
        m.lerp_(g, 0.1)
        v.mul_(0.999).addcmul_(g, g, value=0.001)
        w.addcdiv_(m, v.abs().sqrt().div_(0.0316).add_(1e-8), value=-0.001)


CASES = {
    "chain": Case(chain, (ROWS, ROWS)),
    "gelu_bias_residual": Case(gelu_bias_residual, (ROWS, (1024,), ROWS)),
    "layer_norm_gelu": Case(layer_norm_gelu, (ROWS, (1024,), (1024,))),
    "rms_norm": Case(rms_norm, (ROWS, (1024,))),
    "softmax": Case(softmax, (ROWS, (1024,))),
    "log_softmax": Case(log_softmax, ((128, CLASSES),)),
    "cross_entropy": Case(cross_entropy, ((128, CLASSES),), (((128,), CLASSES),)),
    "log_softmax_nll": Case(log_softmax_nll, ((128, CLASSES),), (((128,), CLASSES),)),
    "swiglu": Case(swiglu, (ROWS, ROWS)),
    "rotary": Case(rotary, (HEADS, HEADS[2:], HEADS[2:])),
    "dropout_add_layer_norm": Case(dropout_add_layer_norm, (ROWS, ROWS, (1024,), (1024,))),
    "batch_norm_relu": Case(batch_norm_relu, (IMAGES, (64,), (64,))),
    "embedding_scaled": Case(embedding_scaled, ((CLASSES, 256), (512, 256)), ((TOKENS, CLASSES),)),
    "adamw": Case(adamw, [(256, 256)] * (4 * WEIGHTS), trains=False),
    "cumulative": Case(cumulative, (ROWS, ROWS)),
    "cumulative_columns": Case(cumulative_columns, (ROWS, ROWS)),
    "residual, bfloat16": Case(residual, (ROWS, ROWS), dtype=torch.bfloat16),
    "float_rms_norm, bfloat16": Case(float_rms_norm, (ROWS, (1024,)), dtype=torch.bfloat16),
    "chain, bfloat16": Case(chain, (ROWS, ROWS), dtype=torch.bfloat16),
    "softmax, bfloat16": Case(softmax, (ROWS, (1024,)), dtype=torch.bfloat16),
    "rms_norm, bfloat16": Case(rms_norm, (ROWS, (1024,)), dtype=torch.bfloat16),
    "layer_norm_gelu, bfloat16": Case(layer_norm_gelu, (ROWS, (1024,), (1024,)), dtype=torch.bfloat16),
    "swiglu, bfloat16": Case(swiglu, (ROWS, ROWS), dtype=torch.bfloat16),
}
