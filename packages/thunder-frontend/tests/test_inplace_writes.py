"""Writes to the caller's tensors: computed right into them where nobody can tell, and never where somebody could."""

import copy

import pytest
import torch

from thunder_frontend import cache_misses, jit, last_traces

F = torch.nn.functional


def chain(x, y):
    x.mul_(2).add_(y)


def reads_before(x, y):
    y = (x * y).sum()
    x.add_(y)
    return y


def grows(x, y):
    x.mul_(0.5)
    x.addcmul_(y, y, value=0.5)
    y.neg_()


def reads_after(x, y):
    z = x + 1
    x.mul_(2)
    return z * x


def returns_the_value(x, y):
    z = y * 2
    x.copy_(z)
    return z


def returns_a_view_of_the_value(x, y):
    z = y * 2
    x.copy_(z)
    return z[0], z.t()


def reads_a_view_later(x, y):
    old = x.clone()
    view = x[0]
    new = x + y
    z = view * 3
    x.copy_(new)
    return z, old


def adds_a_part_of_itself(x, y):
    x.copy_(x + x[0])


def adds_its_transpose(x, y):
    x.copy_(x + x.t())


def swaps(x, y):
    old = x * 1
    x.copy_(y + 0)
    y.copy_(old)


def holds_the_value(x, y):
    z = y + 1
    x.copy_(z)
    return {"z": z, "x": x, "again": [z]}


def of_another_type(x, y):
    x.add_(y.double())


def counts(x, y):
    return F.batch_norm(x, y[0], y[1].abs(), training=True)


def twice(x, y):
    x.add_(1)
    z = x.sum()
    x.mul_(y)
    return z


PROGRAMS = [
    chain, reads_before, grows, reads_after, returns_the_value, returns_a_view_of_the_value, reads_a_view_later,
    adds_a_part_of_itself, adds_its_transpose, swaps, holds_the_value, of_another_type, counts, twice,
]  # fmt: skip
STRAIGHT = (chain, reads_before, grows, twice)


@pytest.mark.parametrize("layout", [lambda t: t, lambda t: t.t(), lambda t: torch.cat([t, t])[::2]])
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_and_memory_are_eagers(program, layout):
    torch.manual_seed(0)
    given = [layout(torch.randn(4, 4)) for _ in range(2)]
    compiled, results = jit(program), []
    for run in (program, compiled, compiled):
        x, y = copy.deepcopy(given)
        with torch.no_grad():
            result = run(x, y)
        tensors = [t for t in torch.utils._pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
        shares = [[t.untyped_storage()._cdata == o.untyped_storage()._cdata for o in (x, y)] for t in tensors]
        if tensors:
            x.add_(1)  # what shares memory with it changes, and nothing else
        results.append((result, x, y, shares, x._version > 0))

    torch.testing.assert_close(results[1], results[0])
    torch.testing.assert_close(results[2], results[0])


@pytest.mark.parametrize("program", STRAIGHT)
def test_nothing_is_copied_where_nobody_can_tell(program):
    compiled = jit(program)
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    before = x.data_ptr(), y.data_ptr()
    compiled(x, y)

    assert "out=x" in str(last_traces(compiled)[-1]).replace("out=a0", "out=x")
    assert (x.data_ptr(), y.data_ptr()) == before


def test_a_step_of_an_optimizer_copies_no_parameter():
    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)

    def step(x):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()

    compiled = jit(step)
    for _ in range(3):
        compiled(torch.randn(2, 4))

    text = str(last_traces(compiled)[-1])
    assert text.count("out=") == 2 * 6  # per parameter: one call for the count, one for the mean, two each for the rest


def test_slices_are_copied_to_their_places_and_what_fails_leaves_all_as_it_was():
    def program(caches, place, new):
        at = torch.arange(new.shape[1]) + place
        place.add_(new.shape[1])
        for cache in caches:
            cache.index_copy_(1, at, new)
        return [cache.sum() for cache in caches]

    compiled = jit(program)
    caches, place, new = [torch.zeros(2, 5, 3) for _ in range(2)], torch.tensor(0), torch.ones(2, 2, 3)
    for _ in range(2):
        compiled(caches, place, new)
    text = str(last_traces(compiled)[-1])
    assert text.count("out=") == 3 and text.count("check_indices") == 1
    assert int(place) == 4 and all([c[:, :4].eq(1).all() and c[:, 4].eq(0).all() for c in caches])
    before = [c.clone() for c in caches]
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 1 with size 5"):
        compiled(caches, place, 2 * new)
    assert int(place) == 4 and all([torch.equal(*pair) for pair in zip(caches, before, strict=True)])


def statistics(x, mean, var):
    return F.batch_norm(x * x, mean, var, x.mean(0), x.sum(0), training=True)


def statistics_of_results(x, mean, var):
    y = x.exp()
    mean.copy_(y.detach().mean(0))
    var.copy_(y.detach()[0])
    return y, var + 1


def statistics_returned(x, mean, var):
    new = (x * 2).detach().sum(0)
    mean.copy_(new)
    var.copy_(new)
    return x * x, new, new[:2]


@pytest.mark.parametrize("program", [statistics, statistics_of_results, statistics_returned])
def test_what_is_written_beside_results_with_gradients_is_eagers(program):
    torch.manual_seed(0)
    x, found = torch.randn(5, 4), []
    compiled = jit(program)
    for run in (program, compiled):
        mean, var = torch.zeros(4), torch.ones(4)
        for _ in range(4):
            leaf = x.clone().requires_grad_()
            results = run(leaf, mean, var)
            results = results if isinstance(results, tuple) else (results,)
            results[0].square().sum().backward()
            told = [(r.detach().clone(), r.requires_grad, r._is_view()) for r in results]
            for result in results[1:]:  # shares memory with no statistics
                result.add_(1)
            found.append((told, mean.clone(), var.clone(), leaf.grad))
    torch.testing.assert_close(found[4:], found[:4])


def test_statistics_are_copied_as_they_are_computed():
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.ReLU())
    compiled = jit(model)
    compiled(torch.randn(3, 4)).sum().backward()
    assert "detach" not in str(last_traces(compiled)[-1])


@pytest.mark.parametrize(("write", "trained"), [("add_", True), ("mul_", False), ("copy_", False)])
def test_what_a_mask_selects_takes_as_many_values_in_place_as_it_selects(write, trained):
    def program(x, mask, y):
        kept = x[mask]
        getattr(kept, write)(y * 2)
        return kept

    compiled = jit(program, fallback="error")
    for rows, values in ((3, 3), (3, 1), (4, 4), (2, 2), (1, 3), (4, 3), (1, 1)):
        results = []
        for function in (program, compiled):
            x = torch.linspace(1, 2, 6, requires_grad=trained)
            try:
                made = function(x, torch.arange(6) < rows, torch.ones(values))
                if trained:
                    made.square().sum().backward()
                results.append((made.detach(), x.grad))
            except RuntimeError as error:
                results.append(str(error))
        if isinstance(results[0], str):
            assert results[1] == results[0]
        else:
            torch.testing.assert_close(results[1], results[0])
    assert cache_misses(compiled) == 3  # the first, one value for all, and other numbers of them
