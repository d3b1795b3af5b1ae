"""What PyTorch's dispatcher says of views is what fake tensors say."""

import pytest
import torch

from thunder_ir import TensorProxy, devices, dtypes
from thunder_torch import metadata
from thunder_torch.traits import Trait, has_trait

ARGUMENTS = {
    "__getitem__": [(slice(0, 1),), (0,), ((..., slice(1, 2)),), (None,), (True,), (7,)],
    "as_strided": [((2, 2), (1, 2))],
    "chunk": [(2, 2)],
    "expand": [(5, 2, 3, 4), (2, 3, 5)],
    "moveaxis": [(0, 1)],
    "movedim": [(0, 1)],
    "narrow": [(1, 0, 2), (1, 2, 2)],
    "permute": [((2, 0, 1),)],
    "select": [(0, 1)],
    "split": [(2,), ((1, 2), 1)],
    "swapaxes": [(0, 1)],
    "swapdims": [(0, 1)],
    "transpose": [(0, 2), (0, 5)],
    "unfold": [(2, 2, 1)],
    "unsqueeze": [(1,)],
    "view": [(6, 4), (5,), (torch.int32,), (torch.float16,)],
}
"""What functions take besides a tensor, by their names; all others take it alone. Some raise."""

FUNCTIONS = [getattr(place, name) for place in (torch, torch.Tensor) for name in sorted(dir(place))]
CALLS = [
    (function, arguments)
    for function in [torch.Tensor.__getitem__, *[f for f in FUNCTIONS if has_trait(f, Trait.ONLY_VIEWS)]]
    for arguments in ARGUMENTS.get(function.__name__, [()])
]


def answer(function, proxy, arguments):
    """The metadata of a call that nobody remembers, or what it raises."""
    metadata._MEMO.clear()
    try:
        return repr(metadata.spec_of(function, (proxy, *arguments), {}))
    except Exception as error:
        return type(error), str(error)


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize(
    ("strides", "dtype"),
    [((12, 4, 1), dtypes.float32), ((1, 2, 6), dtypes.float32), (None, dtypes.complex64)],
    ids=["in order", "reversed", "unknown"],
)
def test_views_have_the_metadata_that_fake_tensors_have(monkeypatch, requires_grad, strides, dtype):
    proxy = TensorProxy((2, 3, 4), dtype, devices.cpu, requires_grad, strides)
    found = [answer(function, proxy, arguments) for function, arguments in CALLS]
    assert sum([isinstance(answer, str) for answer in found]) > len(CALLS) / 2
    monkeypatch.setattr(metadata, "told_on_meta", lambda *_: None)
    for (function, arguments), ours in zip(CALLS, found, strict=True):
        assert ours == answer(function, proxy, arguments), (function, arguments)
