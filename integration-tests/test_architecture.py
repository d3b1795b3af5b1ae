"""The table of who owns which state, on the page on the architecture, is what a first call makes and keeps."""

import json
import re
import subprocess
import sys
from pathlib import Path

import torch

from thunder_frontend import jit

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
COMPILED, ATTEMPT = "with the compiled function", "one attempt"


def owners() -> dict[str, str]:
    """Return the classes that own state, by the table, each with how long it lives."""
    text = PAGE.read_text(encoding="utf-8").split("## Who owns which state")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")
    ]
    found = {}
    for _, owner, lives, _ in rows[1:]:
        named = [name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", owner)]
        found.update({name: lives for name in named if name[0].isupper()})
    return found


def made_by(function, *args) -> set[str]:
    """Return the names of the classes of ours that a call makes objects of, and of what these are derived from."""
    made: set[type] = set()

    def profile(frame, event, _):
        if event == "call" and frame.f_code.co_name == "__init__":
            made.add(type(frame.f_locals[frame.f_code.co_varnames[0]]))

    sys.setprofile(profile)
    try:
        function(*args)
    finally:
        sys.setprofile(None)
    return {cls.__name__ for kind in made for cls in kind.__mro__ if cls.__module__.startswith("thunder_")}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(2)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x).relu_()
        return x


def test_a_first_call_makes_all_owners_of_state_that_the_table_names():
    def first_call():
        kept.append(jit(Model()))
        kept[0](torch.ones(2, 3))

    kept: list[object] = []
    named = owners()
    assert {COMPILED, ATTEMPT} <= set(named.values()) and len(named) > 12
    assert set(named) - made_by(first_call) == set()


LIVING = """
import gc, json
import torch
from thunder_frontend import jit

compiled = jit(torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)))
compiled(torch.ones(2, 3))
gc.collect()
kinds = {cls for value in gc.get_objects() for cls in type(value).__mro__}
print(json.dumps([cls.__name__ for cls in kinds if str(cls.__module__).startswith("thunder_")]))
"""


def test_what_lives_for_one_attempt_is_gone_after_a_first_call_and_the_rest_is_not():
    run = subprocess.run([sys.executable, "-c", LIVING], capture_output=True, text=True, check=True)
    living = set(json.loads(run.stdout))
    for owner, lives in owners().items():
        assert lives != ATTEMPT or owner not in living, f"{owner} outlives the attempt that it belongs to"
        assert lives != COMPILED or owner in living, f"{owner} does not live as long as the compiled function"
