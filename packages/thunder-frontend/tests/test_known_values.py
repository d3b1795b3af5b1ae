"""Values that Python looks at and that are computed of integers among the inputs: known, and guarded."""

import pytest
import torch
from versions import ENDS_OF_SLICES

import thunder_frontend as frontend
from thunder_frontend import DataDependentError


def check(function, *calls, misses):
    """Compare calls with eager's; ``misses`` of them compile."""
    compiled = frontend.jit(function)
    for args in calls:
        ours, eagers = compiled(*args), function(*args)
        for our, eager in zip(ours, eagers, strict=True):
            assert our.dtype == eager.dtype and torch.equal(our, eager) and our.stride() == eager.stride()
    assert frontend.cache_misses(compiled) == misses
    return compiled


def over_a_grid(grid, x):
    rows = []
    for _, height, width in grid.tolist():
        rows += [x[i] * width for i in range(height)]
    return (torch.stack(rows),)


X = torch.arange(12.0).reshape(4, 3)
GRID, OTHER = torch.tensor([[1, 2, 4]]), torch.tensor([[1, 3, 5]])


def test_loops_over_values_are_compiled_for_these_values():
    compiled = check(over_a_grid, (GRID, X), (GRID.clone(), X + 1), (OTHER, X), (GRID, X), misses=2)
    (reasons,) = frontend.explain_misses(compiled)
    assert "[[1, 3, 5]], compiled for [[1, 2, 4]]" in reasons[0] and "args[0]" in reasons[0]


def test_only_what_python_sees_is_guarded():
    def branches(ids, x):
        return (x + 1 if (ids == 7).any() else x - 1,)

    with_it, without = torch.tensor([1, 7, 3]), torch.tensor([1, 2, 3])
    check(branches, (with_it, X), (with_it.flip(0), X), (without, X), (without + 1, X), misses=2)


def test_results_of_unknown_size_are_written_out_where_the_program_needs_their_size():
    def places(ids, x):
        found = (ids == 7).nonzero()
        if len(found) > 1:
            return found, x[found[:, 0]], torch.unique(ids), x[ids == 7]
        return found, x[ids == 7], torch.empty(0), torch.empty(0)

    check(places, (torch.tensor([7, 1, 7, 7]), X), (torch.tensor([1, 1, 7, 1]), X), misses=2)


def test_what_was_written_before_python_looks_is_what_it_sees():
    def writes(sizes, x):
        sizes = sizes.clone()
        sizes[0] += 1
        sizes.mul_(2)
        return (x.repeat(sizes[0].item(), 1), sizes, x[: int(sizes[1])], x if sizes[0] > 2 else x * float(sizes[1]))

    check(writes, (torch.tensor([1, 1]), X), (torch.tensor([0, 1]), X), misses=2)


def test_texts_numpy_and_questions_see_the_values():
    def asks(ids, x):
        names = {"3": 1.0, "5": 2.0}
        total = int(ids.numpy().sum())
        return (x * names[f"{ids[0]}"] + total + ids.equal(torch.tensor([3, 4])),)

    check(asks, (torch.tensor([3, 4]), X), (torch.tensor([5, 4]), X), misses=2)


def test_what_depends_on_constants_alone_needs_no_guard():
    def constants(x):
        places = torch.arange(4)
        return (x + 1 if (places.diff() != 1).any() else x - 1,)

    compiled = check(constants, (X,), (X + 1,), misses=1)
    assert "computed_difference" not in str(frontend.last_prologue_traces(compiled)[0])


def test_another_kind_of_input_is_another_program():
    def looks(sizes, x):
        return (x[: sizes.sum().item() + 1] if sizes.max() > 1 else x,)

    check(
        looks, (torch.tensor([1, 2]), X), (torch.tensor([2]), X), (torch.tensor([1, 2], dtype=torch.int32), X), misses=3
    )


def test_the_programs_own_errors_are_eagers():
    def counts(ids, x):
        if (ids == 0).sum() * 2 != len(x):
            raise ValueError(f"{(ids == 0).sum()} places for {len(x)}")
        return (x,)

    compiled = check(counts, (torch.tensor([0, 0]), X), misses=1)
    with pytest.raises(ValueError, match="^1 places for 4$"):
        compiled(torch.tensor([0, 1]), X)


@pytest.mark.parametrize(
    "branch",
    [lambda i, x: x.sum() > 0, lambda i, x: (i * x[0, 0]) > 0, lambda i, x: (torch.rand(1) + i.sum()) > 0],
    ids=["floats", "mixed", "random"],
)
def test_values_of_floats_and_random_numbers_stay_refused(branch):
    with pytest.raises(DataDependentError, match="known only when the program runs"):
        frontend.jit(lambda i, x: x + 1 if branch(i, x) else x, outcomes=0)(torch.tensor([1]), X)


def test_gradients_pass_through():
    weights = X.clone().requires_grad_()
    ours, eagers = (f(GRID, weights)[0].pow(2).sum() for f in (frontend.jit(over_a_grid), over_a_grid))
    assert torch.equal(*(torch.autograd.grad(loss, weights)[0] for loss in (ours, eagers)))


def test_an_input_that_the_program_writes_to_is_looked_at_as_it_was():
    def writes(ids, x):
        x = x + 1 if ids[0] > 2 else x
        ids.add_(1)
        return (x, ids)

    compiled = frontend.jit(writes)
    ours, eagers = torch.tensor([1, 5]), torch.tensor([1, 5])
    for _ in range(4):
        for our, eager in zip(compiled(ours, X), writes(eagers, X), strict=True):
            assert torch.equal(our, eager)
    assert frontend.cache_misses(compiled) == 2


@pytest.mark.parametrize(
    ("use", "compares", "misses"),
    [
        pytest.param(lambda n, x: x[:n], False, 1, marks=ENDS_OF_SLICES),
        (lambda n, x: x[:n], True, 2),
        (lambda n, x: torch.zeros((3, n)) + x.sum(), False, 1),
        (lambda n, x: torch.zeros((3, n)) + x.sum(), True, 2),
        (lambda n, x: torch.nn.functional.pad(x, (0, n)), False, 2),
        (lambda n, x: torch.nn.functional.interpolate(x[None, None], size=(n, n + 1)), False, 2),
    ],
    ids=["open slice", "known slice", "open zeros", "known zeros", "pad", "interpolate"],
)
def test_a_tensor_of_one_integer_is_a_size(use, compares, misses):
    def sizes(ids, x):
        n = ids.sum()
        return (use(n, x), x + 1 if compares and n > 2 else x)

    check(sizes, (torch.tensor([1, 1]), X), (torch.tensor([1, 2]), X), misses=misses)


def test_what_pytorch_makes_of_two_numbers_is_a_tensor():
    def chunks(x):
        count = torch.div(len(x), 2, rounding_mode="trunc") - 1
        return (x.repeat(int(count) + 1, 1), x + torch.add(1, 2))

    check(chunks, (X,), misses=1)


def test_what_only_fails_because_a_library_is_told_of_the_capture_runs_as_eager():
    def library(x, mask=None):
        if mask is None and not torch.compiler.is_compiling():
            mask = torch.ones(len(x), 1)
        return (x * mask[:, :1],)

    check(library, (X,), misses=1)


def test_objects_with_a_length_and_items_are_reversed():
    layers = torch.nn.ModuleList([torch.nn.Linear(3, 3) for _ in range(3)])

    def backwards(x):
        for layer in reversed(layers):
            x = layer(x)
        return (x.detach(),)

    check(backwards, (X,), misses=1)


def test_what_is_refused_is_the_first_value_that_cannot_be_known():
    def function(x):
        steps = torch.linspace(0, 1, 4)
        if (steps[1:] > steps[:-1]).all():
            x = x + 1
        return x if x.sum() > 0 else -x

    with pytest.raises(DataDependentError, match=r"x.sum\(\) > 0"):
        frontend.jit(function, outcomes=0)(X)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, n: x.diagonal(n),
        lambda x, n: x.clone().diagonal(n).fill_(1),
        lambda x, n: x.unsqueeze(n) + torch.transpose(x, n, 0),
        lambda x, n: x.chunk(n + 1, dim=n)[0],
        lambda x, n: torch.nn.functional.one_hot(torch.tensor([0, 1]), n + 3),
        lambda x, n: torch.nn.functional.layer_norm(x, (n * 4,)),
        lambda x, n: x.diagonal(torch.tensor([0, 1]).cumsum(0)[n]),
    ],
)
@pytest.mark.parametrize("made_inside", [False, True])
def test_tensors_of_one_integer_are_taken_for_integers(program, made_inside):
    x, n = torch.randn(4, 4), torch.tensor(1)
    if made_inside:
        torch.testing.assert_close(frontend.jit(lambda x: program(x, torch.tensor(1)))(x), program(x, n))
    else:
        torch.testing.assert_close(frontend.jit(program)(x, n), program(x, n))
