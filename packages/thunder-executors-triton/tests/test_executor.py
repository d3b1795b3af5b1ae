"""What holds without Triton, too."""

import subprocess
import sys

import torch

import thunder_executors_triton as package
from thunder_executors import Library, get_executor


def test_it_is_found_by_its_entry_point():
    assert get_executor("triton") is package.executor


def test_it_says_why_it_cannot_run(monkeypatch):
    from thunder_executors_triton import availability

    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(availability, "TRITON", Library("torch", "Triton"))
    assert availability.missing().startswith("PyTorch sees no CUDA device")
    monkeypatch.setattr(availability, "TRITON", Library("no_triton", "Triton"))
    assert availability.missing() == "Triton is not installed"


def test_importing_it_imports_no_kernel():
    program = "import sys, thunder_executors_triton; sys.exit('thunder_executors_triton.kernels' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
