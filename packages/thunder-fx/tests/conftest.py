"""What tests of graphs that dynamo finds begin with."""

import pytest
import torch


@pytest.fixture
def forget_what_was_compiled():
    torch._dynamo.reset()
    torch.manual_seed(0)
