"""What the packages use of PyTorch that is not public is there, name by name."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import thunder

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from private_names import exists, loaded, names_in, needed, used  # noqa: E402

LISTS = needed()
NEEDED = {name for names in LISTS.values() for name in names}
PYTORCH_ITSELF_NEEDS = {"torch._C._set_grad_enabled", "torch.autograd.forward_ad._current_level"}


@pytest.mark.parametrize("name", used())
def test_the_installed_pytorch_has(name):
    assert exists(name)


def test_private_names_are_found_in_imports_and_attributes():
    program = "import torch\nfrom torch._a import b\ntorch._C._x(1)\ntorch.nn.Module()\ntorch.c.__dict__\n"
    assert sorted(names_in(ast.parse(program))) == ["torch._C._x", "torch._a.b"]


def test_private_names_are_found_under_the_names_that_they_are_imported_as():
    program = "import torch.a._b as c\nfrom torch.d import e, f as g\nc.h(1)\ne._i.j\ng.k()\nother._l\n"
    assert sorted(names_in(ast.parse(program))) == ["torch.a._b", "torch.a._b.h", "torch.d.e._i.j"]


def test_a_name_that_is_not_there_is_missed():
    assert exists("torch._C._get_tracing_state") and not exists("torch._C._no_such_name")


@pytest.mark.parametrize(
    ("file", "names"), needed().items(), ids=lambda x: x.parent.name if isinstance(x, Path) else ""
)
def test_what_a_package_needs_is_listed(file, names):
    listed = set(ast.literal_eval(ast.parse(file.read_text(encoding="utf-8")).body[-1].value.args[0]))
    assert set(names) <= listed, "run python tools/private_names.py --write"


def without(names, program):
    """Run a program where PyTorch lacks names; return what it prints."""
    modules = sorted([m for m in loaded("thunder, thunder_executors_llvm") if m.split(".")[0] == "torch"])
    command = [sys.executable, str(Path(__file__).with_name("without_private_names.py"))]
    found = subprocess.run([*command, json.dumps([sorted(names), modules, program])], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_importing_fails_for_no_name_that_is_missing():
    program = "import thunder, thunder_executors_llvm\nprint(thunder.__version__)"
    assert without(NEEDED - PYTORCH_ITSELF_NEEDS, program).strip() == thunder.__version__


def test_what_needs_no_missing_name_is_compiled_and_what_does_says_why():
    missing = {name for name in NEEDED if name.startswith(("torch._higher_order_ops.", "torch._check_is_size"))}
    program = """
import torch, thunder
from thunder_torch.internals import MissingInternalError, stand_in
compiled = thunder.jit(lambda x: x.sin() + 1, fallback="error")
x = torch.ones(3)
assert torch.equal(compiled(x), x.sin() + 1) and thunder.cache_misses(compiled) == 1
from torch import _check_is_size
try:
    _check_is_size(3)
except MissingInternalError as error:
    print(error)
"""
    assert "has no torch._check_is_size, which this needs; update Thunder" in without(missing, program)
