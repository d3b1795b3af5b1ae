"""Ways of training in parallel that are compared with one process."""

import os
import subprocess
import sys

from thunder_benchmarks.configurations import MODELS, WAYS, configurations


def test_sixty_configurations_and_more_are_compared():
    found = list(configurations())
    assert len(set(found)) == len(found) >= 60
    assert {at.model for at in found} == set(MODELS) and {at.way for at in found} == set(WAYS)


def test_one_of_them_is_as_in_one_process(tmp_path):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "thunder_benchmarks.configurations", "--steps", "3", "--write", str(tmp_path / "table.md")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--only", "| network | fsdp ZERO2 | AdamW |"], check=True, timeout=300, env=environment)
    *_, row = (tmp_path / "table.md").read_text().splitlines()
    assert row.startswith("| network | fsdp ZERO2 | AdamW |") and row.endswith("| yes |")
