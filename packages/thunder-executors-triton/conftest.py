"""Without a GPU, Triton's interpreter runs the kernels; it has to be asked for before Triton is imported."""

import importlib.util
import os
import traceback

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

INTERPRETER = os.path.join("triton", "runtime", "interpreter.py")
NEEDS_TRITON = ("test_kernels.py", "test_compiled.py", "test_fusion.py", "test_tuning.py", "test_ahead.py")
if importlib.util.find_spec("triton") is None:
    home = "src/thunder_executors_triton"
    collect_ignore = [
        f"{home}/offline.py",
        f"{home}/kernels",
        f"{home}/fusion/mathematics.py",
        f"{home}/fusion/ahead.py",
        f"{home}/fusion/runner.py",
    ]


def pytest_collection_modifyitems(items):
    """Skip what runs kernels where Triton is missing."""
    if importlib.util.find_spec("triton") is None:
        reason = "Triton is not installed here; `python3 tools/dev.py gpu-libraries` runs this"
        for item in items:
            if item.path.name in NEEDS_TRITON and item.path.parent.parent.name == "thunder-executors-triton":
                item.add_marker(pytest.mark.skip(reason=reason))


def takes_no_bounds(error):
    """Return whether Triton's interpreter, which runs loops, failed to take a number out of an array of NumPy's."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__
    *_, last = traceback.walk_tb(error.__traceback__)
    return isinstance(error, TypeError) and last[0].f_code.co_filename.endswith(INTERPRETER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test with a loop where this Triton's interpreter takes its bounds as this NumPy refuses."""
    try:
        return (yield)
    except Exception as error:
        if takes_no_bounds(error):
            pytest.skip("this Triton's interpreter runs no loops with this NumPy: before 3.7 it wants one before 2.4")
        raise


@pytest.fixture
def device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
