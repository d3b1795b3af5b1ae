"""Runs of the tests on versions of PyTorch: what a run that was cut off found is kept, and the rest is run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools"))

import matrix  # noqa: E402

FILES = ["packages/thunder-vmap/tests/test_batching.py", "packages/thunder-vmap/README.md"]


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """The words of all runs, each of which finds what is put into ``next``."""
    monkeypatch.setattr(matrix, "HOME", tmp_path)
    made = {"words": [], "next": {}}

    def run(environment, words):
        made["words"].append(words)
        return made["next"]

    monkeypatch.setattr(matrix, "run", run)
    return made


def cut_off(environment, counts):
    """Leave what a run that was cut off leaves."""
    folder = matrix.reports_of(environment)
    folder.mkdir()
    (folder / "files.json").write_text(json.dumps(counts))


def test_the_rest_of_a_run_that_was_cut_off_is_run_and_counted_with_what_it_found(runs, tmp_path):
    environment = tmp_path / "some"
    cut_off(environment, {"thunder-vmap": {FILES[0]: {"passed": 14, "failed": 1}}})
    runs["next"] = {"thunder-vmap": {FILES[1]: {"passed": 1}}}
    found = matrix.run_and_keep(environment, ["thunder-vmap"], "rest")
    (words,) = runs["words"]
    assert FILES[1] in words and FILES[0] not in words
    assert found == {"thunder-vmap": {FILES[0]: {"passed": 14, "failed": 1}, FILES[1]: {"passed": 1}}}
    assert matrix.cell(found["thunder-vmap"]) == "15, 1 failed"


def test_files_in_which_a_test_failed_are_run_again(runs, tmp_path):
    environment = tmp_path / "some"
    cut_off(environment, {"thunder-vmap": {FILES[0]: {"passed": 13, "failed": 1}, FILES[1]: {"passed": 1}}})
    runs["next"] = {"thunder-vmap": {FILES[0]: {"passed": 14}}}
    found = matrix.run_and_keep(environment, [], "failed")
    assert runs["words"] == [[FILES[0]]]
    assert found == {"thunder-vmap": {FILES[0]: {"passed": 14}, FILES[1]: {"passed": 1}}}


def test_a_run_of_all_files_forgets_what_an_earlier_one_found(runs, tmp_path):
    environment = tmp_path / "some"
    runs["next"] = {"thunder-vmap": {FILES[0]: {"passed": 14}}, "thunder-ir": {"a.py": {"passed": 2}}}
    matrix.run_and_keep(environment, [], None)
    runs["next"] = {}  # as one that is killed before the first file ends
    matrix.run_and_keep(environment, ["thunder-vmap"], None)
    assert "thunder-vmap" not in json.loads((tmp_path / "some.json").read_text())
    assert FILES[0] in matrix.unreached(matrix.counts_in(tmp_path / "some.json"), ["thunder-vmap"])


def test_a_run_that_is_killed_leaves_what_its_files_came_to(tmp_path):
    command = [sys.executable, str(ROOT / "tools" / "run_tests.py"), "packages/thunder-guards/README.md", FILES[1]]
    environment = {**os.environ, "THUNDER_TEST_REPORTS": str(tmp_path)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        while not (tmp_path / "files.json").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
    found = json.loads((tmp_path / "files.json").read_text())
    assert found["thunder-vmap"][FILES[1]]["passed"] == 1
