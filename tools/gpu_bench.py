"""A part of `tools/gpu.py`: steps of models, and generation, against eager, torch.compile and Liger's kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from typing import Any

import torch
from gpu_machine import Check, Machine, NotHere
from torch import nn

import thunder
from thunder_benchmarks import GPT, GPTConfig

F = nn.functional
WARM_UPS, ROUNDS = 4, 11
APART = 0.03
"""How far a loss may be from eager's, relatively, in bfloat16."""


@dataclass(frozen=True)
class Job:
    """A model and what it is called with.

    Args:
        model: takes ``args`` and ``kwargs``.
        loss: of what it returns.
    """

    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], Any] = lambda out: out.float().square().mean()


class Block(nn.Module):
    """A block as in Llama, with random weights."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, hidden, bias=False), nn.Linear(width, hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``float[batch, length, width] -> float[batch, length, width]``."""
        b, s, w = x.shape
        q, k, v = (t.view(b, s, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, s, w))
        h = self.second(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))  # type: ignore[no-any-return]


def library(name: str) -> Any:
    """Return a library.

    Raises:
        NotHere: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as error:
        raise NotHere(f"{name} is not installed") from error


def nanogpt(machine: Machine) -> Job:
    """GPT-2's 124 million parameters."""
    sizes = {"layers": 2, "heads": 2, "width": 32, "block": 16} if machine.rehearsed else {
        "layers": 12, "heads": 12, "width": 768, "block": 1024
    }  # fmt: skip
    config = GPTConfig(64 if machine.rehearsed else 50_304, **sizes)
    tokens = torch.randint(config.vocabulary, (2 if machine.rehearsed else 8, config.block), device=machine.device)
    return Job(GPT(config), (tokens, tokens.roll(-1, 1)), loss=lambda out: out[1].float())


def litgpt_1b(machine: Machine) -> Job:
    """Four of the 16 layers of litgpt's Llama 3.2 1B."""
    found = library("litgpt")
    small = {"n_layer": 1, "n_embd": 32, "n_head": 2, "n_query_groups": 1, "padded_vocab_size": 64,
             "intermediate_size": 64, "head_size": 16}  # fmt: skip
    settings = small if machine.rehearsed else {"n_layer": 4}
    length = 16 if machine.rehearsed else 2048
    config = found.Config.from_name("Llama-3.2-1B", block_size=length, **settings)
    tokens = torch.randint(config.padded_vocab_size, (1, length), device=machine.device)
    return Job(found.GPT(config), (tokens,), loss=lambda out: F.cross_entropy(out.flatten(0, 1).float(), tokens[0]))


def llama_7b_block(machine: Machine) -> Job:
    """A block of Llama 2 7B."""
    width, heads, hidden, length = (32, 2, 64, 16) if machine.rehearsed else (4096, 32, 11_008, 2048)
    x = torch.randn(1, length, width, device=machine.device, dtype=torch.bfloat16, requires_grad=True)
    return Job(Block(width, heads, hidden), (x,))


def hf_llama_1b(machine: Machine) -> Job:
    """Four of the 16 layers of Llama 3.2 1B in transformers."""
    transformers = library("transformers")
    sizes = dict(
        vocab_size=128_256, hidden_size=2048, intermediate_size=8192, num_hidden_layers=4, num_attention_heads=32,
        num_key_value_heads=8, head_dim=64, max_position_embeddings=4096,
    )  # fmt: skip
    if machine.rehearsed:
        sizes |= dict(vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4)
        sizes |= dict(num_key_value_heads=2, head_dim=8)
    config = transformers.LlamaConfig(
        **sizes, rope_theta=500_000.0, tie_word_embeddings=True, use_cache=False, bos_token_id=0, eos_token_id=1,
        pad_token_id=0,
    )  # fmt: skip
    tokens = torch.randint(2, sizes["vocab_size"], (1, 16 if machine.rehearsed else 2048), device=machine.device)
    given = {"input_ids": tokens, "labels": tokens}
    return Job(transformers.LlamaForCausalLM(config), (), given, lambda out: out.loss.float())


LLAMA = "Llama 3.2 1B of transformers, 4 layers"
JOBS: dict[str, Callable[[Machine], Job]] = {
    "nanoGPT 124M": nanogpt, LLAMA: hf_llama_1b,
    "Llama 2 7B, a block": llama_7b_block, "Llama 3.2 1B of litgpt, 4 layers": litgpt_1b,
}  # fmt: skip


def eager(machine: Machine, model: Any) -> Any:
    return model


def liger(machine: Machine, model: Any) -> Any:
    """Put Liger's kernels into a Llama of transformers."""
    if type(model).__name__ != "LlamaForCausalLM":
        raise NotHere("Liger's kernels are put into models of transformers")
    library("liger_kernel.transformers").apply_liger_kernel_to_llama(model=model)
    return model


def ways(machine: Machine) -> dict[str, Callable[[Machine, Any], Any]]:
    """Return what makes the ways of running a model, the most telling first."""
    others = [e for e in machine.able() if e in ("cudnn", "nvfuser", "triton", "triton_fusion")]
    found: dict[str, Callable[[Machine, Any], Any]] = {
        "eager": eager,
        "thunder": lambda m, model: thunder.jit(model),
        "torch.compile": lambda m, model: m.compiled(model, "default"),
        "thunder: torch": lambda m, model: thunder.jit(model, executors=["torch"]),
        "thunder: CUDA graphs": lambda m, model: thunder.jit(model, executors=["torch"], transforms=[m.graphs()]),
        "Liger": liger,
    }
    for name in machine.able():
        listed = list(dict.fromkeys([name, "torch"]))
        found[f"thunder: {name}"] = lambda m, model, listed=listed: thunder.jit(model, executors=listed)
    if {"triton", "triton_fusion"} <= set(others):
        listed = ["triton", "triton_fusion", "torch"]
        found["thunder: triton+triton_fusion"] = lambda m, model: thunder.jit(model, executors=listed)
    if len(others) > 2:
        found["thunder: " + "+".join(others)] = lambda m, model: thunder.jit(model, executors=[*others, "torch"])
    found["torch.compile, max-autotune"] = lambda m, model: m.compiled(model, "max-autotune")
    return found


def bench(machine: Machine) -> Iterator[Check]:
    """Milliseconds of forward and backward, and of each token that is written; losses are held to eager's."""
    for way, make in ways(machine).items():
        for name in JOBS:
            limit = 240.0 if way.endswith("max-autotune") else 120.0
            yield Check(f"{name}: {way}", partial(stepped, machine, name, make), limit)
        if way in WRITERS:
            yield Check(f"generate, {LLAMA}: {way}", partial(generated, machine, WRITERS[way]))


def made(machine: Machine, name: str) -> Job:
    """Return a job, with the same weights and inputs each time."""
    torch.manual_seed(0)
    with machine.device:  # where random weights are soon drawn
        job = JOBS[name](machine)
    job.model.to(machine.device, torch.bfloat16)
    return job


@cache
def expected(machine: Machine, name: str) -> float:
    """Return eager's loss."""
    job = made(machine, name)
    with torch.no_grad():
        return float(job.loss(job.model(*job.args, **job.kwargs)))


def stepped(machine: Machine, name: str, make: Callable[[Machine, Any], Any]) -> str:
    """Return the median of some steps, in milliseconds, the first call, and the most memory that was held."""
    machine.clean()
    truth = expected(machine, name)
    job = made(machine, name)
    run = make(machine, job.model)
    losses = []

    def step() -> None:
        job.model.zero_grad(set_to_none=True)
        loss = job.loss(run(*job.args, **job.kwargs))
        loss.backward()
        losses.append(loss.detach())

    first = machine.seconds(step)
    for _ in range(1 if machine.rehearsed else WARM_UPS):
        step()
    took = sorted(machine.seconds(step) for _ in range(3 if machine.rehearsed else ROUNDS))
    apart = max(abs(float(loss) - truth) for loss in losses) / abs(truth)
    assert apart < APART, f"a loss is off by {apart:.1e} of eager's"
    told = [f"{took[len(took) // 2] * 1e3:.3f} ms", machine.kernels(step), f"first {first:.1f} s", machine.held()]
    return ", ".join([*told, f"loss off by {apart:.0e}"])


def compiled_writer(machine: Machine, model: Any) -> Any:
    """Let ``torch.compile`` compile the forward of a model, as transformers' documentation has it."""
    model.forward = machine.compiled(model.forward, "default")
    return model


WRITERS: dict[str, Callable[[Machine, Any], Any]] = {
    "eager": eager, "thunder": lambda m, model: thunder.compile(model), "torch.compile": compiled_writer,
}  # fmt: skip


def generated(machine: Machine, make: Callable[[Machine, Any], Any]) -> str:
    """Return milliseconds of each token that a model writes, and how many of them are eager's."""
    machine.clean()
    jobs = [made(machine, LLAMA) for _ in range(2)]
    models = [job.model.eval() for job in jobs]
    prompt = jobs[0].kwargs["input_ids"][:, : 8 if machine.rehearsed else 128]
    tokens = 4 if machine.rehearsed else 64

    def write(model: Any, count: int) -> torch.Tensor:
        options = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False, "use_cache": True}
        return model.generate(prompt, **options)  # type: ignore[no-any-return]

    with torch.no_grad():
        run = make(machine, models[0])
        first = machine.seconds(lambda: write(run, tokens))
        one, all_ = (sorted(machine.seconds(partial(write, run, n)) for _ in range(3))[1] for n in (1, tokens))
        found, truth = write(run, tokens), write(models[1], tokens)
    assert found.shape == truth.shape, f"it writes {tuple(found.shape)} tokens, eager {tuple(truth.shape)}"
    equal = float((found == truth).float().mean())
    return f"{1e3 * (all_ - one) / (tokens - 1):.3f} ms a token, first {first:.1f} s, {equal:.0%} of eager's tokens"
