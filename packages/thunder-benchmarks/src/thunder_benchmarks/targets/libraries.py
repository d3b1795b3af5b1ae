"""Models of libraries, with random weights: transformers, PEFT, and litgpt; each where it is installed."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import ModuleType
from typing import Any

import torch

from thunder_benchmarks.targets.cases import Job, NotInstalledError, target

SIZES = {"batch": 2, "length": 64, "layers": 4, "heads": 4, "width": 128, "vocabulary": 512}


def library(name: str) -> ModuleType:
    """Return a library.

    Raises:
        NotInstalledError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise NotInstalledError(f"this target needs {name}: pip install {name}") from error


@target("hf-gpt2", **SIZES)
def hf_gpt2(batch: int, length: int, layers: int, heads: int, width: int, vocabulary: int) -> Job:
    transformers = library("transformers")
    config = transformers.GPT2Config(
        vocab_size=vocabulary, n_embd=width, n_layer=layers, n_head=heads, n_positions=length, use_cache=False,
        bos_token_id=0, eos_token_id=1, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    return _language_model(transformers.GPT2LMHeadModel(config), batch, length, vocabulary)


@target("hf-llama", **SIZES)
def hf_llama(batch: int, length: int, layers: int, heads: int, width: int, vocabulary: int) -> Job:
    transformers = library("transformers")
    config = transformers.LlamaConfig(
        vocab_size=vocabulary, hidden_size=width, intermediate_size=3 * width, num_hidden_layers=layers,
        num_attention_heads=heads, max_position_embeddings=length, use_cache=False, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    return _language_model(transformers.LlamaForCausalLM(config), batch, length, vocabulary)


@target("hf", kind="bert", **SIZES)
def hf(kind: str, batch: int, length: int, layers: int, heads: int, width: int, vocabulary: int) -> Job:
    """The base model of a kind of transformers whose configuration has the usual names."""
    transformers = library("transformers")
    config = transformers.AutoConfig.for_model(
        kind, vocab_size=vocabulary, hidden_size=width, intermediate_size=4 * width, num_hidden_layers=layers,
        num_attention_heads=heads, num_key_value_heads=heads, head_dim=width // heads,
        max_position_embeddings=length + 8,  # RoBERTa's begin after padding's
        pad_token_id=0, bos_token_id=0, eos_token_id=1, use_cache=False, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    tokens = torch.randint(2, vocabulary, (batch, length))
    model = transformers.AutoModel.from_config(config)
    return Job(model, (), {"input_ids": tokens}, loss=lambda result: result.last_hidden_state.square().mean())


@target("resnet50", batch=2, pixels=64, classes=1000)
def resnet50(batch: int, pixels: int, classes: int) -> Job:
    """The network of 50 layers for images, of transformers, whose own configuration this is."""
    transformers = library("transformers")
    model = transformers.ResNetForImageClassification(transformers.ResNetConfig(num_labels=classes))
    images, labels = torch.randn(batch, 3, pixels, pixels), torch.randint(classes, (batch,))
    return Job(model, (), {"pixel_values": images, "labels": labels}, loss=lambda result: result.loss)


@target("detr", batch=2, pixels=96, width=64, layers=2, queries=16, classes=8)
def detr(batch: int, pixels: int, width: int, layers: int, queries: int, classes: int) -> Job:
    """A detector of transformers, whose loss takes boxes from torchvision's code and matches them by SciPy."""
    library("torchvision")
    library("scipy")
    transformers = library("transformers")
    backbone = transformers.ResNetConfig(
        embedding_size=16, hidden_sizes=[16, 32, 64, 128], depths=[1, 1, 1, 1], layer_type="basic",
        out_features=["stage4"],
    )  # fmt: skip
    config = transformers.DetrConfig(
        use_timm_backbone=False, backbone_config=backbone, d_model=width, encoder_layers=layers, decoder_layers=layers,
        encoder_ffn_dim=2 * width, decoder_ffn_dim=2 * width, encoder_attention_heads=4, decoder_attention_heads=4,
        num_queries=queries, num_labels=classes, dropout=0.0,
    )  # fmt: skip
    truth = [{"class_labels": torch.randint(classes, (3,)), "boxes": _boxes(3, 0.5)} for _ in range(batch)]
    images = {"pixel_values": torch.randn(batch, 3, pixels, pixels), "labels": truth}
    return Job(transformers.DetrForObjectDetection(config), (), images, loss=lambda result: result.loss)


@target("retinanet", batch=2, pixels=96, classes=8)
def retinanet(batch: int, pixels: int, classes: int) -> Job:
    """A detector of torchvision, whose sizes depend on what it finds."""
    detection = library("torchvision").models.detection
    model = detection.retinanet_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=classes, min_size=pixels, max_size=pixels
    )
    images = [torch.rand(3, pixels, pixels) for _ in range(batch)]
    truth = [{"labels": torch.randint(classes, (3,)), "boxes": pixels * _corners(3)} for _ in range(batch)]
    return Job(model, (images, truth), loss=lambda losses: sum(losses.values()))


def _boxes(count: int, size: float) -> torch.Tensor:
    """Return the centres, widths and heights of boxes inside of an image of size 1."""
    return torch.cat([size / 2 + (1 - size) * torch.rand(count, 2), size * (0.2 + 0.8 * torch.rand(count, 2))], 1)


def _corners(count: int) -> torch.Tensor:
    """Return the first and last corners of boxes inside of an image of size 1."""
    middles, sizes = _boxes(count, 0.5).chunk(2, 1)
    return torch.cat([middles - sizes / 2, middles + sizes / 2], 1)


@target("peft-lora", **SIZES, rank=8)
def peft_lora(batch: int, length: int, layers: int, heads: int, width: int, vocabulary: int, rank: int) -> Job:
    """A Llama whose projections have PEFT's adapters beside them; nothing else is trained."""
    peft = library("peft")
    found = hf_llama(batch, length, layers, heads, width, vocabulary)
    config = peft.LoraConfig(r=rank, lora_alpha=2 * rank, lora_dropout=0.0, target_modules=["q_proj", "v_proj"])
    return replace(found, target=peft.get_peft_model(found.target, config))


def _language_model(model: Any, batch: int, length: int, vocabulary: int) -> Job:
    tokens = torch.randint(2, vocabulary, (batch, length))
    return Job(model, (), {"input_ids": tokens, "labels": tokens}, loss=lambda result: result.loss)


@target("litgpt", config="pythia-14m", batch=2, length=64, layers=0)
def litgpt(config: str, batch: int, length: int, layers: int) -> Job:
    """A configuration of litgpt by its name; ``layers=0`` has as many as that says."""
    found = library("litgpt")
    more = {"n_layer": layers} if layers else {}
    settings = found.Config.from_name(config, block_size=length, **more)
    tokens = torch.randint(settings.vocab_size, (batch, length))
    return Job(found.GPT(settings), (tokens,), loss=lambda logits: _shifted(logits, tokens))


def _shifted(logits: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
