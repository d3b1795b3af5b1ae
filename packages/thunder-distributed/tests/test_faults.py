"""A process that dies or hangs: the other one raises, and names what it waited for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

LETTING_GO = """
import weakref
import torch.distributed as dist
import thunder_distributed

dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
group = weakref.ref(dist.group.WORLD)
import torch._dynamo, torch.distributed.nn  # as PyTorch's optimizers do

dist.destroy_process_group()
assert group() is None
"""

SCRIPT = Path(__file__).with_name("dying_process.py")


def test_a_group_ends_where_it_is_destroyed():
    """Otherwise its threads outlive the interpreter, which ends the process with an abort."""
    subprocess.run([sys.executable, "-c", LETTING_GO], check=True, timeout=300)


@pytest.mark.parametrize("fault", ["dies", "hangs"])
def test_the_others_raise_within_the_timeout(fault, tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(SCRIPT)]
    second = subprocess.Popen([*command, "1", str(tmp_path), fault], env=environment, stderr=subprocess.DEVNULL)
    try:
        done = subprocess.run(
            [*command, "0", str(tmp_path), fault], env=environment, capture_output=True, text=True, timeout=240
        )
    finally:
        second.kill()
        second.wait()
    assert "all_gather of float32[1, 8] over axis 'shard' (2) did not end" in done.stdout, done.stdout + done.stderr
    assert "raised by t" in done.stdout and "return self.down(self.up(x).relu())" in done.stdout
    assert "Another process has died, hangs, or runs another program" in done.stdout
