"""Count how often a first call goes from one module of Thunder's to another, and what it enters.

python tools/module_switches.py          `lambda x: x * 2 + 1`, and a GPT of two layers
"""

import sys
from collections.abc import Callable
from typing import Any

import torch

import thunder
from thunder_benchmarks.gpt import GPT, GPTConfig


def entered(call: Callable[[], Any]) -> list[tuple[str, str]]:
    """Return the functions of Thunder's that a call enters, each time: module and name."""
    found: list[tuple[str, str]] = []

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            module = frame.f_globals.get("__name__") or ""
            if module.startswith("thunder_"):
                found.append((module, frame.f_code.co_qualname))

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found


def main() -> int:
    torch.manual_seed(0)
    x = torch.ones(3)
    gpt = GPT(GPTConfig(vocabulary=64, layers=2))
    tokens = torch.zeros(1, 8, dtype=torch.int64)
    thunder.jit(lambda x: x - 1)(x)  # what is made once is no part of it
    programs = {
        "x * 2 + 1": lambda: thunder.jit(lambda x: x * 2 + 1)(x),
        "GPT of 2 layers": lambda: thunder.jit(gpt)(tokens, tokens),
    }
    print(f"{'program':20} {'calls':>9} {'switches':>9} {'modules':>8} {'functions':>10}")
    for name, program in programs.items():
        found = entered(program)
        switches = sum([a[0] != b[0] for a, b in zip(found, found[1:], strict=False)])
        print(f"{name:20} {len(found):9} {switches:9} {len({m for m, _ in found}):8} {len(set(found)):10}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
