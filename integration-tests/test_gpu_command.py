"""The command for machines with a GPU, on the CPU as far as that goes."""

import json
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parent.parent / "tools" / "gpu.py"


def report(folder, *words):
    done = subprocess.run(
        [sys.executable, str(TOOL), "--device", "cpu", "--out", str(folder), *words],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (folder / "report.html").read_text().startswith("<!doctype html>"), done.stderr
    (part,) = json.loads((folder / "report.json").read_text())["parts"]
    return done.returncode, part


def test_it_says_what_is_installed_and_who_can_run(tmp_path):
    status, part = report(tmp_path, "--only", "installed", "--minutes", "8")
    assert status == 0 and part["ended"] == "ended", part["log"]
    found = {row["what"]: row["found"] for row in part["rows"]}
    assert found["executor torch"] == "can run"
    for name in ("cudnn", "nvfuser", "apex", "transformer_engine"):
        assert "not installed" in found[f"executor {name}"] or "no CUDA device" in found[f"executor {name}"]


def test_a_part_that_takes_too_long_is_a_line_of_the_report(tmp_path):
    status, part = report(tmp_path, "--only", "checks", "--minutes", "0.02")
    assert status == 1 and part["ended"].startswith("was stopped after 1 s")
