"""The drawing of a miss in the README is what a first call does."""

import re
import sys
from pathlib import Path

import torch

from thunder_frontend import jit

README = Path(__file__).parents[1] / "README.md"


def drawn():
    """The lines of the drawing: how deep each stands, the function, and the module or package that it is in."""
    text = README.read_text(encoding="utf-8").split("## A miss, from call to generated code")[1]
    block = re.search(r"```text\n(.*?)```", text, re.S)[1]
    rows = [re.match(r"( *)(\S+) +([\w.]+)", line).groups() for line in block.splitlines()]
    return [(len(indent) // 4, function, module) for indent, function, module in rows]


def entered(compiled, *args):
    """The functions that a call enters: for each, those it was reached from, itself last, as (function, module)."""
    stack, found = [], []

    def profile(frame, event, _):
        if event == "call":
            stack.append((frame.f_code.co_qualname, frame.f_globals.get("__name__") or ""))
            found.append(tuple(stack))
        elif event == "return" and stack:
            stack.pop()

    sys.setprofile(profile)
    try:
        compiled(*args)
    finally:
        sys.setprofile(None)
    return found


def is_drawn_as(row, call):
    return call[0] == row[1] and (call[1] == row[2] or call[1].startswith(row[2] + "."))


def test_a_miss_goes_through_the_functions_that_the_drawing_names_in_their_order():
    found = entered(jit(lambda x: x * 2 + 1), torch.ones(3))
    rows, above, place = drawn(), [], 0
    assert len(rows) > 20
    for row in rows:
        above = above[: row[0]]
        while place < len(found):
            *outer, call = found[place]
            place += 1
            if is_drawn_as(row, call) and all(any(is_drawn_as(r, o) for o in outer) for r in above):
                break
        else:
            raise AssertionError(f"{row[1]} of {row[2]} is not entered there, below {[r[1] for r in above]}")
        above.append(row)
