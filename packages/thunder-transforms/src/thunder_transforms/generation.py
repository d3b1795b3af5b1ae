"""Generation with caches that grow: what will be longer at the next step is told to the compiler beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from thunder_frontend import mark_dynamic
from thunder_transforms.layers import Changed, change


class Generates(Changed):
    """A model whose ``generate`` marks what grows from step to step, so that one program serves all steps."""

    def prepare_inputs_for_generation(self, *args: Any, **kwargs: Any) -> Any:
        """Return the inputs of a step, as the model does; what grows of them is marked."""
        inputs = super().prepare_inputs_for_generation(*args, **kwargs)  # type: ignore[misc]
        cache, mask = inputs.get("past_key_values"), inputs.get("attention_mask")
        grown = list(growing(cache))
        for tensor in grown:
            mark_dynamic(tensor, -2)
        if grown and isinstance(mask, torch.Tensor):
            mark_dynamic(mask, -1)
        return inputs


def growing(cache: Any) -> Iterator[torch.Tensor]:
    """Lay out and yield the tensors of a cache that are longer at the next step: none that is allocated beforehand."""
    cache = getattr(cache, "self_attention_cache", cache)  # of a decoder that attends to an encoder, too
    if getattr(cache, "is_compileable", False):
        return
    for layer in getattr(cache, "layers", ()):
        for name in ("keys", "values"):
            tensor = getattr(layer, name, None)
            if isinstance(tensor, torch.Tensor) and tensor.dim() == 4:
                if not tensor.is_contiguous():  # as transformers 4 keeps the prompt's, whose sizes stay fixed
                    tensor = tensor.contiguous()
                    setattr(layer, name, tensor)
                yield tensor


def tell_what_grows(model: torch.nn.Module) -> None:
    """Let a model that generates mark what grows; others stay as they are."""
    if hasattr(model, "prepare_inputs_for_generation") and not isinstance(model, Generates):
        change(model, Generates)
