"""Where something was measured, and the CPU time that it takes."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

import thunder


def processor() -> str:
    """Return what the machine calls its processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def circumstances() -> list[str]:
    """Return where and when this is: the machine, versions, the date, and what else the machine does."""
    threads = torch.get_num_threads()
    used = "one thread" if threads == 1 else f"{threads} threads"
    load = f"; load average {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return [
        f"{processor()}, {os.cpu_count()} cores, {used}{load}",
        f"Thunder {thunder.__version__}, PyTorch {torch.__version__}, Python {platform.python_version()}; "
        f"{datetime.now(UTC):%Y-%m-%d}",
    ]


TRIM_THRESHOLD, MMAP_MAX = -1, -4
"""Parameters of ``mallopt``, as ``malloc.h`` numbers them."""


def keep_freed_memory() -> bool:
    """Let memory that this process frees stay with it; whether the C library can do that.

    Otherwise whether a step faults in the pages of its tensors anew depends on where in the heap they happen to lie,
    which differs from process to process, and takes longer than many kernels.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(TRIM_THRESHOLD, 2**31 - 1) and mallopt(MMAP_MAX, 0))


def cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it waited for, such as a C++ compiler."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum([u.ru_utime + u.ru_stime for u in usages])


def in_a_fresh_process(*words: str, **settings: str) -> Any:
    """Return what Python prints last, as JSON, called with these words and environment variables."""
    environment = {**os.environ, **settings}
    run = subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True, env=environment)
    return json.loads(run.stdout.splitlines()[-1])
