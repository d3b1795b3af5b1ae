"""Random numbers, drawn by PyTorch's own functions in program order."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

import thunder_lang as lang
from thunder_ir import OpTags, TensorProxy
from thunder_torch.creation import place_of
from thunder_torch.opaque import opaque
from thunder_torch.shape import sizes_of
from thunder_torch.symbol import torchsymbol
from thunder_torch.traits import Trait, state

DRAWS = (OpTags.RANDOM,)
CREATES = (OpTags.RANDOM, OpTags.CREATION, OpTags.CONSTANT_FOR_DERIVATIVE)
state(
    "alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "feature_dropout",
    traits=(Trait.DRAWS, Trait.MAY_VIEW, Trait.SIZES_OF_FIRST),
)  # fmt: skip
state("gumbel_softmax", traits=(Trait.DRAWS,))
state("gru", "lstm", "rnn_relu", "rnn_tanh", traits=(Trait.RECURRENT, Trait.SIZES_ARE_PRODUCTS))
state("_pack_padded_sequence", traits=(Trait.MISTOLD, Trait.SIZES_ARE_PRODUCTS))
state("_pad_packed_sequence", traits=(Trait.READS_MEMORY,))
state("rand", "randn", traits=(Trait.CREATES, Trait.OF_DEFAULT_DTYPE))
state("randint", "randperm", traits=(Trait.CREATES,))
state("rand_like", "randint_like", "randn_like", traits=(Trait.SHAPE_ONLY,))


def dropout_noise(a: torch.Tensor, p: float) -> torch.Tensor:
    """Draw by what dropout multiplies, as PyTorch does: zero with probability ``p``, else ``1 / (1 - p)``."""
    if a.is_cuda and 0 < p < 1:
        return torch.native_dropout(torch.ones_like(a), p, True)[0]
    return torch.empty_like(a).bernoulli_(1 - p).div_(1 - p)


def dropout_mask(a: torch.Tensor, p: float) -> torch.Tensor:
    """Draw which elements dropout keeps on a CPU: those that :func:`dropout_noise` does not make zero."""
    return torch.empty_like(a, dtype=torch.bool).bernoulli_(1 - p)


state(dropout_noise, dropout_mask, traits=(Trait.TOTAL, Trait.SIZES_OF_FIRST))
draw_noise = opaque(dropout_noise, tags=frozenset({OpTags.RANDOM, OpTags.CONSTANT_FOR_DERIVATIVE}))
draw_mask = opaque(dropout_mask, tags=frozenset({OpTags.RANDOM, OpTags.CONSTANT_FOR_DERIVATIVE}))


def drop(a: TensorProxy, p: float, training: bool) -> TensorProxy:
    """Return ``a`` with elements dropped, the rest scaled up."""
    if not training or p == 0:
        return a
    if p == 1:
        return a * lang.zeros_like(a)
    noise: TensorProxy = draw_noise(a, p)
    return a * noise


@torchsymbol(F.dropout, tags=DRAWS)
def dropout(a: TensorProxy, p: float = 0.5, training: bool = True, inplace: bool = False) -> TensorProxy:
    """Zero with probability ``p`` in training, the rest scaled to keep the mean."""
    return drop(a, p, training)


@torchsymbol(torch.dropout, tags=DRAWS, name="torch_dropout")
def torch_dropout(a: TensorProxy, p: float, train: bool) -> TensorProxy:
    """Zero with probability ``p`` in training, the rest scaled to keep the mean."""
    return drop(a, p, train)


def _plain(kwargs: dict[str, Any]) -> bool:
    """Whether neither generator, layout nor pinning is asked for, which only PyTorch gives."""
    return not any(kwargs.get(k) for k in ("generator", "pin_memory", "names")) and kwargs.get("layout") in (
        None,
        torch.strided,
    )


@torchsymbol(torch.rand, tags=CREATES)
def rand(*size: Any, **kwargs: Any) -> Any:
    """Uniform numbers between 0 and 1."""
    dtype, device = place_of(kwargs)
    if not _plain(kwargs) or dtype.is_complex:
        return NotImplemented
    return lang.rand(sizes_of(size, kwargs.get("size")), dtype=dtype, device=device)


@torchsymbol(torch.randn, tags=CREATES)
def randn(*size: Any, **kwargs: Any) -> Any:
    """Numbers of the standard normal distribution."""
    dtype, device = place_of(kwargs)
    if not _plain(kwargs) or dtype.is_complex:
        return NotImplemented
    return lang.randn(sizes_of(size, kwargs.get("size")), dtype=dtype, device=device)


@torchsymbol(torch.rand_like, tags=CREATES)
def rand_like(a: TensorProxy, **kwargs: Any) -> Any:
    """Uniform numbers in the shape of ``a``."""
    dtype, device = place_of(kwargs, a)
    return NotImplemented if not _plain(kwargs) or not dtype.is_floating else lang.rand_like(a, dtype, device)


@torchsymbol(torch.randn_like, tags=CREATES)
def randn_like(a: TensorProxy, **kwargs: Any) -> Any:
    """Numbers of the standard normal distribution in the shape of ``a``."""
    dtype, device = place_of(kwargs, a)
    return NotImplemented if not _plain(kwargs) or not dtype.is_floating else lang.randn_like(a, dtype, device)


@torchsymbol(torch.randint, tags=CREATES)
def randint(*args: Any, **kwargs: Any) -> Any:
    """Integers from ``low`` up to ``high``, which is not included."""
    dtype, device = place_of({"dtype": torch.int64, **kwargs})
    integers = [a for a in args if not isinstance(a, (tuple, list, torch.Size))]
    sizes = [a for a in args if isinstance(a, (tuple, list, torch.Size))]
    size = kwargs.get("size", sizes[0] if sizes else None)
    high = integers[-1] if integers else kwargs.get("high")
    low = integers[0] if len(integers) > 1 else kwargs.get("low", 0)
    if not _plain(kwargs) or not dtype.is_integer or size is None or high is None:
        return NotImplemented
    return lang.randint(low, high, tuple(size), dtype=dtype, device=device)


@torchsymbol(torch.bernoulli, torch.Tensor.bernoulli, tags=DRAWS)
def bernoulli(a: TensorProxy, *args: Any, **kwargs: Any) -> Any:
    """Ones with the probabilities in ``a``."""
    return NotImplemented


@torchsymbol(torch.multinomial, torch.Tensor.multinomial, tags=(*DRAWS, OpTags.CONSTANT_FOR_DERIVATIVE))
def multinomial(a: TensorProxy, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Any:
    """Places drawn with the weights in ``a``."""
    return NotImplemented if generator is not None else lang.multinomial(a, num_samples, replacement)


__all__ = [
    "bernoulli", "draw_mask", "draw_noise", "drop", "dropout", "multinomial", "rand", "rand_like", "randint", "randn",
    "randn_like", "torch_dropout",
]  # fmt: skip
