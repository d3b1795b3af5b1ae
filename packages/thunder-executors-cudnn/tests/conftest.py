"""The library that tests run on."""

import pytest
import torch

import thunder_executors_cudnn as package
from thunder_executors_cudnn import running

from .frontend import CpuMachine

ON_A_GPU = pytest.param(
    "device",
    marks=[pytest.mark.gpu, pytest.mark.skipif(package.missing() is not None, reason=f"{package.missing()}")],
)


@pytest.fixture(params=["stand-in", ON_A_GPU])
def machine(request, monkeypatch):
    """The library: a stand-in on the CPU or, where there is one, itself on a GPU, which is the default device then."""
    made = CpuMachine() if request.param == "stand-in" else running.Machine()
    monkeypatch.setattr(running, "machine", made)
    with torch.device("cpu" if request.param == "stand-in" else "cuda"):
        yield made
