"""What tests ask of the version of PyTorch."""

import pytest
import torch

RUNNING = tuple(int(part) for part in torch.__version__.split(".")[:2])


def needs_torch(major, minor, reason):
    """A mark for tests of what works with this version of PyTorch or a newer one."""
    return pytest.mark.skipif((major, minor) > RUNNING, reason=f"PyTorch before {major}.{minor} {reason}")


ENDS_OF_SLICES = needs_torch(2, 10, "has to know where a slice ends")
