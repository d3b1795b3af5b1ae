"""PyTorch tells what its operations return without loading its compilers, which takes more than a second."""

import subprocess
import sys

ASKED = [
    "torch.mean, (wide,), {'dim': -1, 'keepdim': True}",
    "torch.neg, (turned,), {}",
    "torch.cat, ((wide, turned), 0), {}",
    "torch.cumsum, (wide, 0), {}",
    "torch.copysign, (turned, wide), {}",
    "F.cross_entropy, (wide, TensorProxy((4,), dtypes.int64, strides=(1,))), {}",
    "F.batch_norm, (wide, None, None), {'training': True}",
    "F.dropout, (turned, 0.5), {}",
    "thunder_torch.random.dropout_mask, (wide, 0.5), {}",
]

PROGRAM = """
import sys
import torch
import torch.nn.functional as F
import thunder_torch.random
from thunder_ir import TensorProxy, dtypes
from thunder_torch.fake_modes import fake_outputs
from thunder_torch.metadata import metadata_of

wide = TensorProxy((4, 4), dtypes.float32, strides=(4, 1))
turned = TensorProxy((4, 4), dtypes.float32, strides=(1, 4))
found = [metadata_of(*asked) for asked in ({asked},)]
(strides,) = [t.stride() for t in fake_outputs(lambda x: [x + 1], [torch.ones(2, 3).t()])]
assert strides == (1, 3), strides
assert {loaded} == ("torch._dynamo" in sys.modules), "PyTorch's compilers were loaded"
print([(f.dtype.name, f.strides, [d for d in f.shape if isinstance(d, int)]) for f in found])
"""


def told(before: str = "", after: str = "", loaded: bool = False) -> str:
    """Return what a fresh process prints of all that is asked for."""
    program = PROGRAM.format(asked=", ".join([f"({a})" for a in ASKED]), loaded=loaded)
    run = subprocess.run([sys.executable, "-c", before + program + after], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_what_operations_return_is_told_without_compilers_as_with_them():
    assert told() == told("import torch._dynamo\n", loaded=True)


def test_compilers_that_are_loaded_later_are_switched_off_where_pytorch_does_so():
    after = """
import torch._dynamo
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    torch.neg(torch.empty(3, 3).t())
plain = FakeTensorMode.__torch_dispatch__.__wrapped__
kept = getattr(plain, "__dynamo_disable", None)
assert kept is None or kept.__module__.startswith("torch"), kept
assert torch.compile(lambda x: x.mean(-1, keepdim=True) * 2, backend="eager")(torch.ones(3, 3)).sum() == 6
"""
    told(after=after)
