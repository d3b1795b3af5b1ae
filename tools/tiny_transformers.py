"""Tiny models of the transformers library for any of its model types: configurations made small, weights random.

Nothing is downloaded. What a configuration calls its sizes is looked up in one table; the few types whose sizes depend
on each other in ways of their own are listed below it.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
import transformers
from transformers import PreTrainedConfig
from transformers.models.auto import modeling_auto
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

VOCABULARY, WIDTH, HEADS, LENGTH, BATCH, IMAGE = 99, 32, 4, 10, 2, 32

SIZES: dict[str, Any] = {
    **dict.fromkeys(("vocab_size", "text_vocab_size", "vocab_size_per_layer_input"), VOCABULARY),
    **dict.fromkeys(
        ("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "word_embed_proj_dim", "embedding_size", "emb_dim",
         "projection_dim", "encoder_hidden_size", "attention_hidden_size", "pooler_output_size", "decoder_hidden_size",
         "attention_dim", "classifier_proj_size", "bottleneck_size", "output_hidden_size"), WIDTH),
    **dict.fromkeys(
        ("intermediate_size", "d_ff", "n_inner", "hidden_dim", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim",
         "ffn_hidden_size", "d_inner", "moe_intermediate_size", "intermediate_size_mlp", "feed_forward_hidden_size",
         "shared_expert_intermediate_size", "block_ff_dim"), 2 * WIDTH),
    **dict.fromkeys(
        ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers",
         "num_encoder_layers", "num_decoder_layers", "num_hidden_groups"), 2),
    **dict.fromkeys(
        ("num_attention_heads", "n_head", "n_heads", "num_heads", "encoder_attention_heads",
         "decoder_attention_heads"), HEADS),
    **dict.fromkeys(("num_key_value_heads", "num_kv_heads"), 2),
    **dict.fromkeys(("head_dim", "d_kv", "attention_head_dim", "global_head_dim"), WIDTH // HEADS),
    **dict.fromkeys(
        ("max_position_embeddings", "n_positions", "max_seq_len", "max_seq_length", "max_source_positions",
         "max_target_positions", "context_length"), 64),
    **dict.fromkeys(("num_local_experts", "num_experts", "n_routed_experts"), 4),
    "image_size": IMAGE, "patch_size": 8, "num_mel_bins": 16, "num_queries": 5, "sliding_window": 6,
    "local_attention": 8,
    "state_size": 4, "time_step_rank": 4, "rotary_dim": 4, "conv_dim": (16, 16, 16), "conv_stride": (5, 2, 2),
    "conv_kernel": (10, 3, 3), "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 2,
    "num_codevectors_per_group": 8, "codevector_dim": 16, "proj_codevector_dim": 16, "mm_tokens_per_image": 4,
    "num_feat_extract_layers": 3, "relative_attention_num_buckets": 8, "rotary_ndims": 4, "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8, "v_head_dim": 8, "q_lora_rank": 16, "kv_lora_rank": 16, "n_group": 1, "topk_group": 1,
    "first_k_dense_replace": 1, "hidden_size_per_layer_input": 8, "n_groups": 1, "mamba_n_heads": 4, "mamba_d_head": 16,
}  # fmt: skip
"""What a configuration calls its sizes, and how large they are here. A list keeps its length."""

OFF = ("apply_spec_augment", "use_mambapy", "use_timm_backbone", "use_pretrained_backbone")
"""Switches for what draws numbers from NumPy while a model runs, or is taken from another library."""

SPECIAL: dict[str, dict[str, Any]] = {
    "big_bird": {"attention_type": "original_full"},  # otherwise its first call makes other modules
    "data2vec-audio": {"apply_spec_augment": False},
    "convnext": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "convnextv2": {"hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "falcon": {"new_decoder_architecture": False, "num_kv_heads": None}, "funnel": {"block_sizes": [1, 1]},
    "layoutlm": {"max_2d_position_embeddings": 64}, "mobilebert": {"intra_bottleneck_size": 16, "true_hidden_size": 32},
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
    "rwkv": {"attention_hidden_size": 32, "intermediate_size": 64},
    "detr": {"backbone_config": {"model_type": "resnet", "hidden_sizes": [8, 16, 16, 32], "depths": [1, 1, 1, 1],
                                 "embedding_size": 8, "out_features": ["stage4"]}},
}  # fmt: skip
"""Types whose sizes depend on each other in ways of their own; tried before the table."""

FAMILIES = (
    "MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING",
    "MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING", "MODEL_FOR_MASKED_LM_MAPPING", "MODEL_FOR_CAUSAL_LM_MAPPING",
    "MODEL_FOR_CTC_MAPPING", "MODEL_FOR_OBJECT_DETECTION_MAPPING", "MODEL_FOR_SEMANTIC_SEGMENTATION_MAPPING",
    "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING", "MODEL_MAPPING",
)  # fmt: skip
"""Which head a model gets: that of the first family that has its type."""


def tiny_config(model_type: str, dropout: float = 0.0, **changes: Any) -> PreTrainedConfig:
    """Return a small configuration of a model type.

    Args:
        model_type: as the library names it, such as ``"llama"``.
        dropout: every probability of dropping something.
        changes: further attributes.
    """
    changes = {**SPECIAL.get(model_type, {}), **changes}
    return _shrunk(CONFIG_MAPPING[model_type], dropout, changes)


def _shrunk(config_class: Any, dropout: float, changes: dict[str, Any]) -> PreTrainedConfig:
    default = config_class()
    known = {**default.to_dict(), **{name: None for name in config_class.attribute_map}}
    sizes = {name: _smaller(name, known[name], dropout) for name in known}
    given = {name: value for name, value in sizes.items() if value is not _KEPT}
    for name, sub_class in getattr(config_class, "sub_configs", {}).items():
        sub = getattr(default, name, None)
        sub_class = type(sub) if isinstance(sub, PreTrainedConfig) else sub_class
        if name in changes or not issubclass(sub_class, PreTrainedConfig) or sub_class is PreTrainedConfig:
            continue
        nested = _shrunk(sub_class, dropout, SPECIAL.get(sub_class.model_type, {})).to_dict()
        given[name] = nested
    given |= changes
    for own, other in config_class.attribute_map.items():  # one size under two names is given once
        if own in given and other in given:
            given.pop(own)
    return config_class(**given)


_KEPT = object()


def _smaller(name: str, value: Any, dropout: float) -> Any:
    """Return what an attribute becomes."""
    if name in OFF:
        return False
    if isinstance(value, bool):
        return _KEPT
    if isinstance(value, float) and ("drop" in name) and 0 <= value < 1:
        return 0.0 if "layer" in name or "path" in name or "conv" in name else dropout
    if isinstance(value, int) and name.endswith(("token_id", "token_index")) and value >= VOCABULARY:
        return VOCABULARY - 1 - value % 7
    if name in SIZES and value is not None:
        size = SIZES[name]
        if isinstance(size, tuple):
            return size if isinstance(value, (list, tuple)) else _KEPT
        if isinstance(value, (list, tuple)):
            return _KEPT
        return min(size, value) if isinstance(value, int) else _KEPT
    return _KEPT


def tiny_model(config: PreTrainedConfig, base: bool = False, attention: str | None = None) -> torch.nn.Module:
    """Return a model with random weights.

    Args:
        config: its configuration.
        base: take the model without a head.
        attention: which implementation of attention, such as ``"eager"``; the library's choice if not given.
    """
    pairs = {"text_config", "vision_config"} <= set(getattr(config, "sub_configs", {})) and not _writes_text(config)
    made = next(
        mapping[type(config)]
        for mapping in (getattr(modeling_auto, name) for name in (FAMILIES[-1:] if base or pairs else FAMILIES))
        if type(config) in mapping
    )
    cls = made[0] if isinstance(made, (tuple, list)) else made
    if attention is not None:
        config._attn_implementation = attention
    torch.manual_seed(1234)
    return cls(config)


def size_of(config: PreTrainedConfig, name: str, default: int) -> Any:
    """Return a size that a configuration or one of those within it has."""
    for each in (config, *(getattr(config, sub, None) for sub in getattr(config, "sub_configs", {}))):
        value = getattr(each, name, None)
        if value is not None:
            return value
    return default


def tiny_inputs(model: torch.nn.Module, labels: bool = False) -> dict[str, Any]:
    """Return keyword arguments for a model: ids, pixels, sound, as its signature asks for them."""
    config = model.config
    accepted = inspect.signature(model.forward).parameters
    torch.manual_seed(4321)
    vocabulary = int(size_of(config, "vocab_size", VOCABULARY))
    size = size_of(config, "image_size", IMAGE)
    height, width = (size, size) if isinstance(size, int) else size
    image = (BATCH, size_of(config, "num_channels", 3), height, width)
    kinds = {
        "input_ids": lambda: torch.randint(3, vocabulary - 10, (BATCH, LENGTH)),
        "pixel_values": lambda: torch.randn(image),
        "input_features": lambda: torch.randn(BATCH, size_of(config, "num_mel_bins", 16), 2 * 64),
        "input_values": lambda: torch.randn(BATCH, 400),
    }
    main = getattr(model, "main_input_name", "input_ids")
    names = [main] if main in kinds else ["input_ids"]
    if {"input_ids", "pixel_values"} <= set(accepted) and not hasattr(config, "image_token_id"):
        names = ["input_ids", "pixel_values"]
    inputs = {name: kinds[name]() for name in names}
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in accepted:
        inputs["decoder_input_ids"] = torch.randint(3, vocabulary - 10, (BATCH, LENGTH))
    if labels and "labels" in accepted:
        inputs.update(_labels(model, inputs, vocabulary))
    return inputs


def _writes_text(config: PreTrainedConfig) -> bool:
    """Whether the model writes text, about images if it is given some."""
    return type(config) in modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING


def _labels(model: torch.nn.Module, inputs: dict[str, Any], vocabulary: int) -> dict[str, Any]:
    """Return labels where the model's own loss takes ids, or a class for each image."""
    name = type(model).__name__
    if "ForImageClassification" in name:
        return {"labels": torch.randint(0, max(model.config.num_labels, 2), (BATCH,))}
    if "decoder_input_ids" in inputs:
        return {"labels": torch.randint(3, vocabulary - 10, inputs["decoder_input_ids"].shape)}
    if "input_ids" in inputs and any(part in name for part in ("CausalLM", "LMHead", "MaskedLM")):
        return {"labels": torch.randint(3, vocabulary - 10, inputs["input_ids"].shape)}
    return {}


def all_model_types() -> list[str]:
    """Return the names of all types of models that the library has."""
    return sorted(CONFIG_MAPPING.keys())


transformers.logging.set_verbosity_error()

__all__ = ["BATCH", "LENGTH", "VOCABULARY", "all_model_types", "size_of", "tiny_config", "tiny_inputs", "tiny_model"]
