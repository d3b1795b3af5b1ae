"""Ask cuDNN for plans for devices that are not here, and hold the executor's rules to its answers.

Run as ``python -m thunder_executors_cudnn.offline``. Needs the wheels of cuDNN and a C compiler, and no GPU.
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

from thunder_executors_cudnn.offline.devices import CAPABILITIES
from thunder_executors_cudnn.offline.verdicts import verdicts


def main() -> int:
    """Print a table of outcomes; the exit status says whether every answer of the library was foreseen."""
    parser = argparse.ArgumentParser(description="Ask cuDNN for plans for devices that are not here.")
    parser.add_argument("--count", type=int, default=200, help="problems for each device; 200 if not given")
    parser.add_argument("--built", type=int, default=20, help="how many of these are compiled; 20 if not given")
    parser.add_argument("--out", type=Path, help="a file for all verdicts, as JSON")
    words = parser.parse_args()
    with ProcessPoolExecutor(len(CAPABILITIES), get_context("spawn")) as pool:
        futures = [pool.submit(verdicts, capability, words.count, words.built) for capability in CAPABILITIES]
        found = [v for future in futures for v in future.result()]
    outcomes = ("built", "planned", "declined", "careful", "wrong")
    print("| device | " + " | ".join(outcomes) + " |")
    print("|---|" + "---|" * len(outcomes))
    for capability in CAPABILITIES:
        here = [v.outcome for v in found if v.capability == capability]
        print(f"| sm_{capability} | " + " | ".join([str(here.count(o)) for o in outcomes]) + " |")
    wrong = [v for v in found if v.outcome == "wrong"]
    for v in wrong:
        print(f"not foreseen, sm_{v.capability}: {v.problem}: rule {v.rule!r}, library {v.library!r}", file=sys.stderr)
    if words.out:
        words.out.write_text(json.dumps([asdict(v) for v in found], indent=1), encoding="utf-8")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
