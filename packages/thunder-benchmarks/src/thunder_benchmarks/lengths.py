"""Lengths that change: what programs with symbolic sizes cost, beside those made for a size, and training with padding.

python -m thunder_benchmarks.lengths             a warm step of GPT-2, with the length open and without; CPU ms
python -m thunder_benchmarks.lengths --trainer   40 steps of transformers.Trainer with dynamic padding, beside eager
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
import warnings
from typing import Any

import torch

import thunder

try:
    import transformers
except ImportError as error:
    raise ImportError("lengths needs transformers: pip install 'thunder-benchmarks[transformers]'") from error

LENGTH = 64


def gpt2(layers: int, width: int) -> Any:
    """Return a GPT-2 of random weights, without dropout."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=layers, n_embd=width, n_head=max(2, width // 64), resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    return transformers.GPT2LMHeadModel(config)


def step(model: Any, tokens: torch.Tensor) -> float:
    """Return the CPU seconds of a step: loss and gradients."""
    begin = time.process_time()
    model(input_ids=tokens, labels=tokens).loss.backward()
    model.zero_grad(set_to_none=True)
    return time.process_time() - begin


def warm(layers: int, width: int, rounds: int) -> None:
    """Print the medians of steps that take turns: eager, the program for the size, that which leaves it open."""
    tokens = torch.randint(0, 50000, (4, LENGTH))
    models = {"eager": gpt2(layers, width)}
    models |= {cache: thunder.jit(gpt2(layers, width), cache=cache) for cache in ("constant values", "auto")}
    for length in (LENGTH - 10, LENGTH - 7, LENGTH):
        for name, model in models.items():
            seconds = step(model, tokens[:, :length].contiguous())
            print(f"{name}: first step of length {length} {seconds:.2f} s")
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            times[name].append(step(model, tokens))
    medians = {name: statistics.median(those) for name, those in times.items()}
    paired = [o / c for o, c in zip(times["auto"], times["constant values"], strict=True)]
    for name, median in medians.items():
        print(f"{name}: {median * 1e3:.1f} ms")
    print(f"symbolic sizes, in programs for the size: {statistics.median(paired):.3f}")
    print(f"programs with cache='auto': {thunder.cache_misses(models['auto'])}")


def train(model: Any, steps: int) -> float:
    """Return the seconds of training by ``transformers.Trainer`` on texts of random lengths, padded by the batch."""
    draw = random.Random(0)
    texts = [{"input_ids": [draw.randrange(50000) for _ in range(draw.randrange(8, 64))]} for _ in range(4 * steps)]

    def padded(batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        length = max(len(text["input_ids"]) for text in batch)
        rows = [text["input_ids"] + [0] * (length - len(text["input_ids"])) for text in batch]
        mask = [[1] * len(text["input_ids"]) + [0] * (length - len(text["input_ids"])) for text in batch]
        tokens = torch.tensor(rows)
        return {"input_ids": tokens, "attention_mask": torch.tensor(mask), "labels": tokens}

    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            folder, max_steps=steps, per_device_train_batch_size=4, report_to=[], save_strategy="no", use_cpu=True,
            disable_tqdm=True, logging_strategy="no",
        )  # fmt: skip
        trainer = transformers.Trainer(model, arguments, data_collator=padded, train_dataset=texts)
        begin = time.process_time()
        trainer.train()
        return time.process_time() - begin


def trainer(layers: int, width: int, steps: int) -> None:
    """Print what training costs in total, the compiling included."""
    train(gpt2(1, 64), 1)  # what the first training of a process imports is nobody's cost
    eager = train(gpt2(layers, width), steps)
    compiled = thunder.jit(gpt2(layers, width), cache="auto")
    seconds = train(compiled, steps)
    print(f"eager {eager:.2f} s, thunder {seconds:.2f} s: {seconds / eager:.2f}")
    print(f"programs: {thunder.cache_misses(compiled)}")


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--trainer", action="store_true", help="by transformers.Trainer, which needs accelerate")
    parser.add_argument("--steps", type=int, default=40)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.trainer:
        trainer(arguments.layers, arguments.width, arguments.steps)
    else:
        warm(arguments.layers, arguments.width, arguments.rounds)


if __name__ == "__main__":
    main()
