"""Parts of ``nn.Transformer`` whose Python looks at the values of masks: what a program does in their place."""

from __future__ import annotations

import types

import torch
from torch.nn.modules import transformer
from torch.nn.modules.transformer import TransformerEncoder

ON_NESTED_TENSORS = ("cpu", "cuda", "xpu", "privateuseone")
OF_THE_FIRST_LAYER = (
    "self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight", "self_attn.out_proj.bias",
    "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias", "linear1.weight", "linear1.bias", "linear2.weight",
    "linear2.bias",
)  # fmt: skip


def is_causal_mask(mask: object, is_causal: bool | None = None, size: int | None = None) -> bool:
    """Whether attention may leave out the mask and hide the future itself: only if the caller says so.

    PyTorch looks at the mask's values. Not to know them costs speed at most, for the mask itself is used then.
    """
    return is_causal is True


def encode(
    self: TransformerEncoder,
    src: torch.Tensor,
    mask: torch.Tensor | None = None,
    src_key_padding_mask: torch.Tensor | None = None,
    is_causal: bool | None = None,
) -> torch.Tensor:
    """Run a ``TransformerEncoder``.

    In evaluation PyTorch asks whether all of the padding stands at the ends, leaves it out then, and fills in zeros
    before the last norm. That depends on values; the program computes the padding too, and then chooses.
    """
    if not asks_for_padding(self, src, src_key_padding_mask):
        return FORWARD(self, src, mask, src_key_padding_mask, is_causal)  # type: ignore[no-any-return]
    canonical = torch.nn.functional._canonical_mask(
        mask=src_key_padding_mask,
        mask_name="src_key_padding_mask",
        other_type=torch.nn.functional._none_or_dtype(mask),
        other_name="mask",
        target_type=src.dtype,
    )
    added = torch.nn.functional._canonical_mask(
        mask=mask, mask_name="mask", other_type=None, other_name="", target_type=src.dtype, check_other=False
    )
    output = src
    for layer in self.layers:
        output = layer(output, src_mask=added, is_causal=is_causal is True, src_key_padding_mask=canonical)
    if leaves_out_padding(self, src, mask):
        padded = src_key_padding_mask.to(torch.bool)  # type: ignore[union-attr]
        if self.mask_check:
            padded = padded & (padded[:, 1:] >= padded[:, :-1]).all()
        output = output.masked_fill(padded.unsqueeze(-1), 0.0)
    return output if self.norm is None else self.norm(output)


def asks_for_padding(self: TransformerEncoder, src: torch.Tensor, padding: torch.Tensor | None) -> bool:
    """Whether PyTorch asks where the padding stands."""
    if not (torch.backends.mha.get_fastpath_enabled() and getattr(self, "use_nested_tensor", False)):
        return False
    return not self.layers[0].training and src.dim() == 3 and padding is not None


def leaves_out_padding(self: TransformerEncoder, src: torch.Tensor, mask: torch.Tensor | None) -> bool:
    """Whether PyTorch leaves out the padding if it stands at the ends."""
    if mask is not None or torch.is_autocast_enabled() or src.device.type not in ON_NESTED_TENSORS:
        return False
    if not torch.is_grad_enabled():
        return True
    first = self.layers[0]
    return not (src.requires_grad or any([first.get_parameter(name).requires_grad for name in OF_THE_FIRST_LAYER]))


ORIGINAL_FORWARD, ORIGINAL_QUESTION = TransformerEncoder.forward, transformer._detect_is_causal_mask
FORWARD = types.FunctionType(ORIGINAL_FORWARD.__code__, vars(transformer), "forward", ORIGINAL_FORWARD.__defaults__)
"""A twin of the original, which nothing takes the place of."""
