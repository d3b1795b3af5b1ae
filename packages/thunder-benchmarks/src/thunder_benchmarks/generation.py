"""What a model of Hugging Face transformers takes to write: the prompt, and each token after it; eager beside Thunder.

python -m thunder_benchmarks.generation                                  GPT-2 and Llama, 12 small layers
python -m thunder_benchmarks.generation --models llama --width 256 --tokens 64 --cache static --json written.json

Weights are random. The prompt's time is that of a call that writes one token; a token's is what each further one adds.
Calls of all compilers are made in turns, and the median is told, in CPU time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

import thunder
from thunder_benchmarks.tables import show

try:
    import transformers
except ImportError as error:
    raise ImportError("generation needs transformers: pip install 'thunder-benchmarks[transformers]'") from error


@dataclass(frozen=True)
class Sizes:
    """Of a model.

    Args:
        layers, width, heads: of the transformer.
        vocabulary: number of different tokens.
        positions: longest text.
    """

    layers: int = 12
    width: int = 64
    heads: int = 4
    vocabulary: int = 256
    positions: int = 256


@dataclass(frozen=True)
class Written:
    """What a model took.

    Args:
        model, compiler, cache: what ran.
        prompt_ms: for the prompt, with the first token.
        token_ms: for each token after that.
        programs: how many were compiled; 0 for eager.
        first_s: what the first call took, with compiling.
    """

    model: str
    compiler: str
    cache: str
    prompt_ms: float
    token_ms: float
    programs: int
    first_s: float


def gpt2(sizes: Sizes) -> Any:
    """Return a GPT-2 with random weights."""
    return transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=sizes.vocabulary, n_embd=sizes.width, n_layer=sizes.layers, n_head=sizes.heads,
            n_positions=sizes.positions, bos_token_id=0, eos_token_id=1, pad_token_id=0,
        )
    )  # fmt: skip


def llama(sizes: Sizes) -> Any:
    """Return a Llama with random weights."""
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=sizes.vocabulary, hidden_size=sizes.width, intermediate_size=3 * sizes.width,
            num_hidden_layers=sizes.layers, num_attention_heads=sizes.heads,
            num_key_value_heads=max(1, sizes.heads // 2), max_position_embeddings=sizes.positions,
            bos_token_id=0, eos_token_id=1, pad_token_id=0,
        )
    )  # fmt: skip


MODELS: dict[str, Callable[[Sizes], Any]] = {"gpt2": gpt2, "llama": llama}


def measured(
    name: str, sizes: Sizes, cache: str, prompt: int, tokens: int, rounds: int, executors: Sequence[str] | None = None
) -> list[Written]:
    """Let a model write, eager and compiled, in turns.

    Args:
        name: of the model.
        sizes: of it.
        cache: ``"dynamic"`` or ``"static"``.
        prompt, tokens: how many there are, and how many are written.
        rounds: of which the median is taken.
        executors: of the compiled one; ``None`` for those that the recipe picks.

    Raises:
        RuntimeError: the two write different tokens.
    """
    models = {}
    for compiler in ("eager", "thunder"):
        torch.manual_seed(0)
        models[compiler] = MODELS[name](sizes).eval()
    options: dict[str, Any] = {} if executors is None else {"executors": executors}
    models["thunder"] = thunder.compile(models["thunder"], **options)
    given = torch.randint(2, sizes.vocabulary, (1, prompt), generator=torch.Generator().manual_seed(1))

    def write(compiler: str, count: int) -> tuple[float, torch.Tensor]:
        options: dict[str, Any] = {"max_new_tokens": count, "min_new_tokens": count, "do_sample": False}
        if cache == "static":
            options["cache_implementation"] = "static"
        start = time.process_time()
        text = models[compiler].generate(given, **options)
        return time.process_time() - start, text

    first = {compiler: write(compiler, tokens) for compiler in models}
    if not torch.equal(first["eager"][1], first["thunder"][1]):
        raise RuntimeError(f"{name} with a {cache} cache writes other tokens than eager")
    took: dict[tuple[str, int], list[float]] = {(c, n): [] for c in models for n in (1, tokens)}
    for _ in range(rounds):
        for compiler, count in took:
            took[compiler, count].append(write(compiler, count)[0])
    found = []
    for compiler in models:
        one, all_ = (statistics.median(took[compiler, count]) for count in (1, tokens))
        programs = thunder.cache_misses(models[compiler]) if compiler == "thunder" else 0
        each = 1e3 * (all_ - one) / (tokens - 1)
        found.append(Written(name, compiler, cache, 1e3 * one, each, programs, first[compiler][0]))
    return found


def main(words: Sequence[str] | None = None) -> list[Written]:
    """Measure what the command line asks for; print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=sorted(MODELS), default=sorted(MODELS))
    parser.add_argument("--cache", nargs="+", choices=("dynamic", "static"), default=("dynamic", "static"))
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--prompt", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--executors", nargs="+", help="of the compiled models; the recipe's if left out")
    parser.add_argument("--json", type=Path, help="where to write what was found")
    options = parser.parse_args(words)
    torch.set_num_threads(1)
    sizes = Sizes(options.layers, options.width, positions=max(256, options.prompt + options.tokens))
    found = []
    for name in options.models:
        for cache in options.cache:
            found += measured(name, sizes, cache, options.prompt, options.tokens, options.rounds, options.executors)
    print_table(found)
    if options.json:
        options.json.write_text(json.dumps([asdict(written) for written in found], indent=1) + "\n", encoding="utf-8")
    return found


def print_table(found: Sequence[Written]) -> None:
    """Print what was found, eager and compiled in a row."""
    rows = [["model", "cache", "programs", "prompt ms", "eager", "ratio", "token ms", "eager", "ratio", "first s"]]
    for eager, ours in zip(found[::2], found[1::2], strict=True):
        prompt, token = ours.prompt_ms / eager.prompt_ms, ours.token_ms / eager.token_ms
        rows.append([
            ours.model, ours.cache, str(ours.programs), f"{ours.prompt_ms:.2f}", f"{eager.prompt_ms:.2f}",
            f"{prompt:.2f}", f"{ours.token_ms:.2f}", f"{eager.token_ms:.2f}", f"{token:.2f}", f"{ours.first_s:.1f}",
        ])  # fmt: skip
    show(rows, width=120)


if __name__ == "__main__":
    main()
