import doctest
import subprocess
import sys
from pathlib import Path

import pytest

import thunder_prims
from thunder_autograd import jvp_rule, vjp_rule
from thunder_ir import OpTags
from thunder_prims.prim import Prim
from thunder_vmap import batching_rule

PRIMS = {name: value for name, value in vars(thunder_prims).items() if isinstance(value, Prim)}
WITHOUT_TENSORS = {
    "comment", "empty", "exchange_generator_states", "full", "generator_states", "get_and_update_rng_state", "iota",
    "tensor_from_sequence",
}  # fmt: skip
TO_NUMBERS = {"item"}


@pytest.mark.parametrize("name", PRIMS)
def test_a_prim_is_complete(name):
    symbol = PRIMS[name]
    assert symbol.name == name and symbol.doc.strip()
    if OpTags.CONSTANT_FOR_DERIVATIVE not in symbol.tags:
        assert symbol in vjp_rule and symbol in jvp_rule
    if not name.startswith("number_") and name not in WITHOUT_TENSORS | TO_NUMBERS:
        assert symbol in batching_rule


def test_importing_leaves_torch_and_numpy_unloaded():
    program = "import sys, thunder_prims; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_examples_of_the_readme_run():
    result = doctest.testfile(str(Path(__file__).parents[1] / "README.md"), module_relative=False)
    assert result.attempted and not result.failed
