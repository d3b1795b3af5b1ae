"""What asks the library itself runs where its wheels are."""

import importlib.util

import pytest


def pytest_collection_modifyitems(items):
    """Skip what asks cuDNN where it is missing."""
    if importlib.util.find_spec("cudnn") is None:
        for item in items:
            if item.path.name == "test_library.py" and item.path.parent.parent.name == "thunder-executors-cudnn":
                item.add_marker(
                    pytest.mark.skip(reason="cuDNN is not installed; `python3 tools/dev.py gpu-libraries` runs this")
                )
