"""A small GPT, written as its users write it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


@dataclass(frozen=True, slots=True)
class GPTConfig:
    """Sizes of a GPT.

    Args:
        vocabulary: number of different tokens.
        block: longest passage, in tokens.
        layers, heads: of the transformer.
        width: of the residual stream.
        dropout: probability with which activations are dropped in training.
    """

    vocabulary: int
    block: int = 64
    layers: int = 4
    heads: int = 4
    width: int = 128
    dropout: float = 0.0


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.project_in = nn.Linear(config.width, 3 * config.width)
        self.project_out = nn.Linear(config.width, config.width)
        self.heads = config.heads
        self.dropout = config.dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``float[batch, length, width] -> float[batch, length, width]``."""
        batch, length, width = x.shape
        q, k, v = self.project_in(x).split(width, dim=2)
        q, k, v = (t.view(batch, length, self.heads, width // self.heads).transpose(1, 2) for t in (q, k, v))
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True)
        return self.project_out(y.transpose(1, 2).contiguous().view(batch, length, width))  # type: ignore[no-any-return]


class Block(nn.Module):
    """Attention and a two-layer network, each with a normalisation before it and a connection around it."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(config.width)
        self.attention = Attention(config)
        self.before_network = nn.LayerNorm(config.width)
        self.network = nn.Sequential(
            nn.Linear(config.width, 4 * config.width),
            nn.GELU(),
            nn.Linear(4 * config.width, config.width),
            nn.Dropout(config.dropout),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``float[batch, length, width] -> float[batch, length, width]``."""
        x = x + self.attention(self.before_attention(x))
        return x + self.network(self.before_network(x))  # type: ignore[no-any-return]


class GPT(nn.Module):
    """A transformer that predicts the next token."""

    def __init__(self, config: GPTConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocabulary, config.width)
        self.positions = nn.Embedding(config.block, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.normalise = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.apply(_initialise)

    def forward(
        self, tokens: torch.Tensor, targets: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Return the logits and, if there are targets, the loss.

        Args:
            tokens, targets: ``int64[batch, length]``.

        Returns:
            ``float[batch, length, vocabulary]`` and ``float[]`` or ``None``.
        """
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.normalise(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1))


def _initialise(module: nn.Module) -> None:
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
