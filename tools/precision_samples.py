"""Calls of composites that PyTorch's database of operations has no samples of, or none that are hard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]


@dataclass
class Makes:
    """What makes the tensors of samples.

    Args:
        dtype: of them.
        spread: their standard deviation.
    """

    dtype: torch.dtype
    spread: float = 1.0
    generator: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(0))

    def normal(self, *shape: int, mean: float = 0.0, spread: float | None = None) -> torch.Tensor:
        """Return normally distributed numbers."""
        spread = self.spread if spread is None else spread
        return (torch.randn(shape, generator=self.generator) * spread + mean).to(self.dtype)


def own_calls(dtype: torch.dtype) -> Iterator[tuple[str, Call]]:
    """Yield name and call of each sample."""
    for spread in (1.0, 4.0):
        yield from _attention(Makes(dtype, spread))
    yield from _normalisation(Makes(dtype))
    yield from _reductions(Makes(dtype))
    yield from _others(Makes(dtype))


def _attention(makes: Makes) -> Iterator[tuple[str, Call]]:
    attend = F.scaled_dot_product_attention
    for name, lead in (("matrices", (3,)), ("heads", (2, 3))):
        query, key, value = makes.normal(*lead, 24, 16), makes.normal(*lead, 32, 16), makes.normal(*lead, 32, 16)
        seen = torch.rand(24, 32, generator=makes.generator) > 0.3
        bias = makes.normal(24, 32)
        yield f"attention of {name}", (attend, (query, key, value), {})
        yield f"causal attention of {name}", (attend, (query, key, value), {"is_causal": True})
        yield f"masked attention of {name}", (attend, (query, key, value), {"attn_mask": seen})
        yield f"attention of {name} with a bias", (attend, (query, key, value), {"attn_mask": bias})
        yield f"attention of {name} with wider values", (attend, (query, key, makes.normal(*lead, 32, 40)), {})
        yield f"attention of {name} with dropout", (attend, (query, key, value), {"dropout_p": 1e-9})


def _normalisation(makes: Makes) -> Iterator[tuple[str, Call]]:
    weight, bias = makes.normal(64), makes.normal(64)
    for name, mean in (("", 0.0), (" with an offset", 16.0)):
        x, image = makes.normal(8, 64, mean=mean), makes.normal(4, 64, 6, 6, mean=mean)
        yield f"layer_norm{name}", (F.layer_norm, (x, (64,), weight, bias), {})
        yield f"rms_norm{name}", (F.rms_norm, (x, (64,), weight), {"eps": 1e-6})
        yield f"group_norm{name}", (F.group_norm, (image, 8, weight, bias), {})
        yield f"batch_norm{name}", (F.batch_norm, (image, None, None, weight, bias, True), {})
        yield f"instance_norm{name}", (F.instance_norm, (image, None, None, weight, bias), {})
        yield f"torch.layer_norm{name}", (torch.layer_norm, (x, (64,), weight, bias), {})
        yield f"torch.group_norm{name}", (torch.group_norm, (image, 8, weight, bias), {})


def _reductions(makes: Makes) -> Iterator[tuple[str, Call]]:
    for name, mean in (("", 0.0), (" with an offset", 16.0)):
        x = makes.normal(16, 300, mean=mean)
        for function in (torch.sum, torch.mean, torch.var, torch.std, torch.logsumexp, torch.cumsum, torch.linalg.norm):
            options = {"ord": 2} if function is torch.linalg.norm else {}
            yield f"{function.__name__} of many{name}", (function, (x,), {"dim": 1, **options})
        yield f"softmax{name}", (F.softmax, (x, 1), {})
        yield f"log_softmax{name}", (F.log_softmax, (x, 1), {})
        target = torch.arange(16) * 7
        yield f"cross_entropy{name}", (F.cross_entropy, (x, target), {})
        yield f"cosine_similarity{name}", (F.cosine_similarity, (x, makes.normal(16, 300, mean=mean)), {})
        yield f"normalize{name}", (F.normalize, (x,), {})
        truth = torch.rand(16, 300, generator=makes.generator).to(x.dtype)
        yield f"binary cross entropy{name}", (F.binary_cross_entropy_with_logits, (x, truth), {})


def _others(makes: Makes) -> Iterator[tuple[str, Call]]:
    x, image, weight = makes.normal(6, 40), makes.normal(2, 8, 12, 12), makes.normal(16, 8, 3, 3)
    places = torch.arange(6)
    for function in (torch.celu, torch.selu, torch.relu, torch.Tensor.type_as):
        yield f"torch.{function.__name__}", (function, (x, x) if function is torch.Tensor.type_as else (x,), {})
    yield "torch.threshold", (torch.threshold, (x, 0.1, 0.3), {})
    yield "embedding", (torch.embedding, (x, places), {})
    yield "chain_matmul", (torch.chain_matmul, (makes.normal(9, 40), makes.normal(40, 12), makes.normal(12, 5)), {})
    yield "convolution", (torch.convolution, (image, weight, None, (1, 1), (1, 1), (1, 1), False, (0, 0), 1), {})
    yield "polygamma", (torch.Tensor.polygamma, (x.abs() + 0.5, 1), {})
    for dim, pool in ((1, torch.max_pool1d), (2, torch.max_pool2d), (3, torch.max_pool3d)):
        yield f"torch.max_pool{dim}d", (pool, (makes.normal(2, 3, *(8,) * dim), 2), {})


__all__ = ["own_calls"]
