"""Sequences in an index, of tensors that stand for one integer each: as eager, in one program."""

import pytest
import torch

from thunder_frontend import jit


def written(x, i, j):
    x = x * 1
    x[(i, j), (j, i)] = 5.0
    x[(i, 3),] += 1
    return x


def unzipped(x, i, j):
    rows, columns = zip(*torch.stack([torch.stack([i, j]), torch.stack([j, i])]), strict=True)
    x = x.clone()
    x[rows, columns] = 0
    return x * x[rows, columns].sum()


PROGRAMS = {
    "two": lambda x, i, j: x[(i, j), (j, 3)],
    "list": lambda x, i, j: x[[i, j],],
    "nested": lambda x, i, j: x[((i, j), (j, i)),],
    "list of lists": lambda x, i, j: x[[[i, j], [j, 1]]],
    "list as tuple": lambda x, i, j: x[[i.expand(3), [0, 1, j]]],
    "beside slices": lambda x, i, j: x[:, (i, j), None],
    "other integers": lambda x, i, j: x[(i.int(), True, j),],
    "written": written,
    "unzipped": unzipped,
}


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize("name", PROGRAMS)
def test_tensors_in_sequences(name):
    program, x = PROGRAMS[name], torch.arange(24.0).view(4, 6)
    compiled = jit(program, fallback="error")
    for i, j in ((1, 2), (3, 0), (-1, 1)):
        ours, eagers = x.clone().requires_grad_(), x.clone().requires_grad_()
        places = torch.tensor(i), torch.tensor(j)
        our, eager = compiled(ours, *places), program(eagers, *places)
        assert torch.equal(our, eager) and our.stride() == eager.stride()
        our.sum().backward()
        eager.sum().backward()
        assert torch.equal(ours.grad, eagers.grad)


def test_errors_are_eagers():
    x, one = torch.arange(24.0).view(4, 6), torch.tensor(1)
    for program in (lambda x, i: x[(i, i + 9),], lambda x, i: x[(i.float(), i),], lambda x, i: x[((i, i), (i,)),]):
        errors = []
        for run in (program, jit(program)):
            with pytest.raises((IndexError, TypeError, ValueError)) as caught:
                run(x, one)
            errors.append((caught.type, str(caught.value)))
        assert errors[0] == errors[1]


class Place:
    def __init__(self, place):
        self.place = place

    def __index__(self):
        return self.place

    def __iter__(self):
        return iter([0, 1])


class Both(Place):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        return [0, 1][index]


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence", "ignore::thunder_frontend.FallbackWarning")
@pytest.mark.parametrize("kind", [Place, Both])
@pytest.mark.parametrize("program", [lambda x, i: x[i], lambda x, i: x[1:, i], lambda x, i: x.select(0, i)])
def test_objects_that_stand_for_integers_are_asked_by_each_call(program, kind):
    compiled, x = jit(program, fallback="error" if kind is Place else "split"), torch.arange(24.0).view(4, 6)
    for i in (1, 3, 0, 1):
        assert torch.equal(compiled(x, kind(i)), program(x, kind(i)))
