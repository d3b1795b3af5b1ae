"""A few of the faults that ``python -m thunder_benchmarks.faults`` injects, and what is said of runs that go wrong."""

import os
import subprocess
import sys

import pytest

from thunder_benchmarks.faults import Fault, faults
from thunder_benchmarks.faults.runs import _ends


@pytest.mark.parametrize(
    "kind, phase", [("kill", "backward"), ("stop", "checkpoint"), ("slow", "forward"), ("partition", "compile")]
)
def test_the_others_raise_in_time_and_training_goes_on(kind, phase):
    command = [sys.executable, "-W", "ignore", "-m", "thunder_benchmarks.faults", "--runs", "1", "--timeout", "4"]
    done = subprocess.run(
        [*command, "--kinds", kind, "--phases", phase, "--seed", "3"],
        env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"| {phase} | {kind} | 1 |" in done.stdout
    assert "1 runs, 0 not as they should be" in done.stdout


def test_every_kind_strikes_in_every_phase():
    assert len({(f.kind, f.phase) for f in faults(16, ["kill", "stop"], ["forward", "backward"], 0)}) == 4


FAULT = Fault("kill", "forward", "ddp", 1, 2, 0)


@pytest.mark.parametrize(
    "said, wrong",
    [
        ({}, "rank 0 did not end"),
        ({0: ""}, "rank 0 noticed nothing"),
        ({0: "RuntimeError: socket closed"}, "rank 0 raised RuntimeError: socket closed"),
        ({0: "CollectiveError: over axis 'shard' raised by "}, "rank 0 does not say 'training.py:'"),
    ],
)
def test_a_process_that_hangs_or_says_too_little_is_noticed(said, wrong):
    (found,) = _ends(FAULT, said)
    assert found.startswith(wrong)
