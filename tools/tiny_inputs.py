"""Inputs for models of the transformers library, as their signatures and configurations ask for them.

What an argument is called says what it is: ``RECIPES``. Where a name stands for tensors of several layouts, all of them
are listed, and ``choices`` yields what to try.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from transformers import PretrainedConfig

VOCABULARY, WIDTH, HEADS, LENGTH, BATCH, IMAGE = 99, 32, 4, 10, 2, 32
UNSAID_IMAGE = 2 * IMAGE
"""Where no configuration says it, as that of most convolutional models: five halvings leave more than one place, and so
more than two values for a batch norm, which makes of two nothing but a sign and rounding."""
SPECIAL_TOKENS = {"image_token_id": 90, "image_token_index": 90, "video_token_id": 91, "video_token_index": 91,
                  "audio_token_id": 92, "audio_token_index": 92, "vision_start_token_id": 93,
                  "vision_end_token_id": 94}  # fmt: skip
SOUND, FRAMES, PATCHES = 400, 128, 16


@dataclass(frozen=True)
class Asked:
    """How the inputs of a model are chosen.

    Args:
        names: of the arguments, each with which of its layouts it has.
        images: whether the text holds places for the images.
    """

    names: tuple[tuple[str, int], ...]
    images: bool = False


# --- what a configuration says ---------------------------------------------------------------------------------------


def configs_of(config: PretrainedConfig) -> Iterator[PretrainedConfig]:
    """Yield a configuration and those within it."""
    yield config
    for value in list(vars(config).values()):
        if isinstance(value, PretrainedConfig):
            yield from configs_of(value)


def size_of(config: PretrainedConfig, *names: str, default: Any) -> Any:
    """Return a size that a configuration or one of those within it has: the first of the names that any has."""
    for name in names:
        for each in configs_of(config):
            value = getattr(each, name, None)
            if value is not None:
                return value
    return default


def vision_of(config: PretrainedConfig) -> PretrainedConfig:
    """Return the part of a configuration that is about images."""
    parts = [getattr(config, name, None) for name in ("vision_config", "backbone_config", "vision_tower_config")]
    return next((part for part in parts if isinstance(part, PretrainedConfig)), config)


def vocabulary_of(config: PretrainedConfig) -> int:
    """Return the size of the vocabulary."""
    return int(size_of(config, "vocab_size", "text_vocab_size", default=VOCABULARY))


def ids(config: PretrainedConfig, length: int = LENGTH) -> torch.Tensor:
    """Return ids of tokens, none of them special."""
    return torch.randint(3, max(min(vocabulary_of(config), VOCABULARY) - 10, 4), (BATCH, length))


def image_shape(config: PretrainedConfig) -> tuple[int, int, int]:
    """Return channels, height and width of an image."""
    vision = vision_of(config)
    size = size_of(vision, "image_size", "input_size", "img_size", default=UNSAID_IMAGE)
    size = next(iter(size.values())) if isinstance(size, dict) else size
    height, width = (size, size) if isinstance(size, int) else size[-2:] if len(size) > 1 else size * 2
    return size_of(vision, "num_channels", "in_channels", "in_chans", default=3), height, width


def patch_width(config: PretrainedConfig) -> int:
    """Return how many numbers a patch of an image has, those of all its channels and frames."""
    vision = vision_of(config)
    patch = size_of(vision, "patch_size", default=8)
    patch = patch if isinstance(patch, int) else patch[-1]
    channels = size_of(vision, "in_channels", "num_channels", "in_chans", default=3)
    return channels * patch**2 * size_of(vision, "temporal_patch_size", default=1)


def width_of(config: PretrainedConfig) -> int:
    """Return the width of hidden states."""
    return int(size_of(config, "hidden_size", "d_model", "dim", "n_embd", default=WIDTH))


def past_length(config: PretrainedConfig) -> int:
    """Return how many values of a time series a model looks back on."""
    lags = size_of(config, "lags_sequence", default=[0])
    return int(size_of(config, "context_length", default=64)) + max(lags)


# --- what arguments are ----------------------------------------------------------------------------------------------

Recipe = Callable[[PretrainedConfig], Any]


def _images(config: PretrainedConfig) -> torch.Tensor:
    return torch.randn(BATCH, *image_shape(config))


def _patches(config: PretrainedConfig) -> torch.Tensor:
    return torch.randn(BATCH * PATCHES, patch_width(config))


def _some_patches(config: PretrainedConfig) -> torch.Tensor:
    return torch.randn(BATCH, PATCHES, patch_width(config))


def _several_images(config: PretrainedConfig) -> torch.Tensor:
    return torch.randn(BATCH, 2, *image_shape(config))


def _video(config: PretrainedConfig) -> torch.Tensor:
    frames = size_of(vision_of(config), "num_frames", "frames_per_clip", default=4)
    return torch.randn(BATCH, frames, *image_shape(config))


def _grid(config: PretrainedConfig) -> torch.Tensor:
    return torch.tensor([[1, 4, 4]] * BATCH)


def _sound(config: PretrainedConfig) -> torch.Tensor:
    return torch.randn(BATCH, SOUND)


def _mel_bins(config: PretrainedConfig) -> int:
    names = ("num_mel_bins", "feature_size", "n_mels", "n_mel_bins", "input_feat_size", "mel_dim", "input_dim",
             "feature_projection_input_dim", "model_in_dim")  # fmt: skip
    return int(size_of(config, *names, default=16))


def _frames(config: PretrainedConfig) -> int:
    positions = size_of(config, "max_source_positions", default=FRAMES // 2)
    return int(size_of(config, "max_length", "spec_size", default=2 * positions))


def _series(config: PretrainedConfig) -> torch.Tensor:
    length, channels = past_length(config), size_of(config, "num_input_channels", "input_size", default=1)
    return torch.randn(BATCH, length, channels) if channels > 1 else torch.randn(BATCH, length)


def _ones_like(name: str) -> Recipe:
    return lambda config: torch.ones(RECIPES[name][0](config).shape[:2], dtype=torch.int64)


RECIPES: dict[str, tuple[Recipe, ...]] = {
    "input_ids": (ids,),
    "decoder_input_ids": (
        ids,
        lambda c: torch.randint(3, 50, (BATCH, LENGTH, size_of(c, "num_codebooks", "num_channels", default=4))),
    ),
    "attention_mask": (lambda c: torch.ones(BATCH, LENGTH, dtype=torch.int64),),
    "bbox": (lambda c: torch.tensor([1, 2, 9, 12]).expand(BATCH, LENGTH, 4).contiguous(),),
    "pixel_values": (_images, _patches, _some_patches, _several_images, _video),
    "pixel_values_videos": (_video, lambda c: _video(c).transpose(1, 2).contiguous()),
    "flattened_patches": (lambda c: torch.rand(BATCH, PATCHES, patch_width(c) + 2),),
    "pixel_attention_mask": (lambda c: torch.ones(BATCH, PATCHES, dtype=torch.int64),),
    "pixel_mask": (lambda c: torch.ones(BATCH, *image_shape(c)[1:], dtype=torch.int64),),
    "spatial_shapes": (lambda c: torch.tensor([[4, 4]] * BATCH),),
    "prompt_pixel_values": (_images,),
    "prompt_masks": (_images,),
    "image": (_images,),
    "grid_thw": (_grid,),
    "image_grid_thw": (_grid,),
    "image_sizes": (lambda c: torch.tensor([image_shape(c)[1:]] * BATCH),),
    "pixel_position_ids": (
        lambda c: (
            torch.stack(torch.meshgrid(torch.arange(4), torch.arange(4), indexing="xy"), -1)
            .reshape(1, PATCHES, 2)
            .repeat(BATCH, 1, 1)
        ),
    ),
    "bool_masked_pos": (lambda c: (torch.arange(_patch_count(c)) % 2 == 0).expand(BATCH, -1).contiguous(),),
    "aspect_ratio_ids": (lambda c: torch.ones(BATCH, 1, dtype=torch.int64),),
    "aspect_ratio_mask": (lambda c: torch.ones(BATCH, 1, 4, dtype=torch.int64),),
    "task_inputs": (lambda c: torch.randint(3, 80, (BATCH, size_of(c, "task_seq_len", default=LENGTH))),),
    "qformer_input_ids": (ids,),
    "classes_input_ids": (ids,),
    "classes_attention_mask": (lambda c: torch.ones(BATCH, LENGTH, dtype=torch.int64),),
    "classes_structure": (lambda c: torch.ones(BATCH, dtype=torch.int64),),
    "tasks_input_ids": (ids,),
    "tasks_attention_mask": (lambda c: torch.ones(BATCH, LENGTH, dtype=torch.int64),),
    "input_values": (
        _sound,
        lambda c: torch.randn(BATCH, 1, 10 * SOUND),
        lambda c: torch.randn(BATCH, _frames(c), _mel_bins(c)),
        lambda c: torch.randn(BATCH, 4 * SOUND),
        ids,
    ),
    "input_features": (
        lambda c: torch.randn(BATCH, _mel_bins(c), _frames(c)),
        lambda c: torch.randn(BATCH, FRAMES, _mel_bins(c)),
        lambda c: torch.randn(BATCH, 1, _frames(c), _mel_bins(c)),
        lambda c: torch.randn(_mel_bins(c), FRAMES),
    ),
    "input_features_mask": (
        lambda c: torch.ones(BATCH, _frames(c), dtype=torch.int64),
        lambda c: torch.ones(BATCH, FRAMES, dtype=torch.int64),
    ),
    "audio_mel": (lambda c: torch.randn(BATCH, FRAMES, _mel_bins(c)),),
    "audio_mel_mask": (lambda c: torch.zeros(BATCH, FRAMES, dtype=torch.bool),),
    "spectrogram": (lambda c: torch.randn(BATCH, 8, _mel_bins(c)), lambda c: torch.randn(BATCH, _mel_bins(c), 8)),
    "mel_spectrogram": (lambda c: torch.randn(BATCH, _mel_bins(c), 8),),
    "hidden_states": (_patches, lambda c: torch.randn(BATCH, LENGTH, width_of(c))),
    "inputs_embeds": (lambda c: torch.randn(BATCH, LENGTH, width_of(c)),),
    "encoder_hidden_states": (lambda c: torch.randn(BATCH, LENGTH, width_of(c)),),
    "query_embeds": (lambda c: torch.randn(BATCH, 4, width_of(c)),),
    "latents": (lambda c: torch.randn(BATCH, width_of(c), LENGTH),),
    "inputs": (ids, lambda c: torch.randn(BATCH, LENGTH, size_of(c, "d_model", default=WIDTH))),
    "past_values": (_series, lambda c: torch.randn(BATCH, past_length(c), 1)),
    "past_observed_mask": (lambda c: torch.ones_like(_series(c)),),
    "past_time_features": (lambda c: torch.randn(BATCH, past_length(c), size_of(c, "num_time_features", default=0)),),
    "past_values_padding": (lambda c: torch.zeros(BATCH, past_length(c), dtype=torch.int64),),
    "future_values": (lambda c: torch.randn(BATCH, size_of(c, "prediction_length", default=8)),),
    "future_time_features": (
        lambda c: torch.randn(
            BATCH, size_of(c, "prediction_length", default=8), size_of(c, "num_time_features", default=0)
        ),
    ),
    "freq": (lambda c: torch.zeros(BATCH, 1, dtype=torch.int64),),
    "states": (lambda c: torch.randn(BATCH, LENGTH, size_of(c, "state_dim", default=17)),),
    "actions": (lambda c: torch.randn(BATCH, LENGTH, size_of(c, "act_dim", default=4)),),
    "rewards": (lambda c: torch.randn(BATCH, LENGTH, 1),),
    "returns_to_go": (lambda c: torch.randn(BATCH, LENGTH, 1),),
    "timesteps": (lambda c: torch.arange(LENGTH).expand(BATCH, -1).contiguous(),),
}
"""What an argument may be, by its name."""


def _patch_count(config: PretrainedConfig) -> int:
    _, height, width = image_shape(config)
    patch = size_of(vision_of(config), "patch_size", default=8)
    patch = patch if isinstance(patch, int) else patch[-1]
    frames = size_of(config, "num_frames", default=1) // size_of(config, "tubelet_size", default=1)
    return max(frames, 1) * (height // patch) * (width // patch)


COMPANIONS = {
    "states": ("actions", "rewards", "returns_to_go", "timesteps", "attention_mask"),
    "past_values": ("future_values", "future_time_features"),
    "input_features": ("input_ids", "decoder_input_ids", "input_features_mask", "attention_mask"),
    "input_values": ("input_ids", "decoder_input_ids"),
    "pixel_values": ("input_ids", "decoder_input_ids", "image_grid_thw", "spatial_shapes", "pixel_attention_mask"),
    "flattened_patches": ("decoder_input_ids",),
    "pixel_values_videos": ("input_ids",),
    "input_ids": ("pixel_values", "bbox", "input_features", "input_values", "pixel_values_videos"),
}
"""What may have to come with an argument, although it has a default."""

ABOUT_IMAGES = ("image_grid_thw", "image_sizes", "spatial_shapes", "pixel_attention_mask")
"""What tells more about pixels; taken where the signature has it."""


# --- what is tried ---------------------------------------------------------------------------------------------------


def choices(model: torch.nn.Module) -> Iterator[Asked]:
    """Yield what may be the inputs of a model, the likeliest first."""
    accepted = _accepted(model)
    required = [name for name, parameter in accepted.items() if parameter.default is parameter.empty]
    main = getattr(model, "main_input_name", "input_ids")
    main = [main] if isinstance(main, str) else list(main)
    main = [name for name in main if name in RECIPES and (name in accepted or not accepted)] or ["input_ids"]
    if getattr(model.config, "is_encoder_decoder", False) and "decoder_input_ids" in accepted:
        main.append("decoder_input_ids")
    least = list(dict.fromkeys([*main, *(name for name in required if name in RECIPES)]))
    pixels = [name for name in ("pixel_values", *ABOUT_IMAGES) if name in accepted]
    marked = _image_token(model.config) is not None
    if marked and "input_ids" in least and "pixel_values" in accepted:
        for names in ([*least, *pixels], [*least, "pixel_values"]):
            yield from (Asked(each.names, images=True) for each in _layouts(dict.fromkeys(names)))
    if {"input_ids", "pixel_values"} <= set(accepted) and not marked:
        yield from _layouts(dict.fromkeys([*least, "input_ids", "pixel_values"]))
    yield from _layouts(dict.fromkeys(least))
    others = [n for name in least for n in COMPANIONS.get(name, ()) if n in accepted and n not in least]
    for other in dict.fromkeys(others):
        yield from _layouts(dict.fromkeys([*least, other]))
    if len(others) > 1:
        yield from _layouts(dict.fromkeys([*least, *others]))


def _image_token(config: PretrainedConfig) -> Any:
    return size_of(config, "image_token_id", "image_token_index", default=None)


def _accepted(model: torch.nn.Module) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(model.forward).parameters
    return {n: p for n, p in parameters.items() if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)}


def _layouts(names: Any) -> Iterator[Asked]:
    for picks in product(*(range(len(RECIPES[name])) for name in names)):
        yield Asked(tuple(zip(names, picks, strict=True)))


def inputs_of(model: torch.nn.Module, asked: Asked, labels: bool = False) -> dict[str, Any]:
    """Return keyword arguments for a model.

    Args:
        model: a model.
        asked: how they are chosen.
        labels: whether to give labels, where it is known what they are.
    """
    torch.manual_seed(4321)
    inputs = {name: RECIPES[name][pick](model.config) for name, pick in asked.names}
    if asked.images:
        inputs["input_ids"] = _with_places(model, inputs)
        marked = (inputs["input_ids"] == _image_token(model.config)).long()
        inputs.update({name: marked for name in ("mm_token_type_ids", "token_type_ids") if name in _accepted(model)})
    if labels and "labels" in _accepted(model):
        inputs.update(_labels(model, inputs))
    return inputs


def _with_places(model: torch.nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
    """Return ids with as many places for an image as it has features."""
    about = {name: value for name, value in inputs.items() if name not in ("input_ids", "decoder_input_ids")}
    find = next(m for m in (model, getattr(model, "model", None)) if hasattr(m, "get_image_features"))
    was = model.training
    with torch.no_grad():
        found = find.eval().get_image_features(**about)
    model.train(was)
    found = getattr(found, "pooler_output", None) if not isinstance(found, (torch.Tensor, list, tuple)) else found
    parts = found if isinstance(found, (list, tuple)) else [found]
    count = sum(part.numel() // part.shape[-1] for part in parts)
    places = torch.full((BATCH, count // BATCH), _image_token(model.config))
    written = ids(model.config)
    return torch.cat([written[:, :4], places, written[:, 4:]], 1)


def _labels(model: torch.nn.Module, inputs: dict[str, Any]) -> dict[str, Any]:
    """Return labels where the model's own loss takes ids, or a class for each image."""
    name = type(model).__name__
    if "ForImageClassification" in name:
        return {"labels": torch.randint(0, max(model.config.num_labels, 2), (BATCH,))}
    vocabulary = vocabulary_of(model.config)
    if "decoder_input_ids" in inputs:
        return {"labels": torch.randint(3, vocabulary - 10, inputs["decoder_input_ids"].shape)}
    if "input_ids" in inputs and any(part in name for part in ("CausalLM", "LMHead", "MaskedLM")):
        return {"labels": torch.randint(3, vocabulary - 10, inputs["input_ids"].shape)}
    return {}


__all__ = ["BATCH", "LENGTH", "RECIPES", "VOCABULARY", "Asked", "choices", "inputs_of", "size_of"]
