"""The tutorial on many processes: its script gives the same losses by each of its commands."""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest

TEXT = (Path(__file__).parents[1] / "docs" / "distributed.md").read_text(encoding="utf-8")
TUTORIAL = TEXT.split("## From one process to many nodes")[1].split("\n## ")[0]
SCRIPT = re.search(r"```python notest\n(.*?)```", TUTORIAL, re.S)[1]
THREADS = """
names = [open(f"/proc/self/task/{task}/comm").read() for task in os.listdir("/proc/self/task")]
assert not [name for name in names if "gloo" in name], names
"""
COMMANDS = [line for block in re.findall(r"```bash\n(.*?)```", TUTORIAL, re.S) for line in block.splitlines()]


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    file = tmp_path_factory.mktemp("tutorial") / "train.py"
    file.write_text(SCRIPT + THREADS, encoding="utf-8")
    return file


def started(command, script, port):
    """Start a command of the page as the shell does, with this Python, and this machine as each node."""
    words = shlex.split(command.replace("node0:29400", f"127.0.0.1:{port}"), comments=True)
    more = dict(word.split("=") for word in words if re.match(r"[A-Z]+=", word))
    rest = words[len(more) :]
    assert rest[0] == "torchrun" and rest[-1] == script.name
    where = [] if "--rdzv-endpoint" in rest else ["--master-port", str(port)]
    environment = {**os.environ, **more, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    run = [sys.executable, "-m", "torch.distributed.run", *where, *rest[1:]]
    return subprocess.Popen(run, cwd=script.parent, env=environment, stdout=subprocess.PIPE, text=True)


def losses(command, script):
    """Return the lines that a command prints; one that is for several nodes is run once for each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    nodes = int((re.search(r"--nnodes (\d+)", command) or ["", "1"])[1])
    runs = [started(command, script, port) for _ in range(nodes)]
    try:
        printed = [run.communicate(timeout=500)[0] for run in runs]
    finally:
        for run in runs:
            run.kill()
    assert [run.returncode for run in runs] == [0] * nodes
    return re.findall(r"step \d: loss [\d.]+", "".join(printed))


def test_each_command_prints_the_losses_of_one_process(script):
    alone, *others = [losses(command, script) for command in COMMANDS]
    assert len(alone) == 5 and len(set(alone)) == 5
    assert len(others) == 3
    for found in others:
        assert found == alone
