"""Programs of equal traces run one computation, and others do not; what each returns is what eager returns."""

import copy
import gc
import threading
import weakref

import pytest
import torch
from torch import nn

from thunder_executors import OperatorExecutor
from thunder_frontend import cache_misses, jit, last_traces
from thunder_frontend._introspection import compile_data
from thunder_ir import set_execution_callback_file
from thunder_torch import symbol_of


def computations(*functions):
    """Return what the specialisations of compiled functions run, in order."""
    return [compiled.computation for function in functions for compiled in compile_data(function).compiled]


def same(function, eager, *args):
    """Whether a compiled function returns and differentiates to what eager does."""
    results, grads = [], []
    for run in (function, eager):
        given = [a.detach().clone().requires_grad_(a.requires_grad) if isinstance(a, torch.Tensor) else a for a in args]
        results.append(run(*given))
        if results[-1].requires_grad:
            wanted = [a for a in (*given, *getattr(run, "parameters", tuple)()) if getattr(a, "requires_grad", False)]
            grads.append(torch.autograd.grad(results[-1].square().sum(), wanted, materialize_grads=True))
    torch.testing.assert_close(*results, equal_nan=True)
    torch.testing.assert_close(*(grads or ((), ())), equal_nan=True)


class Model(nn.Module):
    def __init__(self, seed=0, factor=2.0):
        super().__init__()
        torch.manual_seed(seed)
        self.linear, self.norm, self.factor, self.step = nn.Linear(3, 3), nn.BatchNorm1d(3), factor, 0

    def forward(self, x):
        return self.norm(self.linear(x)) * self.factor if self.step < 5 else x


def test_models_of_equal_traces_run_one_computation_each_on_its_own_weights_and_buffers():
    models = [Model(seed) for seed in range(3)]
    eager, compiled = copy.deepcopy(models), [*map(jit, models)]
    for _ in range(2):
        for a, b in zip(compiled, eager, strict=True):
            x = torch.randn(4, 3, requires_grad=True)
            same(a, b, x)
            b.norm.running_mean.copy_(a.norm.running_mean)
    first, *others = computations(*compiled)
    assert all(other is first for other in others) and len(others) == 2
    assert not torch.equal(models[0].norm.running_mean, models[1].norm.running_mean)
    assert str(last_traces(compiled[0])[0]) == str(last_traces(compiled[2])[0])


def test_specialisations_whose_guards_alone_differ_run_one_computation():
    model = Model()
    compiled, x = jit(model, cache="constant values"), torch.randn(4, 3)
    model.eval()
    for step in range(7):
        model.step = step
        same(compiled, model, x)
    assert cache_misses(compiled) == 7
    made = computations(compiled)
    assert len({*map(id, made[:5])}) == 1 and len({*map(id, made)}) == 2


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
def test_values_of_numbers_that_are_fixed_after_all_run_one_computation(cache):
    def by_text(x, n):
        return x * len(f"{n}")

    compiled, x = jit(by_text, cache=cache), torch.randn(4, requires_grad=True)
    for n in (3, 7, 5, 12, 8, 7, 12, 3, -4, True, 12):
        same(compiled, by_text, x, n)
    made = compile_data(compiled).compiled
    fixed = [each for each in made if not each.specialisation.program.numbers]
    assert cache_misses(compiled) == len(fixed) == len(made) == 7
    assert len({*map(id, computations(compiled))}) == 3  # of texts of one, two and four characters


RETURNING = {
    "as it is": lambda x, n: (x * len(f"{n}"), n),
    "in a sum": lambda x, n: (x * len(f"{n}"), n + 1),
    "in a dict": lambda x, n: {n: x * len(f"{n}"), "n": [n, x.shape[0]]},
    "as a factor": lambda x, n: x * n * len(f"{n}"),
    "as a size": lambda x, n: x.new_ones(n, len(f"{n}")),
}


@pytest.mark.parametrize("returning", RETURNING.values(), ids=RETURNING)
def test_numbers_that_are_fixed_after_something_was_computed_of_them(returning):
    compiled = jit(returning)
    for size, n in ((2, 3), (3, 7), (2, 5), (4, 12), (5, 5), (2, 3)):
        x = torch.randn(size)
        torch.testing.assert_close(compiled(x, n), returning(x, n))


def test_both_derivatives_of_results_of_one_computation():
    models = [Model(seed).eval().double() for seed in range(2)]
    compiled = [*map(jit, models)]
    x = torch.randn(2, 3, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x: compiled[0](compiled[1](x).tanh()), x.requires_grad_())
    assert torch.autograd.gradgradcheck(lambda x: compiled[0](compiled[1](x).tanh()), x)
    assert len({*map(id, computations(*compiled))}) == 1


def test_random_numbers_are_drawn_by_each_call():
    compiled = [jit(nn.Dropout(0.5)) for _ in range(2)]
    x = torch.ones(64)
    torch.manual_seed(3)
    found = [run(x) for run in (*compiled, *compiled)]
    assert len({*map(id, computations(*compiled))}) == 1
    assert not any(torch.equal(a, b) for i, a in enumerate(found) for b in found[:i])


def scaled(x, factor, *others):
    return torch.atan2(x * factor, x) + (others[0] if others else 0)


A = torch.randn(4, 4, generator=torch.Generator().manual_seed(0))
PAIRS = {
    "sign of zero": ((A, 0.0), (A, -0.0)),
    "type of a number": ((A, 1), (A, 1.0)),
    "truth": ((A.int(), 1), (A.int(), True)),
    "NaN": ((A, float("nan")), (A, float("inf"))),
    "strides": ((A, 2.0), (A.t(), 2.0)),
    "dtype": ((A, 2.0), (A.double(), 2.0)),
    "shape": ((A, 2.0), (A[:2], 2.0)),
    "requires_grad": ((A, 2.0), (A.clone().requires_grad_(), 2.0)),
    "requires_grad of the other": ((A, A), (A, A.clone().requires_grad_())),
    "what is added": ((A, 2.0, A), (A, 2.0, 1.0)),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_what_computes_otherwise_runs_another_computation(pair):
    compiled = jit(scaled, cache="constant values")
    for args in (*pair, *pair):
        same(compiled, scaled, *args)
    one, other = computations(compiled)
    assert one is not other


def under_autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x()


def without_gradients(x):
    with torch.no_grad():
        return x()


@pytest.mark.parametrize("state", [under_autocast, without_gradients])
def test_the_state_of_pytorch_tells_computations_apart(state):
    model = nn.Linear(3, 3)
    compiled, x = jit(model), torch.randn(2, 3)
    for run in (compiled, model):
        plain, other = run(x), state(lambda run=run: run(x))
        if run is compiled:
            found = plain, other
    torch.testing.assert_close(found, (plain, other))
    assert found[1].requires_grad == other.requires_grad
    assert len({*map(id, computations(compiled))}) == 2


@pytest.mark.parametrize("options", [{"executors": ["torch"]}, {"partition": "save-all"}, {"memory_budget": 0.5}])
def test_options_tell_computations_apart(options):
    model, x = Model().eval(), torch.randn(4, 3)
    one, other, again = jit(model), jit(model, **options), jit(model, **options)
    for run in (one, other, again):
        same(run, model, x)
    plain, *asked = computations(one, other, again)
    assert asked[0] is asked[1] is not plain


def test_an_operation_that_is_registered_later_is_run():
    executor = OperatorExecutor("later")
    one = jit(torch.tanh, executors=[executor])
    x = torch.randn(3)
    torch.testing.assert_close(one(x), x.tanh())
    executor.implements(symbol_of(torch.tanh))(lambda x: torch.tanh(x) + 1)
    other = jit(torch.tanh, executors=[executor])
    torch.testing.assert_close(other(x), x.tanh() + 1)


def test_an_executor_of_the_users_is_asked_again():
    executor, taken = OperatorExecutor("asked"), [True]
    operator = executor.register_operator("more", like=torch.sin, fn=lambda x: torch.sin(x) + 1)
    executor.register_implementation(symbol_of(torch.sin), operator, checker=lambda x: taken[0])
    one, x = jit(torch.sin, executors=[executor]), torch.randn(3)
    torch.testing.assert_close(one(x), x.sin() + 1)
    taken[0] = False
    other = jit(torch.sin, executors=[executor])
    torch.testing.assert_close(other(x), x.sin())


def test_what_a_person_edits_is_run_by_nothing_else(tmp_path):
    def doubled(x):
        return x * 2

    set_execution_callback_file(tmp_path / "program.py")
    edited = jit(doubled)
    edited(torch.ones(2))
    set_execution_callback_file(None)
    plain = jit(doubled)
    plain(torch.ones(2))
    assert computations(edited)[0] is not computations(plain)[0]


def test_the_lines_of_the_users_tell_computations_apart():
    functions = [lambda x: x.tanh() * 2,
                 lambda x: x.tanh() * 2]  # fmt: skip
    compiled = [*map(jit, functions)]
    for run in compiled:
        run(torch.ones(2))
    lines = [[b.location.line for b in made.trace.bound_symbols] for made in computations(*compiled)]
    assert lines[0] != lines[1]


def test_a_computation_keeps_no_model_and_goes_with_the_last_one_that_runs_it():
    models = [Model(seed).eval() for seed in range(2)]
    compiled = [*map(jit, models)]
    for run in compiled:
        run(torch.randn(4, 3)).sum().backward()
    (first, second) = map(weakref.ref, computations(*compiled))
    assert first() is second()
    weight = weakref.ref(models[0].linear.weight)
    del models[0], compiled[0], run
    gc.collect()
    assert weight() is None and second() is not None
    same(compiled[0], models[0], torch.randn(4, 3))
    del models[0], compiled[0]
    gc.collect()
    assert second() is None


def test_threads_compile_and_run_models_of_equal_traces():
    models = [Model(seed).eval() for seed in range(4)]
    x, found = torch.randn(4, 3), {}
    wait = threading.Barrier(len(models))

    def run(place):
        compiled = jit(models[place])
        wait.wait()
        found[place] = [compiled(x).detach() for _ in range(20)]

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(models))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, model in enumerate(models):
        assert len(found[place]) == 20
        for result in found[place]:
            torch.testing.assert_close(result, model(x).detach())
