"""Parts of `tools/gpu.py`: what is installed, and the tests of packages that ask for a GPU."""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch
from gpu_machine import Check, Machine, NotHere

from thunder_executors import Executor, get_all_executors

ROOT = Path(__file__).resolve().parent.parent
LIBRARIES = (
    "torch", "triton", "nvidia-cudnn-frontend", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "transformer-engine",
    "liger-kernel", "flash-attn", "litgpt", "transformers", "pytest",
)  # fmt: skip
WHOLE = ("triton", "cudnn", "nvfuser", "apex", "transformer-engine")
"""Executors whose packages run all of their tests; of other packages those marked ``gpu``."""


def installed(machine: Machine) -> Iterator[Check]:
    """What is here, and which executors can run."""
    yield Check("Python", platform.python_version)
    for name in LIBRARIES:
        yield Check(name, partial(_version, name))
    yield Check("CUDA of PyTorch", lambda: str(torch.version.cuda))
    for i in range(torch.cuda.device_count() if not machine.rehearsed else 0):
        yield Check(f"device {i}", partial(_device, i))
    if not machine.rehearsed:
        yield Check("a product on the device", lambda: _product(machine))
    for executor in get_all_executors():
        yield Check(f"executor {executor.name}", partial(_able, executor))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        raise NotHere("not installed") from None


def _device(i: int) -> str:
    p = torch.cuda.get_device_properties(i)
    return f"{p.name}, {p.major}.{p.minor}, {p.total_memory >> 30} GiB, {p.multi_processor_count} processors"


def _product(machine: Machine) -> str:
    x = torch.randn(256, 256, device=machine.device)
    worst = float(((x @ x).cpu() - x.cpu() @ x.cpu()).abs().max())
    assert worst < 1.0, f"off by {worst:.1e}"
    return f"off by {worst:.1e}"


def _able(executor: Executor) -> str:
    reason = executor.missing()
    if reason is not None:
        raise NotHere(reason)
    return "can run"


def tests(machine: Machine) -> Iterator[Check]:
    """Tests of packages, each package's in a process of its own."""
    folders = [(folder, "tests/test_*.py") for folder in sorted((ROOT / "packages").iterdir())]
    for folder, names in [*folders, (ROOT / "integration-tests", "test_*.py")]:
        whole = folder.name.removeprefix("thunder-executors-") in WHOLE
        files = [f for f in sorted(folder.glob(names)) if whole or "mark.gpu" in f.read_text()]
        if files:
            chosen = [] if whole and not machine.rehearsed else ["-m", "gpu"]
            yield Check(folder.name, partial(_tested, [str(f) for f in files], chosen), limit=240.0)


def _tested(files: list[str], chosen: list[str]) -> str:
    if importlib.util.find_spec("pytest") is None:
        raise NotHere("pytest is not installed")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--maxfail=20", "-rf", *chosen]
    if importlib.util.find_spec("xdist") is not None:
        words += ["-n", "4"]
    done = subprocess.run([*words, *files], cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    print(done.stdout[-8000:], done.stderr[-2000:], flush=True)
    found = re.findall(r"^=*\s*(\d+ \w+.*?in .*?)\s*=*$", done.stdout, re.M)
    told = found[-1] if found else f"pytest exited with {done.returncode}"
    failed = "; ".join(re.findall(r"^FAILED (\S+)", done.stdout, re.M)[:10])
    assert done.returncode in (0, 5), f"{told}; {failed}"
    return told
