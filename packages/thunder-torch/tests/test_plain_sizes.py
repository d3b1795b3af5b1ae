"""What kernels ask of plain sizes is answered as by PyTorch, and by PyTorch where it is asked for more."""

import subprocess
import sys

import pytest
import torch
from torch.fx.experimental import symbolic_shapes

from thunder_torch.plain_sizes import OF_PLAIN

CONDITIONS = [(True,), (False,)]
ASKED = {
    "guarding_hint_or_throw": [(3,)],
    "has_guarding_hint": [(3,)],
    "is_nested_int": [(3,)],
    "sym_and": [(True,), (True, False), (True, True, True)],
    "sym_eq": [(2, 3), (2, 2), ((2, 3), [2, 3]), (torch.Size([2]), (3,)), ((2, 3), (2,)), (((1,), 2), ((1,), 2))],
    "sym_or": [(False,), (True, False), (False, False, False)],
}


@pytest.mark.parametrize("name", OF_PLAIN)
def test_answers_are_pytorchs(name):
    asked = getattr(symbolic_shapes, name, None)
    if asked is None:
        return  # this version of PyTorch has no kernel that asks it
    for args in ASKED.get(name, CONDITIONS):
        assert OF_PLAIN[name](*args) == asked(*args), args


PROGRAM = """
import sys
import torch
from thunder_torch.plain_sizes import answered_plainly

SYMBOLIC = "torch.fx.experimental.symbolic_shapes"

def kernel():
    from torch.fx.experimental.symbolic_shapes import guard_or_false
    import sympy
    return guard_or_false(2 == 2) and not isinstance(2, sympy.Basic)

with answered_plainly(on_meta=True):
    assert kernel()
    torch._check(2 + 2 == 4)
assert SYMBOLIC not in sys.modules and "sympy" not in sys.modules

with answered_plainly(on_meta=True):
    {asked}
import sympy
from torch.fx.experimental.symbolic_shapes import sym_eq
assert sys.modules[SYMBOLIC].__file__ and sys.modules[SYMBOLIC].sym_eq is sym_eq
assert isinstance(sympy.Symbol("s"), sympy.Basic)
with answered_plainly():
    import torch.fx.experimental.symbolic_shapes as loaded
assert loaded is sys.modules[SYMBOLIC]
"""


@pytest.mark.parametrize(
    "asked",
    [
        "from torch.fx.experimental.symbolic_shapes import ShapeEnv; assert isinstance(ShapeEnv, type)",
        "from torch.fx.experimental.symbolic_shapes import sym_eq",
        "import sympy; assert sympy.Integer(2) + 1 == 3",
        "import torch._dynamo",
        "pass",
    ],
)
def test_more_than_plain_sizes_loads_the_modules(asked):
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(asked=asked)], check=False, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr


BESIDE = """
import sys
from thunder_torch.plain_sizes import answered_plainly
with answered_plainly():
    import sympy.core.numbers
assert sys.modules["sympy.core"] is sympy.core and isinstance(sympy.Integer(2), sympy.core.numbers.Integer)
"""


def test_where_more_than_kernels_runs_sympy_is_imported_as_it_is():
    run = subprocess.run([sys.executable, "-c", BESIDE], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
