"""Reads and writes at keys in the core language against PyTorch."""

import pytest
import torch
from lang_against_torch import assert_same

import thunder_lang as lang

X = torch.arange(24.0).reshape(2, 3, 4)
INDICES = torch.tensor([[1, -1], [0, 1]])
KEYS = [
    0,
    -1,
    5,
    (1, 2),
    (0, slice(None), 1),
    slice(None, None, 2),
    slice(1, None),
    slice(-1, None),
    slice(5, 9),
    slice(None, None, -1),
    slice(2, 1),
    ...,
    (..., 0),
    (0, ..., 1),
    None,
    (None, 0),
    (slice(None), None, 1),
    (..., None),
    (0, 0, 0, 0),
    INDICES,
    (slice(None), INDICES),
    (INDICES, INDICES),
    (INDICES, slice(None), INDICES),
    (0, slice(None), INDICES),
    (INDICES, 0),
    (0, None, INDICES),
    (INDICES, None, INDICES),
    (None, INDICES, INDICES),
    (INDICES, ..., INDICES),
    [0, 1],
    [[0, 1], [1, 1]],
    (slice(None), [0, 2]),
    ([0, 1], [0, 2]),
    ([0, 1], [0, 1, 2]),
    True,
    False,
    (True, INDICES),
    (..., True),
    (slice(0, 1), INDICES, 0),
    (torch.tensor(1), INDICES),
    torch.tensor(-1),
    (slice(None), torch.tensor(0)),
    ([True, False],),
    ([True, True], slice(None), [0, 1]),
    "x",
    1.5,
    (slice(None), slice(1, 3), slice(None, None, 3)),
    torch.tensor([0, 1], dtype=torch.int32),
    torch.tensor([0.5]),
    (slice(1, 2), slice(None), torch.tensor([3, 0])),
]


def split_key(key):
    """The key with its tensors taken out, and how to put proxies back."""
    items = key if isinstance(key, tuple) else (key,)
    held = [k for k in items if isinstance(k, torch.Tensor)]

    def build(proxies):
        proxies = iter(proxies)
        built = tuple([next(proxies) if isinstance(k, torch.Tensor) else k for k in items])
        return built if isinstance(key, tuple) else built[0]

    return held, build


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reads_at_keys_as_torch_does(key):
    held, build = split_key(key)
    assert_same(lambda x, *k: x[build(k)], lambda x, *k: x[build(k)], X, *held)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("value", [7.0, torch.arange(1.0), "result", "leading"], ids=str)
def test_writes_at_keys_as_torch_does(key, value):
    held, build = split_key(key)
    if isinstance(value, str):
        try:
            like = X[key]
        except Exception:  # an error to be compared below
            like = X
        value = -torch.arange(float(like.numel())).reshape(like.shape) - 1
        indices = [k.unique() for k in held if k.dtype is torch.int64]
        if any(len(i) < 3 and k.ndim == 2 for i, k in zip(indices, held, strict=False)):
            value = torch.full_like(value, 3.0)  # indices repeat: which of different values wins is not said

    def theirs(x, v, *k):
        x = x.clone()
        x[build(k)] = v
        return x

    if isinstance(value, torch.Tensor):
        assert_same(lambda x, v, *k: lang.setitem(x, build(k), v), theirs, X, value, *held)
    else:
        assert_same(lambda x, *k: lang.setitem(x, build(k), value), lambda x, *k: theirs(x, value, *k), X, *held)


def test_writes_where_a_mask_holds():
    def theirs(x, m):
        x = x.clone()
        x[m] = 5
        return x

    assert_same(lambda x, m: lang.setitem(x, m, 5), theirs, X, X > 7)
    assert_same(lambda x, m: lang.setitem(x, m, 5), theirs, X, torch.tensor([True, False]))
