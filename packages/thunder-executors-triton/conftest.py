"""Without a GPU, Triton's interpreter runs the kernels; it has to be asked for before Triton is imported."""

import importlib.util
import os

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

NEEDS_TRITON = ("test_kernels.py", "test_compiled.py", "test_fusion.py")
if importlib.util.find_spec("triton") is None:
    home = "src/thunder_executors_triton"
    collect_ignore = [
        f"{home}/offline.py",
        f"{home}/kernels",
        f"{home}/fusion/mathematics.py",
        f"{home}/fusion/runner.py",
    ]


def pytest_collection_modifyitems(items):
    """Skip what runs kernels where Triton is missing."""
    if importlib.util.find_spec("triton") is None:
        reason = "Triton is not installed here; `python3 tools/dev.py gpu-libraries` runs this"
        for item in items:
            if item.path.name in NEEDS_TRITON and item.path.parent.parent.name == "thunder-executors-triton":
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture
def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
