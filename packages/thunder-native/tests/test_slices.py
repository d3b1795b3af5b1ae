"""Slices written at indices: what PyTorch's operator writes, or nothing at all."""

import pytest
import torch
from regions import Recorder, same

from thunder_native.runtime import missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")

CACHE = torch.randn(2, 3, 7, 4)


def at(*numbers):
    return torch.tensor(numbers, dtype=torch.int64)


WRITES = {
    "a token's keys": (CACHE, 2, at(3), torch.randn(2, 3, 1, 4)),
    "turned keys": (CACHE, -2, at(6), torch.randn(2, 1, 3, 4).transpose(1, 2)),
    "several, out of order": (CACHE, 2, at(5, 0, 2), torch.randn(2, 3, 3, 4)),
    "the last of equal ones": (CACHE, 2, at(1, 1), torch.randn(2, 3, 2, 4)),
    "none": (CACHE, 2, at(), torch.randn(2, 3, 0, 4)),
    "strided indices": (CACHE, 0, at(1, 5, 0)[::2], torch.randn(2, 3, 7, 4)),
    "a number": (CACHE, 1, torch.tensor(2), torch.randn(2, 1, 7, 4)),
    "an expanded source": (CACHE, 2, at(0, 4), torch.randn(2, 3, 1, 1).expand(2, 3, 2, 4)),
    "a source of single elements": (CACHE, 2, at(2), torch.randn(2, 3, 1, 8)[..., ::2]),
    "a cache of columns": (torch.randn(4, 7).t(), 0, at(3), torch.randn(1, 4)),
    "a part of a cache": (torch.randn(9, 6)[2:, 1:5], 0, at(3, 6), torch.randn(2, 4)),
    "float64": (CACHE.double(), 2, at(3), torch.randn(2, 3, 1, 4).double()),
    "bfloat16": (CACHE.bfloat16(), 2, at(3), torch.randn(2, 3, 1, 4).bfloat16()),
    "bools": (CACHE > 0, 2, at(3), torch.randn(2, 3, 1, 4) > 0),
    "complex numbers": (CACHE.to(torch.complex64), 2, at(3), torch.randn(2, 3, 1, 4).to(torch.complex64)),
}


def recorded(place, dim, index, source):
    """Return a region that writes, and what it returns."""
    given = [place.clone(), index, source]
    recorder = Recorder(*given)
    made = recorder.call("torch.index_copy", given[0], dim, *given[1:], out=given[0])
    return recorder.runner(made), made


@pytest.mark.parametrize("name", WRITES)
def test_what_is_written_is_what_pytorch_writes(name):
    place, dim, index, source = WRITES[name]
    runner, _ = recorded(place, dim, index, source)
    memory = place._base.clone() if place._is_view() else place.clone()
    mine = memory.as_strided(place.shape, place.stride(), place.storage_offset())
    others = memory.clone()
    expected = others.as_strided(place.shape, place.stride(), place.storage_offset()).index_copy_(dim, index, source)
    before = mine._version
    results = runner.enter(mine, index, source)
    assert results[0] is mine and mine._version == before + 1
    assert same(mine.contiguous(), expected.contiguous()) and same(memory, others)  # nothing else was written


REFUSED = {
    "an index beyond": (at(3, 7), torch.randn(2, 3, 2, 4)),
    "a negative index": (at(0, -1), torch.randn(2, 3, 2, 4)),
    "too few slices": (at(0, 1, 2), torch.randn(2, 3, 2, 4)),
    "other sizes": (at(0, 1), torch.randn(2, 2, 2, 4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_nothing_is_written_where_something_does_not_fit(name):
    runner, _ = recorded(CACHE, 2, at(0, 1), torch.randn(2, 3, 2, 4))
    place, (index, source) = CACHE.clone(), REFUSED[name]
    assert runner.enter(place, index, source).__class__ is int
    assert same(place, CACHE) and place._version == 0


def test_nothing_is_written_from_the_memory_that_is_written_to():
    runner, _ = recorded(CACHE, 2, at(0, 1), torch.randn(2, 3, 2, 4))
    place = CACHE.clone()
    assert runner.enter(place, at(0, 1), place[:, :, 1:3]).__class__ is int
    assert same(place, CACHE)


def test_a_tensor_of_inference_mode_is_pytorchs():
    runner, _ = recorded(CACHE, 2, at(0, 1), torch.randn(2, 3, 2, 4))
    with torch.inference_mode():
        place = CACHE.clone()
        assert runner.enter(place, at(0, 1), torch.randn(2, 3, 2, 4)).__class__ is int
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        runner(place, at(0, 1), torch.randn(2, 3, 2, 4))
