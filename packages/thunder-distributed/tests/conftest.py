"""Tests on several processes: files of scenarios, each file run once by a few gloo processes of one thread each."""

import ast
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import pytest
import torch.distributed as dist

HERE = Path(__file__).resolve().parent
LIMIT = 600.0  # seconds for a whole file on a machine that does other things, too; a few are usual
GRACE = 5.0  # seconds in which the others may end once one has failed


@cache
def outcomes(file: Path, size: int) -> dict[str, str]:
    """Run a file's scenarios, and return for each what went wrong; an empty text where nothing did."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder) / f"log_{rank}" for rank in range(size)]
        processes = []
        for rank, log in enumerate(logs):
            command = [sys.executable, str(HERE / "worker.py"), str(file), str(rank), str(size), folder]
            with open(log, "w", encoding="utf-8") as output:
                processes.append(
                    subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=folder)
                )
        why = _ended(processes)
        found: dict[str, list[str]] = {name: [] for name in scenarios_in(file)}
        ran = dict.fromkeys(found, 0)
        for rank in range(size):
            results = Path(folder) / f"results_{rank}"
            for line in results.read_text(encoding="utf-8").splitlines() if results.exists() else ():
                name, outcome = json.loads(line)
                ran[name] += 1
                found[name] += [f"rank {rank}:\n{outcome}"] if outcome else []
        tails = "\n".join(f"rank {r}: {log.read_text(encoding='utf-8')[-3000:]}" for r, log in enumerate(logs))
        for name, count in ran.items():
            if count < size and not found[name]:
                found[name].append(f"did not end in all processes ({why})\n{tails}")
        return {name: "\n".join(texts) for name, texts in found.items()}


def _ended(processes: list[subprocess.Popen]) -> str:
    """Wait for processes, end those that others have left alone, and say what happened."""
    limit, why = time.monotonic() + LIMIT, "all ended"
    while any(p.poll() is None for p in processes):
        if time.monotonic() > limit:
            why = why if why != "all ended" else f"no end after {LIMIT:.0f} s"
            for process in processes:
                process.kill()
        elif why == "all ended" and any(p.poll() for p in processes):
            why = "one failed, and the others were ended"
            limit = time.monotonic() + GRACE
        time.sleep(0.05)
    return why


@cache
def scenarios_in(file: Path) -> tuple[str, ...]:
    """Return the names of a file's scenarios."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return tuple(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("scenario_"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``scenario`` is one for each scenario of the file that its module names, ``SCENARIOS``."""
    if "scenario" in metafunc.fixturenames:
        file = HERE / metafunc.module.SCENARIOS
        names = scenarios_in(file)
        metafunc.parametrize("scenario", names, ids=[name.removeprefix("scenario_") for name in names])


@pytest.fixture
def check(request: pytest.FixtureRequest):
    """Fail with what went wrong in any of the processes."""

    def checked(scenario: str, size: int = 2) -> None:
        outcome = outcomes(HERE / request.module.SCENARIOS, size)[scenario]
        assert not outcome, outcome

    return checked


@pytest.fixture
def one_process():
    """A process group of this process alone."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()
