"""What libraries are told that ask whether something captures their program, and what they keep in context variables."""

import contextvars

import pytest
import torch
from against_eager import same_as_eager

from thunder_frontend import AcquisitionError, DataDependentError, cache_misses, jit

X = torch.arange(12.0).reshape(4, 3)


def goes_another_way(x):
    return x - 1 if torch.compiler.is_compiling() else x + 1


def test_nothing_is_told_of_the_capture_that_runs_without():
    same_as_eager(goes_another_way, X)


def masked(x, mask):
    """As in eager where the mask hides nothing; a library that is wrong about what comes to the same."""
    if not torch.compiler.is_compiling() and mask.all():
        return x + 1
    return x * mask[:, None]


def test_what_eager_branches_on_is_looked_at_before_anything_is_told():
    compiled = jit(masked)
    whole, part = torch.ones(4, dtype=torch.bool), torch.tensor([True, True, False, True])
    for mask in (whole, part, part.flip(0), whole.clone()):
        assert torch.equal(compiled(X, mask), masked(X, mask))
    assert cache_misses(compiled) == 2


def test_a_mask_that_the_program_makes_needs_no_guard():
    compiled = jit(lambda x: masked(x, torch.ones(len(x), dtype=torch.bool)))
    assert torch.equal(compiled(X), X + 1) and torch.equal(compiled(X + 1), X + 2)
    assert cache_misses(compiled) == 1


def test_a_branch_on_floating_values_is_left_out_where_a_library_has_another_way():
    def program(x):
        if not torch.compiler.is_compiling() and x.isnan().any():
            return torch.zeros_like(x)
        return x.nan_to_num(0.0)

    same_as_eager(program, X)


def test_sizes_stay_open_where_the_program_branches_on_truths():
    def program(x, ids):
        if ids.any():
            x = x + 1
        return x[ids != 0].sum(0)

    compiled = jit(program)
    for ids in (torch.tensor([1, 0, 2, 0]), torch.tensor([1, 1, 2, 0]), torch.tensor([0, 0, 0, 7])):
        assert torch.equal(compiled(X, ids), program(X, ids))
    assert cache_misses(compiled) == 1


def test_a_branch_with_two_ways_is_refused_whatever_is_told():
    def program(x):
        asked = torch.compiler.is_compiling()
        return (x + 1 if x.sum() > 0 else x - 1), asked

    with pytest.raises(DataDependentError, match="torch.where"):
        jit(program, outcomes=0)(X)


VARIABLE = contextvars.ContextVar("VARIABLE")


def collects(x):
    token = VARIABLE.set({"seen": []})
    try:
        VARIABLE.get()["seen"].append(x * 2)
        return VARIABLE.get()["seen"]
    finally:
        VARIABLE.reset(token)


def test_a_program_sets_context_variables_and_resets_them():
    same_as_eager(collects, X)
    assert VARIABLE.get(None) is None


def test_what_a_program_leaves_in_a_context_variable_every_call_does():
    def counts(x):
        count = VARIABLE.get(0) + 1
        VARIABLE.set(count)
        return x * count

    def calls():
        compiled = jit(counts)
        assert [compiled(torch.ones(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0]
        assert VARIABLE.get() == 3

    contextvars.copy_context().run(calls)
    assert VARIABLE.get(None) is None


@torch.compiler.disable
def looked_up(x):
    return x * len(NAMED.get())


NAMED = contextvars.ContextVar("NAMED", default=())


def collected(x):
    token = NAMED.set(["a", "b", "c"])
    try:
        return looked_up(x.sin()) + 1
    finally:
        NAMED.reset(token)


def test_a_frame_that_takes_back_what_it_set_is_not_handed_over():
    compiled, x = jit(lambda x: collected(x * 2) * 3, fallback="split"), torch.randn(3)
    for _ in range(3):
        assert torch.equal(compiled(x), collected(x * 2) * 3)
        assert NAMED.get() == ()


class Keeper:
    def __init__(self):
        self.token = None

    def keep(self, x):
        self.token = NAMED.set([1])
        return x + 1


@pytest.mark.parametrize("keep", [Keeper().keep, lambda x: (x + 1, NAMED.set([1]))], ids=["kept", "returned"])
def test_a_token_that_leaves_is_that_of_the_call(keep):
    compiled = jit(keep, fallback="split")
    for _ in range(2):
        found = compiled(torch.ones(2))
        token = found[1] if isinstance(found, tuple) else keep.__self__.token
        assert NAMED.get() == [1]
        NAMED.reset(token)
        assert NAMED.get() == ()
    with pytest.raises(AcquisitionError, match="Token of a context variable"):
        jit(keep, fallback="error")(torch.ones(2))
