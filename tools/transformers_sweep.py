"""Run models of the transformers library, tiny and with random weights, eagerly and through thunder.jit, and compare.

python tools/transformers_sweep.py                          the list that is promised to work
python tools/transformers_sweep.py opt bloom clip           any other types
python tools/transformers_sweep.py promised more            a longer list
python tools/transformers_sweep.py all                      every type that the library has
python tools/transformers_sweep.py --train --dropout own    compare gradients and ten steps of AdamW, too
python tools/transformers_sweep.py --variant padded         with an attention mask; see --help for the others
python tools/transformers_sweep.py all --apart 60 --minutes 60 --rows rows.jsonl --table docs/models.md

A forward is right if values, dtypes, strides and the structure of the output (its class, keys, caches within) are
eager's, and if two calls take one program. Training is right if all gradients are eager's and ten steps of AdamW
(same seeds) give eager's losses and parameters, within the tolerances below: in float32, or in float64 where float32
alone has more rounding than that. What then differs no more than thirty times as far as eager does from itself, in
the worst of five trainings with weights that differ by one rounding, is no difference: such a model is right as far as
float64 can tell. A model that computes in float32 all the same, or runs in nothing else, is measured by a rounding of
float32. Once rounding alone makes another training of eager's, no further steps are compared, and the row says how
many were.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import math
import multiprocessing
import re
import resource
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
from compare_models import FORWARD, STEPS, Difference, EagerError, compare, loss_of, rounded, seed_all, train_both
from models_page import IN_FLOAT64, WITHIN_ROUNDING, Row, kept, line, page
from tiny_inputs import BATCH, LENGTH
from tiny_transformers import NoCaseError, all_model_types, tiny_case
from transformers import DynamicCache, PretrainedConfig, StaticCache

import thunder
from thunder_testing.sweeps import command

PROMISED = (
    "llama", "mistral", "qwen2", "gemma2", "gpt2", "gpt_neox", "phi", "bert", "roberta", "distilbert", "t5", "vit",
    "whisper", "mixtral",
)  # fmt: skip
MORE = (
    "opt", "bloom", "falcon", "mpt", "qwen3", "olmo", "stablelm", "starcoder2", "cohere", "deberta", "deberta-v2",
    "albert", "electra", "clip", "siglip", "swin", "convnext", "resnet", "deit", "bart", "pegasus", "marian",
    "mbart", "wav2vec2", "hubert", "mamba", "rwkv", "gemma3", "gemma3_text", "phi3", "granite", "modernbert",
    "xlm-roberta", "layoutlm", "blip", "detr", "segformer", "mobilevit", "gptj", "gpt_neo", "codegen",
    "camembert", "mt5", "m2m_100", "qwen2_moe", "olmo2", "glm4", "gpt_oss", "dinov2", "data2vec-audio",
    "big_bird", "aria", "xlnet", "poolformer",
)  # fmt: skip
TAKE_CONFIGURATIONS = "config" in inspect.signature(DynamicCache).parameters
"""Whether caches learn from a configuration how large their layers are, as they do since transformers 4.56."""
ROUNDINGS = 5
"""Draws of weights that differ by one rounding: where a model chooses among values, not each changes a choice."""
GROUPS = {"promised": PROMISED, "more": MORE}


# --- what is run -----------------------------------------------------------------------------------------------------


def plain(config: PretrainedConfig, inputs: dict[str, Any]) -> None:
    """Ids, pixels or sound alone."""


def full_mask(config: PretrainedConfig, inputs: dict[str, Any]) -> None:
    """An attention mask that hides nothing."""
    inputs["attention_mask"] = torch.ones(BATCH, LENGTH, dtype=torch.int64)


def padded(config: PretrainedConfig, inputs: dict[str, Any]) -> None:
    """An attention mask that hides the end of one sequence."""
    full_mask(config, inputs)
    inputs["attention_mask"][0, -3:] = 0


def hidden(config: PretrainedConfig, inputs: dict[str, Any]) -> None:
    """All hidden states are returned."""
    inputs["output_hidden_states"] = True


def as_tuple(config: PretrainedConfig, inputs: dict[str, Any]) -> None:
    """A tuple is returned."""
    inputs["return_dict"] = False


def dynamic_cache(config: PretrainedConfig, inputs: dict[str, Any]) -> None:
    """Three tokens more, on a cache that holds some."""
    cache = DynamicCache(config=config) if TAKE_CONFIGURATIONS else DynamicCache()
    _fill(config, cache)
    inputs["past_key_values"] = cache
    inputs["use_cache"] = True


def static_cache(config: PretrainedConfig, inputs: dict[str, Any]) -> None:
    """The first tokens, into a cache of fixed size."""
    sizes = (
        {} if TAKE_CONFIGURATIONS else {"max_batch_size": BATCH, "dtype": torch.get_default_dtype(), "device": "cpu"}
    )
    inputs["past_key_values"] = StaticCache(config=config, max_cache_len=2 * LENGTH, **sizes)
    inputs["use_cache"] = True


def _fill(config: PretrainedConfig, cache: Any) -> None:
    text = config.get_text_config()
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    for layer in range(text.num_hidden_layers):
        cache.update(torch.randn(BATCH, heads, 4, width), torch.randn(BATCH, heads, 4, width), layer)


VARIANTS: dict[str, Callable[[PretrainedConfig, dict[str, Any]], None]] = {
    "plain": plain, "mask": full_mask, "padded": padded, "hidden": hidden, "tuple": as_tuple, "eager-attention": plain,
    "dynamic-cache": dynamic_cache, "static-cache": static_cache, "bfloat16": plain, "autocast": plain, "base": plain,
}  # fmt: skip
IN_ANY_DTYPE = tuple(name for name in VARIANTS if name not in ("bfloat16", "autocast"))
FOR_IDS = ("mask", "padded")
FOR_DECODERS = ("dynamic-cache", "static-cache")


class Sweep:
    """Runs models.

    Args:
        options: of the command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.dtype = getattr(torch, options.dtype)

    def row(self, model_type: str, variant: str) -> Row:
        """Run one model in one way."""
        row = Row(model_type, variant)
        try:
            model, inputs = self.build(model_type, variant, dropout=0.0)
        except NoCaseError as error:
            row.forward = f"eager: {_first_line(error)}"
            return row
        row.model, row.inputs = type(model).__name__, tuple(inputs)
        row.forward = self._outcome(row, lambda: self.forward(row, model, inputs, variant))
        if self.options.train and row.forward == "right":
            row.training = self._outcome(row, lambda: self.train(row, model_type, variant))
            if " differs by " in row.training and self.dtype is torch.float32 and variant in IN_ANY_DTYPE:
                row.training = self._apart_from_rounding(row, model_type, variant)
        return row

    def _apart_from_rounding(self, row: Row, model_type: str, variant: str) -> str:
        """Say what training that differs in float32 does in float64, and beside eager's own rounding in float32."""
        found, wide = row.training, Sweep(argparse.Namespace(**{**vars(self.options), "dtype": "float64"}))
        told = self._outcome(row, lambda: wide.train(row, model_type, variant, torch.float64))
        if told.startswith("right"):
            return f"{IN_FLOAT64}{told.removeprefix('right')} ({found})"
        sweep = self if told.startswith("eager: ") else wide  # the model may compute in float32 whatever it is given
        beside = self._outcome(row, lambda: sweep.train(row, model_type, variant, torch.float32))
        if beside.startswith("right"):
            return f"{WITHIN_ROUNDING}{beside.removeprefix('right')} ({found})"
        return f"{found}; in float64: {told}; beside rounding of float32: {beside}"

    def _outcome(self, row: Row, run: Callable[[], str]) -> str:
        try:
            return run()
        except Difference as error:
            return str(error)
        except EagerError as error:
            return f"eager: {_first_line(error)}"
        except Exception as error:
            if self.options.verbose:
                traceback.print_exc()
            last = traceback.extract_tb(error.__traceback__)[-1]
            row.place = f"{Path(last.filename).name}:{last.lineno}"
            return _short(error)

    def build(self, model_type: str, variant: str, dropout: float | None) -> tuple[torch.nn.Module, dict[str, Any]]:
        """Return a model and its inputs."""
        case = tiny_case(model_type, variant == "base")
        model = case.model(dropout, "eager" if variant == "eager-attention" else None)
        dtype = torch.bfloat16 if variant == "bfloat16" else self.dtype
        model = model.to(dtype)
        inputs = case.inputs(model, self.options.labels)
        inputs = {
            k: v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in inputs.items()
        }
        VARIANTS[variant](model.config, inputs)
        return model, inputs

    def applies(self, model_type: str, variant: str) -> bool:
        """Whether a variant means anything for a type."""
        if variant not in (*FOR_IDS, *FOR_DECODERS):
            return True
        try:
            model, inputs = self.build(model_type, "plain", 0.0)
        except NoCaseError:
            return False
        if variant in FOR_DECODERS:
            return "CausalLM" in type(model).__name__ or "LMHead" in type(model).__name__
        return "input_ids" in inputs

    def forward(self, row: Row, model: torch.nn.Module, inputs: dict[str, Any], variant: str) -> str:
        """Compare two calls in evaluation, without gradients."""
        model = model.eval()
        compiled = thunder.jit(model)
        tolerance = FORWARD[torch.bfloat16 if variant in ("bfloat16", "autocast") else self.dtype]
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=variant == "autocast"):
            for call in range(2):
                eager_inputs, our_inputs = copy.deepcopy(inputs), copy.deepcopy(inputs)
                seed_all(call)
                eager = self.eager(model, eager_inputs)
                seed_all(call)
                start = time.process_time()
                ours = compiled(**our_inputs)
                if call == 0:
                    row.seconds = time.process_time() - start
                    row.operations = sum([count for _, count in thunder.explain(compiled).programs])
                    row.split = _split_off(compiled)
                row.exact = compare((ours, our_inputs), (eager, eager_inputs), tolerance)
        if thunder.cache_misses(compiled) != 1:
            raise Difference(f"{thunder.cache_misses(compiled)} programs: {thunder.explain_misses(compiled)[-1][:1]}")
        return "right"

    @staticmethod
    def eager(model: torch.nn.Module, inputs: dict[str, Any]) -> Any:
        """Call a model eagerly."""
        try:
            return model(**inputs)
        except Exception as error:
            raise EagerError(_short(error)) from error

    def train(self, row: Row, model_type: str, variant: str, near: torch.dtype | None = None) -> str:
        """Compare gradients, then ten steps of AdamW; perhaps beside eager with weights that differ by one rounding.

        Args:
            row: takes what is found.
            model_type, variant: what is run.
            near: the dtype of that rounding.
        """
        eager, inputs = self.build(model_type, variant, self.options.dropout)
        eager = eager.train()
        ours = copy.deepcopy(eager)
        beside = [rounded(eager, near, seed) for seed in range(ROUNDINGS)] if near else []
        compiled = thunder.jit(ours)

        def arguments() -> tuple[tuple[Any, ...], dict[str, Any]]:
            return (), copy.deepcopy(inputs)

        def call(model: Callable[..., Any]) -> Callable[..., Any]:
            return torch.autocast("cpu", torch.bfloat16)(model.__call__) if variant == "autocast" else model

        coarse = torch.bfloat16 if variant in ("bfloat16", "autocast") else self.dtype
        try:
            steps = train_both(eager, ours, (call(eager), call(compiled)), arguments, loss_of, coarse, beside)
        finally:
            row.programs, row.split = thunder.cache_misses(compiled), _split_off(compiled) or row.split
        missed = list(enumerate(thunder.explain_misses(compiled), 1))
        again = [why for known, why in missed if len(why) == known]  # the others are for another outcome of a known one
        if len(again) > 1:
            raise Difference(f"{row.programs} programs: {again[-1][-1:]}")
        return "right" if steps == STEPS else f"right for {steps} steps"


def _split_off(compiled: Any) -> tuple[str, ...]:
    """Return what a model runs in Python: why, and the place without this machine's folders."""
    found = [
        (f"{split.why.splitlines()[0]}", split.where or split.what) for split in thunder.explain(compiled).split_off
    ]
    return tuple([f"{re.sub(r'^.*/(?=transformers/)', '', where)}: {why}" for why, where in found])


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {_first_line(error)}"[:200]


def _first_line(text: object) -> str:
    """Return the first line of a text, without places of this machine."""
    return re.sub(r"[^\s'\"]*/site-packages", "site-packages", str(text).strip().split("\n")[0])[:200]


# --- the command line ------------------------------------------------------------------------------------------------


def group(name: str) -> Sequence[str]:
    """Return the types that a word on the command line stands for."""
    return all_model_types() if name == "all" else GROUPS.get(name, (name,))


def _probability(text: str) -> float | None:
    return None if text == "own" else float(text)


def parsed(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", help="types of models; or promised, more, all")
    parser.add_argument("--variant", action="append", choices=[*VARIANTS, "every"], help="how they are called")
    parser.add_argument("--train", action="store_true", help="compare gradients and ten steps")
    parser.add_argument(
        "--dropout", type=_probability, default=0.0, help="in training; own: each model's, of layers and paths, too"
    )
    parser.add_argument("--labels", action="store_true", help="give labels, and train with the model's own loss")
    parser.add_argument("--dtype", default="float32", choices=["float32", "float64"])
    parser.add_argument("--verbose", action="store_true", help="print tracebacks")
    parser.add_argument("--apart", type=int, help="run each type in a process of its own, so many CPU seconds at most")
    parser.add_argument(
        "--minutes", type=float, help="begin no further type after so many; --rows lets one go on later"
    )
    parser.add_argument("--rows", type=Path, help="file that keeps what was found; what it holds is not run again")
    parser.add_argument("--table", type=Path, help="file that the page is written to")
    return parser.parse_args(arguments)


def rows_of(options: argparse.Namespace, model_type: str) -> list[Row]:
    """Run one type in all ways asked for."""
    sweep = Sweep(options)
    variants = list(VARIANTS) if "every" in (options.variant or ()) else options.variant or ["plain"]
    return [sweep.row(model_type, variant) for variant in variants if sweep.applies(model_type, variant)]


def _send_rows(options: argparse.Namespace, model_type: str, to: Connection) -> None:
    torch.set_num_threads(1)
    resource.setrlimit(resource.RLIMIT_CPU, (options.apart, options.apart))
    to.send(rows_of(options, model_type))


def rows_apart(options: argparse.Namespace, model_type: str) -> list[Row]:
    """Run one type in a process of its own, whose crash is no other type's.

    What is limited is the processor's time, since a busy machine is no fault of the model. A process gets ten times as
    long by the clock, so that one that waits for ever ends, too.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send_rows, args=(options, model_type, there))
    process.start()
    there.close()
    try:
        if here.poll(10 * options.apart):
            return list(here.recv())
        return [Row(model_type, "plain", forward=f"no result in {10 * options.apart} seconds by the clock")]
    except EOFError:
        process.join()
        limit = process.exitcode in (-signal.SIGXCPU, -signal.SIGKILL)
        why = f"no result in {options.apart} seconds" if limit else f"the process ended with {process.exitcode}"
        return [Row(model_type, "plain", forward=why)]
    finally:
        process.kill()
        process.join()


def main(arguments: list[str] | None = None) -> int:
    options = parsed(arguments)
    warnings.simplefilter("ignore")
    if options.apart:
        torch.set_num_threads(1)
    known = kept(options.rows)
    models = [m for name in options.models or ["promised"] for m in group(name)]
    rows, end = [], time.monotonic() + 60 * (options.minutes if options.minutes is not None else math.inf)
    for model_type in models:
        before = [row for (name, _), row in known.found.items() if name == model_type]
        if not before and time.monotonic() > end:
            continue
        found = before or (rows_apart if options.apart else rows_of)(options, model_type)
        for row in found:
            rows.append(row)
            if not before:
                known.add(row)
                print(line(row), flush=True)
    compared = [row for row in rows if row.by_eager]
    print(f"{sum(r.right for r in rows)} of {len(compared)} right; eager runs these of {len(rows)}")
    if options.table:
        minutes = f"{options.minutes:g}" if options.minutes is not None else ""
        told = command("tools/transformers_sweep.py", arguments, ("--table", options.table), ("--minutes", minutes))
        text = page(rows, len(models), told)
        options.table.write_text(text, encoding="utf-8")
    return 0 if all(r.right for r in compared) else 1


if __name__ == "__main__":
    sys.exit(main())
