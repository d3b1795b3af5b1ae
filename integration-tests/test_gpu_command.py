"""The command for machines with a GPU: rehearsed on the CPU, and when checks end their process."""

import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

LOOPS_REFUSED = "only 0-dimensional arrays can be converted to Python scalars"
TOOLS = Path(__file__).resolve().parent.parent / "tools"


def report(folder, *words):
    done = subprocess.run(
        [sys.executable, str(TOOLS / "gpu.py"), "--out", str(folder), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (folder / "report.html").read_text().startswith("<!doctype html>"), done.stderr
    return done.returncode, json.loads((folder / "report.json").read_text())["parts"]


def test_it_says_what_is_installed_and_who_can_run(tmp_path):
    status, (needed, part) = report(tmp_path, "--rehearse", "--only", "installed", "--minutes", "8")
    assert needed["held"] and "optree" in str(needed["rows"])
    assert status == 0 and part["ended"] == "ended", part["log"]
    found = {row["check"]: row["found"] for row in part["rows"]}
    assert found["executor torch"] == "can run"
    for name in ("cudnn", "nvfuser", "transformer_engine"):
        assert "not installed" in found[f"executor {name}"] or "no CUDA device" in found[f"executor {name}"]


def test_a_part_that_takes_too_long_is_a_line_of_the_report(tmp_path):
    status, (_, part) = report(tmp_path, "--rehearse", "--only", "checks", "--minutes", "0.02")
    assert status == 1 and part["ended"] == "was stopped: its time was over"


@pytest.mark.slow
@pytest.mark.parametrize("part", ["checks", "conformance", "training", "opinfo", "bench"])
def test_all_that_a_gpu_is_asked_for_is_rehearsed(part, tmp_path):
    status, (_, found) = report(tmp_path, "--rehearse", "--only", part, "--minutes", "60")
    outcomes = [row["outcome"] for row in found["rows"]]
    if LOOPS_REFUSED in str(found["rows"]):
        pytest.skip(
            "this Triton's interpreter runs no loops with this NumPy: one before Triton 3.7 wants one before 2.4"
        )
    assert status == 0 and found["ended"] == "ended", [r for r in found["rows"] if r["outcome"] not in ("held",)]
    assert outcomes.count("held") > 9 and set(outcomes) <= {"held", "not here"}


def test_what_thunder_needs_and_is_not_there_is_named(tmp_path, monkeypatch):
    (tmp_path / "optree.py").write_text("raise ModuleNotFoundError('No module named optree')\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    status, (needed,) = report(tmp_path / "out", "--rehearse", "--minutes", "1")
    assert status == 1 and not needed["held"]
    assert needed["rows"][-1] == {
        "check": "import thunder", "outcome": "error", "found": "ModuleNotFoundError: No module named optree",
    }  # fmt: skip
    assert "try: pip install" in needed["log"][-1]


FAILING = """
import ctypes, os, sys, time
sys.path.insert(0, {tools!r})
import gpu_part
from gpu_machine import Check

def crash():
    ctypes.string_at(0)

def broken():
    raise RuntimeError("CUDA error: an illegal memory access was encountered")

def wrong():
    assert False, "off by 1"

def checks(machine):
    yield Check("good", lambda: "fine")
    yield Check("crashes", crash)
    yield Check("wrong", wrong)
    yield Check("hangs", lambda: time.sleep(100), limit=0.1)
    yield Check("breaks the device", broken)
    yield Check("last", lambda: "fine")

gpu_part.HOMES["checks"] = "__main__"
sys.exit(gpu_part.main())
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_check_that_ends_its_process_leaves_the_others(jobs, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(TOOLS))
    spec = importlib.util.spec_from_file_location("gpu_command", TOOLS / "gpu.py")
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "gpu_part.py").write_text(FAILING.format(tools=str(TOOLS)))
    variables = command.environment(tmp_path, rehearse=True)
    monkeypatch.setattr(command, "ROOT", tmp_path)
    began = time.monotonic()
    part = command.run_part("checks", jobs, True, tmp_path, 500.0, variables)
    assert time.monotonic() - began < 400
    found = {row["check"]: (row["outcome"], row["found"]) for row in part["rows"]}
    assert found == {
        "good": ("held", "fine"),
        "crashes": ("crashed", "was killed by SIGSEGV"),
        "wrong": ("wrong", "off by 1"),
        "hangs": ("crashed", "was stopped: a check took more than 1 s"),
        "breaks the device": ("error", "RuntimeError: CUDA error: an illegal memory access was encountered"),
        "last": ("held", "fine"),
    }
    assert not part["held"]
