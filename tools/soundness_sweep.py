"""Compare random programs, changes between calls, models and stacks that change, and uses of results, with eager.

    python tools/soundness_sweep.py --examples 2000 --seed 1
    python tools/soundness_sweep.py --fused        the same with kernels of LLVM for tensors of any size
    python tools/soundness_sweep.py --native       with native code for every call, compared with the text, bit for bit

Prints the programs that differ, and how many agreed, were refused, and differed; exits with 1 if any differed.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import thunder_executors_llvm
from thunder_executors_llvm.paying import EVERYTHING

PACKAGES = Path(__file__).parent.parent / "packages"
sys.path[:0] = [str(PACKAGES / "thunder-frontend" / "tests"), str(PACKAGES / "thunder-native" / "tests")]

import array_programs  # noqa: E402
import autograd_sessions  # noqa: E402
import branch_programs  # noqa: E402
import changes  # noqa: E402
import container_programs  # noqa: E402
import operation_programs  # noqa: E402
import programs  # noqa: E402
import repeated_models  # noqa: E402
import state_programs  # noqa: E402
import test_changes  # noqa: E402, F401 - fills the list of cases
import trained_models  # noqa: E402
import wider_programs  # noqa: E402


class Draw:
    """Draws from strategies as hypothesis does, by a seed and without its database or shrinking."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def choice(self, options: Any) -> Any:
        """Return one of ``options``."""
        return self.random.choice(list(options))


def random_program(draw: Draw) -> programs.Program:
    """Return a program as :func:`programs.programs` would."""
    names, lines = ["x", "y"], []
    for _ in range(draw.random.randint(2, 8)):
        a, b = draw.choice(names), draw.choice(names)
        kind = draw.choice(["view", "view", "value", "write", "write"])
        if kind == "write":
            lines += draw.choice(programs.WRITES).format(a=a, b=b).splitlines()
        else:
            text = draw.choice(programs.VIEWS if kind == "view" else programs.VALUES).format(a=a, b=b)
            names.append(f"v{len(names)}")
            lines.append(f"{names[-1]} = {text}")
    returned = ", ".join([draw.choice(names) for _ in range(draw.random.randint(1, 4))])
    lines.append(f"return {draw.choice(['({},)', '[{}]'])}".format(returned))
    body = "\n".join("    " + line for line in lines)
    kinds = tuple([draw.choice(programs.ARGUMENTS) for _ in range(draw.random.randint(1, 3))])
    return programs.Program(f"def program(x, y):\n{body}\n", kinds)


def try_program(seed: int) -> tuple[str, str]:
    """Return how a random program compares, and a text about it."""
    return compared(programs.agrees_with_eager, random_program(Draw(seed)))


def try_wider_program(seed: int) -> tuple[str, str]:
    """Return how a random program of more kinds compares, and a text about it."""
    return compared(wider_programs.agrees_with_eager, wider_programs.random_program(seed))


def compared(agrees_with_eager: Callable[[Any], None], program: Any) -> tuple[str, str]:
    """Return how a program compares, and a text about it."""
    try:
        agrees_with_eager(program)
    except (programs.Refused, changes.ThunderError) as refusal:
        return "refused", str(refusal)
    except AssertionError as difference:
        return "differed", str(difference)
    return "agreed", ""


def try_changes(seed: int) -> tuple[str, str]:
    """Return how a random program under random changes compares, and a text about it."""
    draw = Draw(seed)
    cases = draw.random.sample(changes.CASES, draw.random.randint(2, 5))
    steps = [draw.choice([s for c in cases for s in c.changes]) for _ in range(draw.random.randint(2, 10))]
    try:
        changes.never_stale(cases, steps, calls=1)
    except AssertionError as difference:
        return "differed", f"{difference}\nafter the steps {steps}"
    except changes.ThunderError as refusal:
        return "refused", str(refusal)
    finally:
        changes.restore()
    return "agreed", ""


def try_model(seed: int) -> tuple[str, str]:
    """Return how a model that is changed between steps of training compares, and a text about it."""
    return compared(trained_models.agrees_with_eager, seed)


def try_stack(seed: int) -> tuple[str, str]:
    """Return how a stack of equal blocks that are changed between calls compares, and a text about it."""
    return compared(repeated_models.agrees_with_eager, seed)


def try_session(seed: int) -> tuple[str, str]:
    """Return how what users do in autograd with results of a program compares, and a text about it."""
    return compared(autograd_sessions.agrees_with_eager, seed)


def try_operations(seed: int) -> tuple[str, str]:
    """Return how a program that calls Thunder's own operations compares, and a text about it."""
    return compared(operation_programs.agrees_with_eager, seed)


def try_state(seed: int) -> tuple[str, str]:
    """Return how a program that leaves state behind compares, and a text about it."""
    return compared(state_programs.agrees_with_eager, seed)


def try_branches(seed: int) -> tuple[str, str]:
    """Return how a program with branches, loops, random numbers and calls that no program can hold compares."""
    return compared(branch_programs.agrees_with_eager, seed)


def try_containers(seed: int) -> tuple[str, str]:
    """Return how a program that reads lists, objects and arrays which are replaced between calls compares."""
    return compared(container_programs.agrees_with_eager, seed)


def try_arrays(seed: int) -> tuple[str, str]:
    """Return how a program that computes with arrays of NumPy among its arguments compares."""
    return compared(array_programs.agrees_with_eager, seed)


ATTEMPTS = {
    "branches": try_branches,
    "programs": try_program,
    "wider programs": try_wider_program,
    "changes": try_changes,
    "models": try_model,
    "stacks": try_stack,
    "sessions": try_session,
    "operations": try_operations,
    "state": try_state,
    "containers": try_containers,
    "arrays": try_arrays,
}


def main() -> int:
    """Run the sweep."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--examples", type=int, default=500, help="how many programs, and as many sequences of changes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=tuple(ATTEMPTS))
    parser.add_argument("--fused", action="store_true", help="let kernels take part where they are too small to pay")
    parser.add_argument("--native", action="store_true", help="make every call in native code, and by the text, too")
    parser.add_argument("--show", type=int, default=20, help="how many differences are printed")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.fused:
        thunder_executors_llvm.executor.unasked().selection = EVERYTHING
    compared = importlib.import_module("compared") if arguments.native else None  # it changes the executors at import
    counts: Counter[tuple[str, str]] = Counter()
    refusals: Counter[str] = Counter()
    shown, start = 0, time.process_time()
    for kind, attempt in ATTEMPTS.items():
        if arguments.only not in (None, kind):
            continue
        for seed in range(arguments.seed, arguments.seed + arguments.examples):
            how, text = attempt(seed)
            counts[kind, how] += 1
            if how == "refused":
                refusals[text.splitlines()[0][:140]] += 1
            elif how == "differed" and shown < arguments.show:
                shown += 1
                print(f"--- {kind} {seed}\n{text}\n")
    for (kind, how), count in sorted(counts.items()):
        print(f"{kind} that {how}: {count}")
    for text, count in refusals.most_common(12):
        print(f"  refused {count} times: {text}")
    if compared is not None:
        print(f"{compared.runs} runs of native code compared with the text")
    print(f"{time.process_time() - start:.1f} CPU seconds")
    return 1 if any(how == "differed" for _, how in counts) else 0


if __name__ == "__main__":
    sys.exit(main())
