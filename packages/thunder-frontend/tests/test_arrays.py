"""Arrays of NumPy in programs: tensors made of them, indices, and writes to arrays of the caller's."""

import numpy as np
import pytest
import torch

from thunder_frontend import AcquisitionError, DataDependentError, cache_misses, jit

X = torch.arange(3.0)


def counted(x):
    made = np.zeros(3, dtype=np.float32)
    for i in range(3):
        made[i] = i * x.shape[0]
    return x + torch.from_numpy(made)


MADE = {
    "from_numpy": lambda x: x * torch.from_numpy(np.arange(3.0)),
    "written before": counted,
    "tensor": lambda x: x * torch.tensor(np.linspace(0, 1, 3), dtype=x.dtype),
    "tensor of scalars": lambda x: (torch.tensor(np.float64(2.5)), torch.tensor([np.float32(1), 2.0])),
    "as_tensor": lambda x: torch.as_tensor(np.array([True, False, True])) & (x > 0),
    "new_tensor": lambda x: (x.new_tensor(np.arange(2)), x.new_tensor([1, 2])),
    "large": lambda x: torch.from_numpy(np.arange(100000.0))[-3:] + x,
    "by columns": lambda x: torch.from_numpy(np.asfortranarray(np.arange(6.0).reshape(2, 3))),
    "written": lambda x: torch.from_numpy(np.arange(3.0)).mul_(2),
    "index": lambda x: x[np.array([0, 2])],
    "mask": lambda x: x[np.array([True, False, True])],
    "frombuffer": lambda x: torch.frombuffer(bytearray(b"abc"), dtype=torch.uint8) + x,
    "old constructors": lambda x: (torch.FloatTensor([1, 2]), torch.LongTensor([1]), torch.Tensor(2, 3).zero_()),
    "Variable": lambda x: torch.autograd.Variable(x) * 2,
}


@pytest.mark.parametrize("name", MADE)
def test_tensors_made_of_arrays_are_those_of_eager(name):
    compiled = jit(MADE[name])
    for _ in range(2):
        torch.testing.assert_close(compiled(X), MADE[name](X), rtol=0, atol=0)
    assert cache_misses(compiled) == 1


@pytest.mark.parametrize(
    "make", [torch.tensor, torch.as_tensor, torch.from_numpy, torch.asarray], ids=lambda f: f.__name__
)
def test_arrays_of_the_caller_are_read_on_each_call(make):
    compiled, array = jit(lambda x, a: x + make(a) * 2), np.arange(3.0)
    for value in range(3):
        array[0] = value
        torch.testing.assert_close(compiled(X, array), X + torch.from_numpy(array) * 2)
    assert cache_misses(compiled) == 1


def test_tensors_of_an_array_share_its_memory():
    def program(array):
        torch.as_tensor(array).mul_(2)
        return torch.from_numpy(array) + 1

    found, expected = np.arange(3.0), np.arange(3.0)
    torch.testing.assert_close(jit(program)(found), program(expected))
    assert np.array_equal(found, expected)


def test_indices_and_masks_may_be_the_callers():
    compiled = jit(lambda x, index: x[index])
    for index in (np.array([0, 2]), np.array([1, 1]), np.array([True, False, True]), (np.array([2]),)):
        assert torch.equal(compiled(X, index), X[index])


def doubles(array):
    array *= 2


def adds(array):
    np.add(array, 1, out=array)


def sets(array):
    array[0] += 7


def sets_a_part(array):
    part = array[1:]
    part[0] += 5


def fills(array):
    array.fill(array[0] + 3)


@pytest.mark.parametrize("write", [doubles, adds, sets, sets_a_part, fills], ids=lambda f: f.__name__)
def test_writes_to_arrays_of_the_caller_happen_once_per_call(write):
    def program(x, array):
        write(array)
        return x + float(array[0])

    compiled = jit(program)
    found, expected = np.array([3.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0])
    for _ in range(3):
        torch.testing.assert_close(compiled(X, found), program(X, expected))
        assert np.array_equal(found, expected)
    found[:], expected[:] = (3.0, 1.0, 2.0), (3.0, 1.0, 2.0)
    torch.testing.assert_close(compiled(X, found), program(X, expected))
    assert np.array_equal(found, expected)


def test_writes_to_arrays_are_undone_where_compiling_fails():
    def program(x, array):
        array *= 2
        return x if x.sum() > 0 else x * 2

    array = np.arange(3.0)
    with pytest.raises(AcquisitionError):
        jit(program, outcomes=0)(X, array)
    assert np.array_equal(array, np.arange(3.0))


def tensor_first(array):
    tensor = torch.from_numpy(array)
    tensor.mul_(2)
    return tensor + float(array[0])


def array_first(array):
    tensor = torch.from_numpy(array)
    array *= 2
    return tensor + 1


@pytest.mark.parametrize("program", [tensor_first, array_first], ids=lambda f: f.__name__)
@pytest.mark.parametrize("inside", [True, False], ids=["made inside", "the caller's"])
def test_writes_by_one_are_not_read_by_the_other(program, inside):
    run = jit((lambda a: program(np.arange(3.0))) if inside else program)
    with pytest.raises(AcquisitionError, match="shares its memory with.*make the tensor of a copy of the array"):
        run(np.arange(3.0))


def test_values_for_numpy_are_refused_with_the_way_out():
    with pytest.raises(DataDependentError, match="NumPy would get the values of a tensor.*torch.as_tensor"):
        jit(lambda x: np.sin(x))(X)


SCALARS = (
    np.bool_(True), np.int8(2), np.uint16(3), np.int64(2), np.float16(2.5), np.float32(2.5), np.float64(2.5),
    np.longdouble(2.5), np.complex64(2 + 1j), np.complex128(2 + 1j),
)  # fmt: skip
TAKES = {
    "multiplied": lambda x, s: x * s,
    "from the left": lambda x, s: s * x,
    "divided": lambda x, s: x / s,
    "compared": lambda x, s: x == s,
    "chosen": lambda x, s: torch.where(x > 0, s, x),
    "filled": lambda x, s: torch.full((2,), s),
    "written": lambda x, s: x.clone().mul_(s),
    "held": lambda x, s: torch.clamp(x, max=s),
    "indexed": lambda x, s: x[s],
    "made": lambda x, s: torch.tensor(s),
}


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_scalars_of_numpy_are_the_numbers_that_pytorch_takes_them_for(name):
    function = TAKES[name]
    for dtype in (torch.int32, torch.float32, torch.complex64):
        for scalar in SCALARS:
            found = []
            for called in (function, jit(function, fallback="error")):
                try:
                    found.append(called(torch.ones(2, 2, dtype=dtype), scalar))
                except (TypeError, IndexError, RuntimeError) as error:
                    found.append(type(error))
            if isinstance(found[0], type):
                assert isinstance(found[1], type), (dtype, scalar, found)
            else:
                torch.testing.assert_close(found[1], found[0])


@pytest.mark.parametrize("make", [torch.from_numpy, torch.as_tensor, torch.tensor])
def test_sizes_of_arrays_that_change_are_left_open_from_the_second_on(make):
    def program(x, batch):
        return make(batch["rows"]).sum(0) * x

    compiled = jit(program, cache="auto")
    for length in range(2, 7):
        given = torch.ones(3), {"rows": np.full((length, 3), 0.5 * length)}
        torch.testing.assert_close(compiled(*given), program(*given))
    assert cache_misses(compiled) == 2
