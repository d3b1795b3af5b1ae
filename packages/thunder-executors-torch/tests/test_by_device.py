"""Who is asked by default where there is a GPU."""

from pathlib import Path

import pytest
import torch

from thunder_executors import get_all_executors
from thunder_executors_torch.by_device import ON_CUDA, on_cuda

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "capability, names", [(None, ()), ((8, 0), ()), ((9, 0), ("inductor",)), ((10, 0), ("inductor",))]
)
def test_the_table_is_followed_from_the_device_on_that_was_measured(capability, names, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: capability is not None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: capability)
    assert on_cuda() == names


def test_each_row_names_its_measurement_and_an_executor_that_is_on_request():
    installed = {e.name: e for e in get_all_executors()}
    for row in ON_CUDA:
        assert "https://" in row.follows or (ROOT / row.follows.partition(":")[0]).is_file()
        assert row.executor not in installed or not installed[row.executor].default
