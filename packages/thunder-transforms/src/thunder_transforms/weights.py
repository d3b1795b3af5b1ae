"""Formats of quantised weights: a matrix as small integers with a scale for each row or each group in a row."""

from __future__ import annotations

import statistics
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

import torch

Parts = dict[str, torch.Tensor]


class Format(ABC):
    """How a weight is kept."""

    name: str
    """What users call it."""

    @abstractmethod
    def quantised(self, weight: torch.Tensor) -> Parts:
        """Return what is kept of a weight of shape ``(rows, columns)``: tensors by name."""

    @abstractmethod
    def restored(self, parts: Parts, columns: int, dtype: torch.dtype) -> torch.Tensor:
        """Return the weight that is computed with, of shape ``(rows, columns)`` and ``dtype``."""

    def product(
        self, x: torch.Tensor, parts: Parts, bias: torch.Tensor | None, columns: int, dtype: torch.dtype
    ) -> torch.Tensor:
        """Return what a linear layer does: of shape ``(*, columns)``, ``(*, rows)``."""
        return torch.nn.functional.linear(x, self.restored(parts, columns, dtype), bias)

    def takes(self, weight: torch.Tensor) -> bool:
        """Whether a weight can be kept so."""
        return True

    def reads(self, parts: Parts) -> bool:
        """Whether this machine can compute with parts that were loaded, maybe from another one."""
        return True

    def __reduce__(self) -> Any:
        return format_called, (self.name,)  # as what is installed where it is loaded may differ


@dataclass(frozen=True)
class Int8(Format):
    """Eight bits a weight, symmetric, with one scale a row: an error of at most 1/254 of the row's largest weight."""

    name: str = "int8"

    def quantised(self, weight: torch.Tensor) -> Parts:
        scale = _nonzero(weight.abs().amax(dim=1, keepdim=True).float() / 127)
        return {"codes": (weight.float() / scale).round().to(torch.int8), "scale": scale}

    def restored(self, parts: Parts, columns: int, dtype: torch.dtype) -> torch.Tensor:
        return (parts["codes"].to(torch.float32) * parts["scale"]).to(dtype)


@dataclass(frozen=True)
class FourBits(Format):
    """Four bits a weight, two of them in a byte: the place in a table of 16 levels, times the scale of the group.

    Args:
        name: of the format.
        levels: 16 numbers in ascending order, between -1 and 1.
        group: how many weights of a row share a scale, which is the largest of them.
    """

    name: str
    levels: tuple[float, ...]
    group: int = 64

    def quantised(self, weight: torch.Tensor) -> Parts:
        rows, columns = weight.shape
        padded = torch.nn.functional.pad(weight.float(), (0, -columns % self.group)).reshape(rows, -1, self.group)
        scale = _nonzero(padded.abs().amax(dim=2, keepdim=True))
        levels = torch.tensor(self.levels, device=weight.device)
        between = (levels[1:] + levels[:-1]) / 2
        codes = torch.bucketize(padded / scale, between).to(torch.uint8).reshape(rows, -1)
        return {"codes": codes[:, 0::2] * 16 + codes[:, 1::2], "scale": scale.squeeze(2)}

    def restored(self, parts: Parts, columns: int, dtype: torch.dtype) -> torch.Tensor:
        codes, scale = parts["codes"], parts["scale"]
        rows = codes.shape[0]
        places = torch.stack([codes >> 4, codes & 15], dim=2).reshape(rows, -1).long()
        levels = torch.tensor(self.levels, device=codes.device)[places].reshape(rows, -1, self.group)
        return (levels * scale.unsqueeze(2)).reshape(rows, -1)[:, :columns].to(dtype)


@dataclass(frozen=True)
class BitsAndBytes(FourBits):
    """The same, restored by a kernel of bitsandbytes, which keeps what it quantises to NF4 bit for bit as we do.

    Args:
        kernel: the operator ``bitsandbytes::dequantize_4bit``. It knows no groups that end with a row, and no float64.
    """

    kernel: Callable[..., torch.Tensor] = field(kw_only=True)

    def restored(self, parts: Parts, columns: int, dtype: torch.dtype) -> torch.Tensor:
        if columns % self.group or dtype not in (torch.float32, torch.float16, torch.bfloat16):
            return super().restored(parts, columns, dtype)
        codes, scale = parts["codes"], parts["scale"]
        return self.kernel(codes.reshape(-1, 1), scale.reshape(-1), self.group, "nf4", (codes.shape[0], columns), dtype)


@dataclass(frozen=True)
class TorchAO(Format):
    """Four bits a weight as torchao chooses and packs them on CPUs, multiplied as they are by a kernel of PyTorch.

    A group of a row has a scale and a zero; a code stands for ``(code - 8) * scale + zero``. The kernel knows no
    derivative: where one is asked for, or under autocast, weights are restored. How codes are packed depends on the
    processor, so that a sample of it is kept beside them.

    Args:
        quantise: ``Int4OpaqueTensor.from_hp`` of torchao.
        group: how many weights of a row share a scale and a zero.
    """

    quantise: Callable[[torch.Tensor, list[int]], Any]
    name: str = "torchao-int4"
    group: int = 64

    def takes(self, weight: torch.Tensor) -> bool:
        rows, columns = weight.shape
        small = weight.dtype in (torch.bfloat16, torch.float16)  # in float32 the kernel is slower than a product
        return weight.device.type == "cpu" and small and rows % 16 == 0 and columns % self.group == 0

    def quantised(self, weight: torch.Tensor) -> Parts:
        kept = self.quantise(weight, [1, self.group])
        return {"codes": kept.qdata, "scale": kept.scale_and_zero, "layout": packed_sample()}

    def restored(self, parts: Parts, columns: int, dtype: torch.dtype) -> torch.Tensor:
        scale, zero = parts["scale"].transpose(0, 1).float().unbind(2)
        codes = unpacked(parts["codes"], columns).reshape(*scale.shape, self.group).float() - 8
        return (codes * scale.unsqueeze(2) + zero.unsqueeze(2)).reshape(-1, columns).to(dtype)

    def product(
        self, x: torch.Tensor, parts: Parts, bias: torch.Tensor | None, columns: int, dtype: torch.dtype
    ) -> torch.Tensor:
        differentiated = x.requires_grad and torch.is_grad_enabled()
        if differentiated or x.dtype != dtype or torch.is_autocast_enabled("cpu") or x.device.type != "cpu":
            return super().product(x, parts, bias, columns, dtype)
        flat = x.reshape(-1, columns).contiguous()
        product = torch.ops.aten._weight_int4pack_mm_for_cpu(flat, parts["codes"], self.group, parts["scale"])
        shaped: torch.Tensor = product.reshape(*x.shape[:-1], product.shape[1])
        return shaped if bias is None else shaped + bias

    def reads(self, parts: Parts) -> bool:
        return "layout" not in parts or torch.equal(parts["layout"].cpu(), packed_sample())


def packed(codes: torch.Tensor) -> torch.Tensor:
    """Return int32 codes of shape ``(rows, columns)`` as the kernel of this processor reads them, two in a byte."""
    found: torch.Tensor = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes, 1)
    return found


def packed_sample() -> torch.Tensor:
    """Return codes that this processor has packed: 64 rows, as the largest block of any."""
    return packed((torch.arange(128, dtype=torch.int32) * 5 // 3 % 16).reshape(64, 2))


def halves(codes: torch.Tensor) -> torch.Tensor:
    """Return the codes in a tensor of bytes, in a row."""
    return torch.stack([codes >> 4, codes & 15], dim=-1).reshape(-1)


def unpacked(codes: torch.Tensor, columns: int) -> torch.Tensor:
    """Return codes in the order that they had before they were packed; packing itself tells where it puts each."""
    found = halves(codes)
    places = torch.arange(found.numel(), dtype=torch.int32).reshape(-1, columns)
    order = torch.zeros(found.numel(), dtype=torch.int64)
    for shift in range(0, max(found.numel() - 1, 1).bit_length(), 4):
        order = order + (halves(packed(places >> shift & 15)).long() << shift)
    return torch.zeros_like(found).scatter(0, order.to(found.device), found)


def _nonzero(scale: torch.Tensor) -> torch.Tensor:
    return torch.where(scale == 0, torch.ones_like(scale), scale)


def normal_levels() -> tuple[float, ...]:
    """Return the 16 levels of NF4: quantiles of the normal distribution, zero among them, scaled to -1 ... 1.

    Eight levels above zero and seven below, each at the middle of a share of equal probability, the outermost at
    the probability that makes the two sides meet their ends: ``1 - (1/32 + 1/30) / 2``.
    """
    normal = statistics.NormalDist()
    end = 1 - (1 / 32 + 1 / 30) / 2
    above = [normal.inv_cdf(0.5 + (end - 0.5) * k / 8) for k in range(1, 9)]
    below = [-normal.inv_cdf(0.5 + (end - 0.5) * k / 7) for k in range(7, 0, -1)]
    return tuple([level / above[-1] for level in (*below, 0.0, *above)])


INT8 = Int8()
INT4 = FourBits("int4", tuple([k / 8 if k < 0 else k / 7 for k in range(-8, 8)]))
NF4 = FourBits("nf4", normal_levels())
FORMATS: dict[str, Format] = {found.name: found for found in (INT8, INT4, NF4)}


def torchao_format() -> TorchAO:
    """Return the format that torchao quantises to.

    Raises:
        RuntimeError: torchao is not there, or has not what is needed of it.
    """
    try:
        library = import_module("torchao.prototype.quantization.int4")
    except ImportError as error:
        raise RuntimeError(
            f'{TorchAO.name!r} needs torchao 0.18 or newer ({error}): pip install torchao; "nf4" needs no library, and '
            "is faster where bitsandbytes is installed"
        ) from error
    return TorchAO(library.Int4OpaqueTensor.from_hp)


def format_called(name: str) -> Format:
    """Return a format by its name; ``"nf4"`` with the kernel of bitsandbytes, where that is installed.

    Raises:
        ValueError: there is no such format.
        RuntimeError: it needs a library that is not there.
    """
    if name == TorchAO.name:
        return torchao_format()
    if name not in FORMATS:
        raise ValueError(f"format={name!r} is none of {', '.join((*FORMATS, TorchAO.name))}")
    if name != NF4.name:
        return FORMATS[name]
    try:
        import_module("bitsandbytes")
    except ImportError:
        return NF4
    return BitsAndBytes(NF4.name, NF4.levels, NF4.group, kernel=torch.ops.bitsandbytes.dequantize_4bit.default)
