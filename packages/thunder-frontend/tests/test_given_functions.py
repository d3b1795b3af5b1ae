"""Functions among the arguments that each call makes anew: one program serves all that are made of the same code."""

import functools
import gc
import types
import weakref

import pytest
import torch

from thunder_frontend import cache_misses, jit

LINEAR = torch.nn.Linear(4, 4)


def multiplies(w):
    return lambda y: y * w


def counts(w):
    calls, seen = 0, []

    def multiply(y):
        nonlocal calls
        calls += 1
        seen.append(calls)
        return y * w + len(seen)

    multiply_and_tell = multiply
    return multiply_and_tell


def calls_another(w):
    def add(y):
        return y + w

    return lambda y: add(y) * add(y)


def sums(w):
    weights = [w, w + 1]
    return lambda y: sum([y * weight for weight in weights])


def given_partly(w):
    def add(scale, y):
        return y * scale + w

    return functools.partial(add, 3)


def of_a_module(w):
    linear = LINEAR
    return lambda y: linear(y) * w


def with_defaults(w):
    def multiply(y, scale=3, shift=None):
        return y * w * scale if shift is None else y

    return multiply


def calls_itself(w):
    def halve(y, depth=2):
        return halve(y * w, depth - 1) if depth else y

    return halve


class Scales:
    """Has a method that is given."""

    def __init__(self, w):
        self.w = w

    def scaled(self, y):
        return y * self.w


def method(w):
    return Scales(w).scaled


CALLERS = {
    "call": lambda f, x: f(x) * 2,
    "calls": lambda f, x: f(f(x)),
    "grad": lambda f, x: torch.func.grad(lambda y: f(y).sum())(x),
    "vmap": lambda f, x: torch.vmap(f)(x),
    "map": lambda f, x: torch.stack(list(map(f, [x, x + 1]))),
    "checkpoint": lambda f, x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False),
}
KINDS = (
    multiplies, counts, calls_another, sums, given_partly, of_a_module, with_defaults, calls_itself, method,
)  # fmt: skip


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_one_program_serves_all_functions_of_one_code(kind, caller):
    eager = CALLERS[caller]
    compiled = jit(eager)
    for _ in range(3):
        x, w = torch.randn(4, 4), torch.randn(4)
        mine, theirs = kind(w), kind(w)
        torch.testing.assert_close(compiled(mine, x), eager(theirs, x))
        if kind is counts:
            assert variables(mine)["calls"] == variables(theirs)["calls"] > 0
            assert variables(mine)["seen"] == variables(theirs)["seen"]
    assert cache_misses(compiled) == 1


def variables(function):
    """Return what a closure holds."""
    return dict(zip(function.__code__.co_freevars, [cell.cell_contents for cell in function.__closure__], strict=True))


def counter_and_reader():
    count = 0

    def counted(x):
        nonlocal count
        count += 1
        return x * count

    return counted, lambda x: x + count


def test_functions_share_variables_or_do_not():
    eager = lambda f, g, x: f(x) + g(x)  # noqa: E731
    compiled = jit(eager)
    for shared in (False, True, False, True):
        (f, g), (a, b) = [
            (counted, reader if shared else counter_and_reader()[1])
            for counted, reader in (counter_and_reader(), counter_and_reader())
        ]
        torch.testing.assert_close(compiled(f, g, torch.ones(2)), eager(a, b, torch.ones(2)))
    assert cache_misses(compiled) == 2


def test_a_variable_that_something_outside_shares_is_that_one():
    counted, reader = counter_and_reader()
    compiled = jit(lambda f, x: f(x) + reader(x))
    assert compiled(counter_and_reader()[0], torch.ones(())) == 2
    assert compiled(counted, torch.ones(())) == 3
    assert compiled(counter_and_reader()[0], torch.ones(())) == 3
    assert reader(0) == 1


def test_a_variable_that_something_outside_writes_is_that_one():
    def counter():
        count = 0

        def resets():
            nonlocal count
            count = 5

        return resets, lambda x: x + count

    resets, reader = counter()
    compiled = jit(lambda f, x: (resets(), f(x))[1])
    assert compiled(counter()[1], torch.ones(())) == 1
    assert compiled(reader, torch.ones(())) == 6
    assert compiled(counter()[1], torch.ones(())) == 1


def test_other_code_globals_or_constants_are_another_program():
    compiled = jit(lambda f, x: f(x))
    one = with_defaults(torch.ones(()))
    elsewhere = types.FunctionType(one.__code__, {}, "elsewhere", one.__defaults__, one.__closure__)
    other = with_defaults(torch.ones(()))
    other.__defaults__ = (4, None)
    marked = with_defaults(torch.ones(()))
    marked.scale = 2
    for given in (one, elsewhere, other, marked, multiplies(torch.ones(()))):
        assert compiled(given, torch.ones(())) == given(torch.ones(()))
    assert cache_misses(compiled) == 5


def test_which_function_it_is_counts_where_the_program_asks():
    names = {}

    def named(f, x):
        if f not in names:
            names[f] = len(names) + 1
        return x * names[f]

    compiled, given = jit(named), [multiplies(torch.ones(())) for _ in range(3)]
    for number in (0, 1, 0, 2, 1):
        assert compiled(given[number], torch.ones(())) == number + 1
    assert list(names) == given


def test_a_function_is_handed_on_and_not_kept():
    kept = []

    def keeps(f, x):
        kept.append(f)
        return f, f(x)

    compiled = jit(keeps)
    for number in range(3):
        f = multiplies(torch.tensor(float(number)))
        found, product = compiled(f, torch.ones(()))
        assert found is f and kept.pop() is f and product == number
        reference = weakref.ref(f)
        del f, found
        gc.collect()
        assert reference() is None


def sparse_product(x):
    return torch.sparse.mm(torch.eye(4).to_sparse(), x)


SPLITS = {
    "before and after": lambda f, x: f(sparse_product(f(x))),
    "after": lambda f, x: f(sparse_product(x)),
    "by another name": lambda f, x: (functools.partial(f), sparse_product(x))[0](x) + x,
}


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
@pytest.mark.parametrize("name", SPLITS)
def test_what_comes_behind_a_split_is_given_the_function_of_the_call(name):
    eager = SPLITS[name]
    compiled = jit(eager, fallback="split")
    for _ in range(4):
        x, w = torch.randn(4, 4), torch.randn(4)
        torch.testing.assert_close(compiled(multiplies(w), x), eager(multiplies(w), x))


class Gain:
    """Scales gradients."""

    def __init__(self, factor):
        self.factor = factor

    def scaled(self, gradient):
        return gradient * self.factor


HOOKS = {
    "function": lambda y, gain: y.register_hook(multiplies(gain.factor)),
    "given function": lambda y, f: y.register_hook(f),
    "function in a closure": lambda y, f: y.register_hook(lambda gradient: f(gradient) * 2),
    "object in a closure": lambda y, gain: y.register_hook(lambda gradient: gradient * gain.factor),
    "method": lambda y, gain: y.register_hook(gain.scaled),
}


@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
@pytest.mark.parametrize("name", HOOKS)
def test_hooks_on_tensors_are_those_of_the_call(name):
    def eager(x, given):
        y = x * 2
        HOOKS[name](y, given)
        return (y * y).sum()

    compiled = jit(eager, fallback="split")
    for factor in (3.0, torch.ones(4) / 3, 5.0, torch.arange(4.0), 3.0):
        given = multiplies(factor) if name in ("given function", "function in a closure") else Gain(factor)
        x, y = [torch.ones(3, 4, requires_grad=True) for _ in range(2)]
        compiled(x, given).backward()
        eager(y, given).backward()
        torch.testing.assert_close(x.grad, y.grad)


class Holder:
    def __init__(self, function):
        self.function = function


GIVEN = {
    "argument": (lambda f, x: f(x), lambda f: f),
    "item": (lambda f, x: f[0](x), lambda f: [f]),
    "attribute": (lambda f, x: f.function(x), Holder),
    "closure": (lambda f, x: f(x), lambda f: lambda x: f(x)),
    "partial": (lambda f, x: f(x), functools.partial),
    "vmap": (lambda f, x: torch.vmap(f)(x), lambda f: f),
}


@pytest.mark.parametrize("name", GIVEN)
def test_another_compiled_function_is_another_program(name):
    program, given = GIVEN[name]
    functions = [torch.sin, lambda x: x * 3, lambda x: x * 4]
    outer, inner = jit(program, fallback="error"), [jit(f) for f in functions]
    x = torch.ones(3)
    for place in (0, 1, 2, 1, 0):
        torch.testing.assert_close(outer(given(inner[place]), x), functions[place](x))
    assert cache_misses(outer) == 3


def test_the_forward_of_another_compiled_module_is_another_program():
    class Scaled(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def forward(self, x):
            return x * self.factor

    modules, x = [jit(Scaled(factor)) for factor in (2.0, 3.0)], torch.ones(3)
    for program, given in ((lambda f, x: f(x), lambda m: m.forward), (lambda m, x: m.forward(x), lambda m: m)):
        compiled = jit(program, fallback="error")
        for module in (*modules, modules[0]):
            torch.testing.assert_close(compiled(given(module), x), x * module.factor)
        modules[0].factor = 4.0
        torch.testing.assert_close(compiled(given(modules[0]), x), x * 4)
        with_both = jit(lambda f, m, x: f(x) + m.forward(x), fallback="error")
        for one in modules:
            for other in modules:
                torch.testing.assert_close(with_both(one.forward, other, x), x * (one.factor + other.factor))
