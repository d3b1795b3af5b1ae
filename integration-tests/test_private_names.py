"""What the packages use of PyTorch that is not public is there, name by name."""

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from private_names import exists, names_in, used  # noqa: E402


@pytest.mark.parametrize("name", used())
def test_the_installed_pytorch_has(name):
    assert exists(name)


def test_private_names_are_found_in_imports_and_attributes():
    program = "import torch\nfrom torch._a import b\ntorch._C._x(1)\ntorch.nn.Module()\ntorch.c.__dict__\n"
    assert sorted(names_in(ast.parse(program))) == ["torch._C._x", "torch._a.b"]


def test_a_name_that_is_not_there_is_missed():
    assert exists("torch._C._get_tracing_state") and not exists("torch._C._no_such_name")
