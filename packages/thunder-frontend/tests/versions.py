"""What tests ask of the version of PyTorch."""

import pytest
import torch

RUNNING = tuple(int(part) for part in torch.__version__.split(".")[:2])


def needs_torch(major, minor, reason):
    """A mark for tests of what works with this version of PyTorch or a newer one."""
    return pytest.mark.skipif((major, minor) > RUNNING, reason=f"PyTorch before {major}.{minor} {reason}")


def sizes_stay_open(value, *, id=None):
    """A parameter whose sizes PyTorch's shapes without data leave open, which older versions fix."""
    return pytest.param(value, marks=needs_torch(2, 11, "fixes sizes that it is asked about here"), id=id)
