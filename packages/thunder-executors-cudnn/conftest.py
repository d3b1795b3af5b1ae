"""What asks the library itself runs where its wheels are."""

import importlib.util

import pytest


def pytest_collection_modifyitems(items):
    """Skip what asks cuDNN where it is missing, or its wheels are for another CUDA than the stand-in for the driver."""
    if importlib.util.find_spec("cudnn") is None or importlib.util.find_spec("nvidia.cuda_runtime") is None:
        for item in items:
            if item.path.name == "test_library.py" and item.path.parent.parent.name == "thunder-executors-cudnn":
                reason = "there is no cuDNN for CUDA 12; `python3 tools/dev.py gpu-libraries` runs this"
                item.add_marker(pytest.mark.skip(reason=reason))
