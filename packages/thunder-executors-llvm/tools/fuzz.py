"""Compare random programs in kernels with PyTorch call by call, by several threads and between protected pages.

python packages/thunder-executors-llvm/tools/fuzz.py [number of programs] [first seed]
"""

import faulthandler
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # more threads than processors shall not spin
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import pytest  # noqa: E402
from random_programs import case, check  # noqa: E402  (which lies beside the tests)


def main() -> int:
    """Run the programs; report those that differ."""
    count, first = (int(word) for word in [*sys.argv[1:], *["1000", "0"][len(sys.argv) - 1 :]])
    start, taken, wrong = time.perf_counter(), 0, []
    faulthandler.enable()
    patch = pytest.MonkeyPatch()
    for seed in range(first, first + count):
        try:
            taken += check(case(seed), patch)
        except AssertionError as error:  # told at the end, too
            wrong.append(seed)
            print(error, flush=True)
        if not (seed + 1 - first) % 1000:
            print(f"{seed + 1 - first} programs, {taken} of them all in kernels, {len(wrong)} wrong", flush=True)
    seconds = time.perf_counter() - start
    print(f"{count} programs, {taken} of them all in kernels, {len(wrong)} wrong, in {seconds:.0f} s: {wrong}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
