"""Functions compiled ahead of time do what eager does; tools/aot_page.py writes the page that shows all of it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
import aot_cases
import aot_page

REFUSED = {
    ("subclasses", "an argument"),
    ("subclasses", "written"),
    ("subclasses", "a view as a result"),
    ("gradients", "of a custom function that returns its argument"),
    ("modules", "a recurrent one"),
}


@pytest.mark.parametrize("group", dict.fromkeys(case.group for case in aot_cases.CASES))
def test_what_becomes_of_aliases_writes_and_sizes_is_what_becomes_of_them_in_eager(group):
    problems = []
    for case in [c for c in aot_cases.CASES if c.group == group]:
        for grad in case.gradients:
            told = aot_page.outcome(case, grad, aot_page.PARTITIONS[grad])
            if not told.startswith(("right", "more")) and not (
                told.startswith("refused") and (group, case.name) in REFUSED
            ):
                problems.append(f"{case.name}, gradients {grad}: {told}")
    assert not problems


def test_what_is_refused_is_few():
    refused = [c for c in aot_cases.CASES if (c.group, c.name) in REFUSED]
    assert len(refused) == len(REFUSED) < 0.05 * len(aot_cases.CASES)
