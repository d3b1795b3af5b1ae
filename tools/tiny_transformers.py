"""Tiny models of the transformers library for any of its model types: configurations made small, weights random.

Nothing is downloaded. What a configuration calls its sizes is looked up in one table; the few types whose sizes depend
on each other in ways of their own are listed below it. Where the small sizes do not fit each other, gentler ways of
making a model small are tried (``WAYS``), and other heads, until eager takes one: ``tiny_case``.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from dataclasses import dataclass
from typing import Any

import tiny_inputs
import torch
import transformers
from tiny_inputs import HEADS, IMAGE, SPECIAL_TOKENS, VOCABULARY, WIDTH
from transformers import PretrainedConfig, PreTrainedModel
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

COUNTS: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "text_vocab_size", "vocab_size_per_layer_input",
                    "encoder_hash_byte_group_vocab"), VOCABULARY),
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
         "num_encoder_layers", "num_decoder_layers", "num_hidden_groups", "vision_layers", "text_layers",
         "speech_encoder_layers", "t2u_encoder_layers", "t2u_decoder_layers", "depth"), 2),
    **dict.fromkeys(
        ("max_position_embeddings", "n_positions", "max_seq_len", "max_seq_length", "max_source_positions",
         "max_target_positions", "context_length"), 64),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"), 4),
    **dict.fromkeys(("num_experts_per_tok", "num_experts_per_token", "moe_topk", "moe_k", "top_k_experts"), 2),
    "num_sparse_encoder_layers": 1, "num_sparse_decoder_layers": 1,
    "sliding_window": 6, "num_queries": 5, "num_kv_shared_layers": 0,
}  # fmt: skip
"""What a configuration calls how many there are of something, and how many there are here."""

SIZES: dict[str, Any] = {
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "word_embed_proj_dim", "embedding_size", "emb_dim",
         "projection_dim", "encoder_hidden_size", "attention_hidden_size", "pooler_output_size", "decoder_hidden_size",
         "attention_dim", "classifier_proj_size", "bottleneck_size", "output_hidden_size", "out_hidden_size",
         "text_hidden_size", "fusion_hidden_size", "pooler_hidden_size", "cross_hidden_size", "backbone_hidden_size",
         "projector_hidden_size", "hidden_size_global"), WIDTH),
    **dict.fromkeys(
        ("intermediate_size", "d_ff", "n_inner", "hidden_dim", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim",
         "ffn_hidden_size", "d_inner", "moe_intermediate_size", "intermediate_size_mlp", "feed_forward_hidden_size",
         "shared_expert_intermediate_size", "block_ff_dim", "mlp_dim", "shared_intermediate_size"), 2 * WIDTH),
    **dict.fromkeys(
        ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
         "decoder_attention_heads"), HEADS),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_dim", "global_head_dim"), WIDTH // HEADS),
    "image_size": IMAGE, "patch_size": 8, "num_mel_bins": 16, "local_attention": 8, "num_query_tokens": 4,
    "image_grid_pinpoints": ([IMAGE, IMAGE],), "index_head_dim": 8, "index_n_heads": 2, "index_topk": 8,
    "state_size": 4, "time_step_rank": 4, "rotary_dim": 4, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 3), "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
    "num_codevectors_per_group": 8, "codevector_dim": 16, "proj_codevector_dim": 16, "mm_tokens_per_image": 4,
    "num_feat_extract_layers": 3, "relative_attention_num_buckets": 8, "rotary_ndims": 4, "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "q_lora_rank": 16, "kv_lora_rank": 16, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "hidden_size_per_layer_input": 8, "n_groups": 1, "mamba_n_heads": 4, "mamba_d_head": 16,
}  # fmt: skip
"""What a configuration calls its sizes, and how large they are here. A list keeps its length."""

HEAD_COUNTS = (
    "num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads", "decoder_attention_heads",
    "num_key_value_heads", "num_kv_heads",
)  # fmt: skip

FROM_TIMM = ("use_timm_backbone", "use_pretrained_backbone")
"""Switches for what is taken from another library."""

TINY_BACKBONE = {
    "model_type": "resnet", "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "embedding_size": 8,
    "out_features": ["stage4"],
}  # fmt: skip
"""What stands in for a backbone that another library has: the one thing in which a model is not the default."""
LAST_STAGES = {
    "backbone_config": {
        **TINY_BACKBONE, "model_type": "rt_detr_resnet", "layer_type": "bottleneck", "downsample_in_bottleneck": False,
        "out_features": ["stage2", "stage3", "stage4"],
    },
    "encoder_in_channels": [16, 16, 32], "decoder_in_channels": [32, 32, 32], "encoder_hidden_dim": 32,
}  # fmt: skip
"""Sizes of models that look at what the last stages of their backbone find."""
PATCHES = {
    "model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "image_size": IMAGE,
    "patch_size": 8, "out_features": ["stage1", "stage2", "stage3", "stage4"], "reshape_hidden_states": False,
    "apply_layernorm": True,
}  # fmt: skip
"""A backbone for models that look at patches."""
ALL_STAGES = {**TINY_BACKBONE, "out_features": ["stage1", "stage2", "stage3", "stage4"]}
SWIN = {
    "model_type": "swin", "embed_dim": 8, "depths": [1, 1, 1, 1], "num_heads": [1, 2, 4, 8], "window_size": 4,
    "patch_size": 4, "image_size": 64, "out_features": ["stage1", "stage2", "stage3", "stage4"],
}  # fmt: skip
"""Sizes of a backbone for models that look at what each of its stages finds."""

SPECIAL: dict[str, dict[str, Any]] = {
    "align_vision_model": {"width_coefficient": 0.5, "depth_coefficient": 0.5, "image_size": 64},
    "convnext": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "convnextv2": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "funnel": {"block_sizes": [1, 1]},
    "layoutlm": {"max_2d_position_embeddings": 64},
    "mobilevit": {"hidden_sizes": [16, 16, 32], "neck_hidden_sizes": [8, 8, 16, 16, 16, 16, 32],
                  "patch_size": 2, "image_size": 64},
    "mobilevitv2": {"image_size": 64, "patch_size": 2}, "mamba": {"conv_kernel": 4, "intermediate_size": 64},
    "mamba2": {"conv_kernel": 4, "num_heads": 8, "head_dim": 8, "n_groups": 1, "chunk_size": 4},
    "resnet": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "embedding_size": 8},
    "regnet": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "embedding_size": 8, "groups_width": 8},
    "segformer": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4],
                  "image_size": 64, "patch_sizes": [7, 3, 3, 3]},
    "pvt": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 4],
            "image_size": 64},
    "swin": {"embed_dim": 8, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4, "patch_size": 2},
    "swinv2": {"embed_dim": 8, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4, "patch_size": 2},
    "bamba": {"attn_layer_indices": [1]}, "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1},
    "granitemoehybrid": {"layer_types": ["mamba", "attention"]}, "recurrent_gemma": {"num_hidden_layers": 3},
    "deepseek_v2": {"num_key_value_heads": 4},
    "efficientnet": {"hidden_dim": 2560}, "mobilebert": {"intra_bottleneck_size": 16, "intermediate_size": 32},
    "dbrx": {"attn_config": {"kv_n_heads": 2, "rope_theta": 10000.0}},
    "autoformer": {"prediction_length": 8}, "informer": {"prediction_length": 8},
    "time_series_transformer": {"prediction_length": 8},
    "zamba": {"num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"]},
    "align": {"projection_dim": 160}, "maskformer": {"backbone_config": SWIN},
    "mask2former": {"backbone_config": SWIN}, "upernet": {"backbone_config": ALL_STAGES},
    "rt_detr": LAST_STAGES, "rt_detr_v2": LAST_STAGES,
    "depth_anything": {"backbone_config": PATCHES}, "prompt_depth_anything": {"backbone_config": PATCHES},
    "pix2struct_vision_model": {"patch_embed_hidden_size": 192},
    "oneformer": {"backbone_config": SWIN},
    "blt": {"use_cache": False}, "sam_vision_model": {"output_channels": WIDTH, "num_pos_feats": WIDTH // 2},
    "sam_hq_vision_model": {"output_channels": WIDTH, "num_pos_feats": WIDTH // 2},
    "sam_hq_mask_decoder": {"vit_dim": WIDTH}, "sam3_vision_model": {"fpn_hidden_size": WIDTH},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "rwkv": {"attention_hidden_size": 32, "intermediate_size": 64},
    }  # fmt: skip
"""Types whose sizes depend on each other in ways of their own; tried before the table."""

FAMILIES = (
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING", "MODEL_FOR_MASKED_LM_MAPPING", "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_CTC_MAPPING", "MODEL_FOR_OBJECT_DETECTION_MAPPING", "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING", "MODEL_FOR_UNIVERSAL_SEGMENTATION_MAPPING",
    "MODEL_FOR_ZERO_SHOT_OBJECT_DETECTION_MAPPING", "MODEL_FOR_VIDEO_CLASSIFICATION_MAPPING",
    "MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING", "MODEL_FOR_DEPTH_ESTIMATION_MAPPING",
    "MODEL_FOR_TIME_SERIES_PREDICTION_MAPPING", "MODEL_MAPPING",
)  # fmt: skip
"""Which head a model gets: that of the first family that has its type; others of its classes if that does not run."""


@dataclass(frozen=True)
class Way:
    """A way to make a model small.

    Args:
        sizes: whether what the table names is made as large as the table says; otherwise only counts are.
        divisor: what all other sizes are divided by.
        unsaid: whether what the table names, and a configuration leaves to be said, is made as large as the table says.
        changes: to every configuration that has such an attribute.
        largest: how many parameters the model may have.
    """

    sizes: bool = True
    divisor: int = 1
    unsaid: bool = False
    changes: tuple[tuple[str, Any], ...] = ()
    largest: int = 100_000_000


WAYS = (
    Way(),
    Way(changes=(("num_key_value_heads", HEADS), ("num_kv_heads", HEADS))),
    Way(unsaid=True),
    Way(sizes=False, divisor=16, largest=30_000_000),
    Way(sizes=False, largest=30_000_000),
)


@dataclass(frozen=True)
class Case:
    """A model that eager runs.

    Args:
        model_class: of the model.
        way: how it was made small.
        asked: how its inputs were chosen.
    """

    model_class: Any
    model_type: str
    way: Way
    asked: tiny_inputs.Asked

    def model(self, dropout: float | None = 0.0, attention: str | None = None) -> torch.nn.Module:
        """Return a model with random weights, the same ones each time."""
        return tiny_model(tiny_config(self.model_type, dropout, self.way), self.model_class, attention)

    def inputs(self, model: torch.nn.Module, labels: bool = False) -> dict[str, Any]:
        """Return keyword arguments for its forward."""
        return tiny_inputs.inputs_of(model, self.asked, labels)


class NoCaseError(Exception):
    """Eager ran nothing that was tried; says what the first try came to."""


@functools.cache
def tiny_case(model_type: str, base: bool = False) -> Case:
    """Return a small model of a type that eager runs.

    Args:
        model_type: as the library names it, such as ``"llama"``.
        base: take the model without a head.

    Raises:
        NoCaseError: nothing that was tried runs.
    """
    without = None  # a case without images, of a model that may be given some
    errors: list[Exception] = []
    for way in WAYS:
        try:
            classes = model_classes(tiny_config(model_type, 0.0, way), base)
        except Exception as error:  # the library's own checks of a configuration raise what they like
            errors.append(error)
            continue
        if not classes:
            errors.append(ValueError("no model of the library takes this configuration"))
        for model_class in classes[: 4 if way is WAYS[0] else 2]:
            case, images = _tried(model_type, way, model_class, errors)
            if case is not None and (case.asked.images or not images):
                return case
            without = without or case
    if without is not None:
        return without
    raise NoCaseError(f"{type(errors[0]).__name__}: {str(errors[0]).strip()}") from errors[0]


def _tried(model_type: str, way: Way, model_class: Any, errors: list[Exception]) -> tuple[Case | None, bool]:
    """Return what eager runs of a class, and whether images among text were tried; add to the errors."""
    try:
        with torch.device("meta"):
            parameters = sum(p.numel() for p in model_class(tiny_config(model_type, 0.0, way)).parameters())
        if parameters > way.largest:
            raise ValueError(f"{model_class.__name__} would have {parameters} parameters")
        model = tiny_model(tiny_config(model_type, 0.0, way), model_class).eval()
        choices = list(tiny_inputs.choices(model))
    except Exception as error:  # as above
        errors.append(error)
        return None, False
    images = any(asked.images for asked in choices)
    for asked in choices:
        try:
            with torch.no_grad():
                model(**tiny_inputs.inputs_of(model, asked))
        except Exception as error:  # as above
            errors.append(error)
        else:
            return Case(model_class, model_type, way, asked), images
    return None, images


def tiny_config(model_type: str, dropout: float | None = 0.0, way: Way = WAYS[0]) -> PretrainedConfig:
    """Return a small configuration of a model type.

    Args:
        model_type: as the library names it, such as ``"llama"``.
        dropout: every probability of dropping something; ``None`` for those of the library, layers and paths included.
        way: how to make it small.
    """
    return _shrunk(CONFIG_MAPPING[model_type](), dropout, way, SPECIAL.get(model_type, {}))


def _shrunk(default: PretrainedConfig, dropout: float | None, way: Way, changes: dict[str, Any]) -> PretrainedConfig:
    config_class = type(default)
    known = default.to_dict()
    known.update({own: known.get(other) for own, other in config_class.attribute_map.items()})
    known = {name: value for name, value in known.items() if _can_be_given(config_class, name)}
    layers = _layers_kept(known)
    given = {name: _smaller(name, value, dropout, way, layers) for name, value in known.items()}
    usual = config_class().to_dict()  # which a part of a configuration may differ from
    kept = {n: known[n] for n, v in given.items() if v is _KEPT and n in usual and known[n] != usual[n]}
    given = {name: value for name, value in given.items() if value is not _KEPT} | kept
    given |= {name: value for name, value in way.changes if known.get(name) is not None}
    if known.get("head_dim") is not None and known.get("head_dim") == known.get("qk_rope_head_dim"):
        given["head_dim"] = given.get("qk_rope_head_dim", known["head_dim"])
    for name, sub in vars(default).items():
        if name not in changes and isinstance(sub, PretrainedConfig):
            small = _shrunk(sub, dropout, way, SPECIAL.get(sub.model_type, {}))
            given[name] = TINY_BACKBONE if sub.model_type == "timm_backbone" else small.to_dict()
    _fit_rope(config_class, known, given)
    given |= changes
    for own, other in config_class.attribute_map.items():  # one size under two names is given once
        if own in given and other in given:
            given.pop(own)
    return config_class(**given)


def _can_be_given(config_class: Any, name: str) -> bool:
    """Whether an attribute is none that is computed from others."""
    own = getattr(config_class, name, None)
    return not isinstance(own, property) or own.fset is not None


_KEPT = object()
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth")
_INDICES = ("indexes", "indices", "_ids", "target_layers", "only_layers")


def _layers_kept(known: dict[str, Any]) -> tuple[int, ...]:
    """Return which layers stay: the first of every kind, two at least; the last entry is how many there were."""
    count = next((known[n] for n in _LAYERS if isinstance(known.get(n), int)), 0)
    lists = [v for v in known.values() if isinstance(v, (list, tuple)) and len(v) == count > 2]
    kinds = list(zip(*(v for v in lists if all(isinstance(each, str) for each in v)), strict=True))
    kept = [i for i, kind in enumerate(kinds) if kind not in kinds[:i]][:4]
    kept += [i for i in range(min(count, 2)) if i not in kept][: max(0, 2 - len(kept))]
    return (*sorted(kept), count)


def _smaller(name: str, value: Any, dropout: float | None, way: Way, layers: tuple[int, ...]) -> Any:
    """Return what an attribute becomes."""
    *kept, count = layers
    if name in FROM_TIMM:
        return False
    if value is None and way.unsaid and isinstance(COUNTS.get(name, SIZES.get(name)), int):
        return COUNTS.get(name, SIZES.get(name))
    if isinstance(value, bool) or value is None:
        return _KEPT
    if isinstance(value, float) and ("drop" in name) and 0 <= value < 1:
        if dropout is None:
            return _KEPT
        return 0.0 if "layer" in name or "path" in name or "conv" in name else dropout
    if isinstance(value, int) and name.endswith(("token_id", "token_index")) and value >= VOCABULARY:
        return SPECIAL_TOKENS.get(name, VOCABULARY - 1 - value % 7)
    if isinstance(value, (list, tuple)) and count > 2 and all(isinstance(v, (int, str, float)) for v in value):
        if len(value) == count:
            value = [value[i] for i in kept]
            small = _named_size(SIZES[name], value) if way.sizes and name in SIZES else _KEPT
            return value if small is _KEPT else small
        if name.endswith(_INDICES) and all(isinstance(v, int) and 0 <= v <= count for v in value):
            return sorted({min(v, len(kept) - 1) for v in value})
    if name in _LAYERS and isinstance(value, int) and value == count > 2:
        return len(kept)
    if name in COUNTS or (way.sizes and name in SIZES):
        return _named_size(COUNTS.get(name, SIZES.get(name)), value)
    if way.divisor > 1 and isinstance(value, int) and value >= 64 and value % way.divisor == 0 and _is_size(name):
        return value // way.divisor
    if way.divisor > 1 and isinstance(value, int) and name in HEAD_COUNTS:
        return max(1, value // (way.divisor // 2))
    return _KEPT


def _named_size(size: Any, value: Any) -> Any:
    if isinstance(size, tuple):
        return list(size) if isinstance(value, (list, tuple)) else _KEPT
    if isinstance(value, (list, tuple)):
        return [size] * len(value) if all(v == value[0] for v in value) and isinstance(value[0], int) else _KEPT
    return min(size, value) if isinstance(value, int) else _KEPT


def _is_size(name: str) -> bool:
    return not name.endswith(
        ("_id", "_index", "_token", "_rate", "theta", "base", "image_size", "temperature", "stride")
    )


def _fit_rope(config_class: Any, known: dict[str, Any], given: dict[str, Any]) -> None:
    """Make the sections of a rotary embedding over places in images add up to half of what it turns."""
    rope = known.get("rope_parameters")
    if (
        not isinstance(rope, dict)
        or "rope_type" not in rope
        or "mrope_section" not in inspect.getsource(_modeling(config_class))
    ):
        return
    now = {**known, **given}
    heads = now.get("num_attention_heads") or 1
    width = now.get("head_dim") or (now.get("hidden_size") or heads) // heads
    half = int(width * (rope.get("partial_rotary_factor") or 1)) // 2
    given["rope_parameters"] = {**rope, "mrope_section": [half - 2 * (half // 3), half // 3, half // 3]}


def _modeling(config_class: Any) -> Any:
    return importlib.import_module(config_class.__module__.replace(".configuration_", ".modeling_"))


def model_classes(config: PretrainedConfig, base: bool = False) -> list[Any]:
    """Return the classes that take a configuration, those with the usual heads first."""
    pairs = {"text_config", "vision_config"} <= set(getattr(config, "sub_configs", {})) and not _writes_text(config)
    found: list[Any] = []
    for mapping in (getattr(modeling_auto, name) for name in (FAMILIES[-1:] if base or pairs else FAMILIES)):
        if type(config) in mapping:
            made = mapping[type(config)]
            found += made if isinstance(made, (tuple, list)) else [made]
    for cls in vars(_modeling(type(config))).values():
        if inspect.isclass(cls) and issubclass(cls, PreTrainedModel) and cls.config_class is type(config):
            found.append(cls)
    runs = [cls for cls in found if cls.forward is not torch.nn.Module.forward and "PreTrained" not in cls.__name__]
    return list(dict.fromkeys(runs))


def tiny_model(config: PretrainedConfig, cls: Any = None, attention: str | None = None) -> torch.nn.Module:
    """Return a model with random weights.

    Args:
        config: its configuration.
        cls: its class; that with the usual head if not given.
        attention: which implementation of attention, such as ``"eager"``; the library's choice if not given.
    """
    cls = model_classes(config)[0] if cls is None else cls
    if attention is not None:
        config._attn_implementation = attention
    torch.manual_seed(1234)
    return cls(config)


def _writes_text(config: PretrainedConfig) -> bool:
    """Whether the model writes text, about images if it is given some."""
    return type(config) in modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING


def all_model_types() -> list[str]:
    """Return the names of all types of models that the library has."""
    return sorted(CONFIG_MAPPING.keys())


transformers.logging.set_verbosity_error()

__all__ = ["Case", "NoCaseError", "all_model_types", "model_classes", "tiny_case", "tiny_config", "tiny_model"]
