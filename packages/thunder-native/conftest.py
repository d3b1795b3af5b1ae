"""What runs native code is skipped where this PyTorch, or this machine, cannot."""

import pytest

from thunder_native.runtime import missing


def pytest_collection_modifyitems(items):
    """Skip the README's program where native code cannot run; the tests say so themselves."""
    if missing() is not None:
        for item in items:
            if item.path.name == "README.md" and item.path.parent.name == "thunder-native":
                item.add_marker(pytest.mark.skip(reason=f"native code cannot run: {missing()}"))
