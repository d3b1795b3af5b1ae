"""Measure targets: single operations and models, compilers and lists of executors side by side.

python -m thunder_benchmarks.targets --list
python -m thunder_benchmarks.targets softmax gelu --compilers eager thunder:torch thunder:llvm+torch
python -m thunder_benchmarks.targets nanogpt hf-llama --mode training --set layers=12 --json o.json --picture o.svg
python -m thunder_benchmarks.targets litgpt --set config=pythia-70m layers=2
torchrun --nproc-per-node 2 -m thunder_benchmarks.targets nanogpt --mode training --compilers torch-ddp ddp fsdp
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table

from thunder_benchmarks.machine import circumstances, keep_freed_memory
from thunder_benchmarks.targets import MODES, TARGETS, Measured, cases, drawn, measure, peak


def setting(text: str) -> tuple[str, Any]:
    """Return the name and value of ``name=value``."""
    name, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form name=value")
    return name, int(value) if value.isdigit() else value


def table(found: Sequence[Measured]) -> Table:
    """Return what was measured, for a terminal."""
    clock = f"µs, {dist.get_world_size()} processes" if dist.is_initialized() else "CPU µs"
    made = Table("target", "mode", "compiler", clock, "of eager", "GFLOP/s", "of peak", "peak MB")
    eager = {m.target: m.microseconds for m in found if m.compiler == "eager"}
    for m in found:
        if m.why_not:
            made.add_row(m.target, m.mode, m.compiler, m.why_not)
            continue
        share = f"{m.microseconds / eager[m.target]:.2f}" if eager.get(m.target) else ""
        speed = (f"{m.gigaflops:.1f}", f"{m.of_peak:.0%}") if m.gigaflops else ("", "")
        held = f"{m.peak_bytes / 1e6:.2f}"
        made.add_row(m.target, m.mode, m.compiler, f"{m.microseconds:.1f}", share, *speed, held)
    return made


def main(words: Sequence[str] | None = None) -> list[Measured]:
    """Measure what the command line asks for, on all processes that ``torchrun`` launched; the first one prints it."""
    if not dist.is_torchelastic_launched():
        return _measured(words)
    dist.init_process_group("gloo")
    try:
        return _measured(words)
    finally:
        gc.collect()  # what DDP keeps in a cycle would end the group's threads with the process, and may wait for ever
        dist.destroy_process_group()


def _measured(words: Sequence[str] | None) -> list[Measured]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all but those of libraries, if left out")
    parser.add_argument("--list", action="store_true", help="print the targets with their sizes")
    parser.add_argument("--mode", choices=MODES, default="forward")
    parser.add_argument("--compilers", nargs="+", default=["eager", "thunder"])
    parser.add_argument("--set", nargs="+", type=setting, default=[], metavar="SIZE=NUMBER")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--block", type=float, default=0.1, help="seconds")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path, help="SVG")
    options = parser.parse_args(words)
    if options.list:
        for one in TARGETS.values():
            print(one.name, *[f"{name}={size}" for name, size in one.sizes.items()])
        return []
    names = options.targets or [name for name, one in TARGETS.items() if one.make.__module__ == cases.__name__]
    missing = [name for name in names if name not in TARGETS]
    if missing:
        parser.error(f"there is no target {', '.join(missing)}; --list prints all")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    keep_freed_memory()  # large tensors' pages would be faulted in anew by chance, for one compiler and not for another
    chosen = [TARGETS[name] for name in names]
    unused = [n for n, _ in options.set if not any(n in one.sizes for one in chosen)]
    if unused:
        parser.error(f"none of these targets has {', '.join(unused)}")
    best = peak()
    sizes = dict(options.set)
    found = measure(chosen, options.compilers, options.mode, best, options.rounds, options.block, **sizes)
    if dist.is_initialized() and dist.get_rank():
        return found
    Console(width=140).print(table(found))
    where = circumstances()
    if options.json:
        told = {"circumstances": where, "peak_gigaflops": best / 1e9, "sizes": sizes}
        options.json.write_text(json.dumps({**told, "measured": [asdict(m) for m in found]}, indent=1) + "\n")
    if options.picture:
        options.picture.write_text(drawn(found, where), encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
