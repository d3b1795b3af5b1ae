"""Numbers that a program sets to others, such as counters: dynamic from the second program on that reads them."""

import copy
import json
import math
import types

import pytest
import torch

from thunder_frontend import cache_misses, jit, last_traces
from thunder_ir import IntegerProxy

X = torch.arange(12.0).reshape(4, 3)
CACHES = ["constant values", "symbolic values"]


class Counts(torch.nn.Module):
    """Runs a function of itself and the input, and counts before or after that."""

    def __init__(self, use, first):
        super().__init__()
        self.use, self.first = use, first
        self.calls, self.share, self.times, self.list = 0, 1.0, {"n": 0}, [1]

    def count(self):
        self.calls += 1
        self.share *= 0.9
        self.times["n"] += 2

    def forward(self, x):
        if self.first:
            self.count()
        result = self.use(self, x)
        if not self.first:
            self.count()
        return result

    def state(self):
        return self.calls, self.share, self.times, self.list, [type(v) for v in (self.calls, self.share, *self.list)]


def scaled(m, x):
    return x * m.share + m.calls - m.times["n"] / 3


def in_an_index(m, x):
    return x[m.calls % 4]


def in_a_slice(m, x):
    return x[: m.calls]


def as_a_size(m, x):
    return torch.full((m.calls,), m.share)


def compared(m, x):
    return x if m.calls > 2 else -x


def as_a_truth(m, x):
    return x if m.calls else -x


def of_a_type(m, x):
    return x * (2 if isinstance(m.calls, int) and type(m.share) is float else 3)


def as_a_tensor(m, x):
    return x + torch.tensor([m.calls, 1]).sum()


def clamped(m, x):
    return x.clamp(max=m.calls) * max(m.calls, 2) * min(m.share, 0.5)


def by_mathematics(m, x):
    decay = math.cos(math.pi * m.calls / 20) * math.exp(-m.share)
    return x * math.sqrt(1 - 0.9 ** (m.calls + 1)) + decay * math.log1p(m.calls)


def returned(m, x):
    return {"x": x + 1, "calls": m.calls, "share": (m.share,)}


def raises_once(m, x):
    if m.calls == 3:
        raise ValueError(f"at {m.calls}")
    return x + m.calls


SERVED = [
    scaled, in_an_index, in_a_slice, as_a_size, compared, as_a_truth, of_a_type, as_a_tensor, clamped, by_mathematics,
    returned, raises_once,
]  # fmt: skip


def as_text(m, x):
    return x * len(f"{m.calls}")


def as_a_range(m, x):
    return sum([x * i for i in range(m.calls)], x)


def as_a_key(m, x):
    return x * {0: 1.0, 1: 2.0, 2: 3.0}.get(m.calls, 7.0)


def copied(m, x):
    return x * copy.copy(m).calls


def by_code_in_c(m, x):
    return x * len(json.dumps(m.times))


def in_a_list(m, x):
    m.list.append(m.calls)
    return x * sum(m.list)


FIXED = [as_text, as_a_range, as_a_key, copied, by_code_in_c, in_a_list]


def outcome(call):
    try:
        return call()
    except ValueError as error:
        return {"error": torch.tensor(list(str(error).encode()))}


def check(function, compiled, args, compiled_args, state, times=7):
    for _ in range(times):
        expected, found = outcome(lambda: function(*args)), outcome(lambda: compiled(*compiled_args))
        torch.testing.assert_close(found, expected, rtol=0, atol=0)
        assert state()


@pytest.mark.parametrize(("cache", "first"), [(CACHES[0], True), (CACHES[0], False), (CACHES[1], True)])
@pytest.mark.parametrize("use", [*SERVED, *FIXED], ids=lambda use: use.__name__)
def test_counters_of_modules(use, first, cache):
    eager, module = Counts(use, first), Counts(use, first)
    compiled = jit(module, cache=cache)
    check(eager, compiled, (X,), (X,), lambda: eager.state() == module.state())
    if use in SERVED:
        assert cache_misses(compiled) <= 4


def test_a_counter_is_an_input_from_the_second_program_on():
    compiled = jit(Counts(scaled, True))
    compiled(X)
    assert not any(isinstance(p, IntegerProxy) for p in last_traces(compiled)[0].inputs)
    compiled(X)
    assert any(isinstance(p, IntegerProxy) for p in last_traces(compiled)[0].inputs)


def test_gradients_beside_a_counter():
    eager, module = Counts(scaled, True), Counts(scaled, True)
    compiled = jit(module)
    for _ in range(4):
        x, y = X.clone().requires_grad_(), X.clone().requires_grad_()
        eager(x).square().sum().backward()
        compiled(y).square().sum().backward()
        assert torch.equal(x.grad, y.grad)
    assert cache_misses(compiled) == 2


def counter():
    n = 0

    def counts(x):
        nonlocal n
        n += 1
        return x + n

    return counts


@pytest.mark.parametrize("cache", CACHES)
def test_counters_in_closures_and_arguments(cache):
    eager, compiled = counter(), jit(counter(), cache=cache)
    check(eager, compiled, (X,), (X,), lambda: True)
    assert cache_misses(compiled) <= 2

    def counts(config, x):
        config.step += 1
        return x * config.step

    ours, eagers = types.SimpleNamespace(step=0), types.SimpleNamespace(step=0)
    compiled = jit(counts, cache=cache)
    check(counts, compiled, (eagers, X), (ours, X), lambda: ours == eagers)
    assert cache_misses(compiled) <= 2


STEP = 0


def counts_globally(x):
    global STEP
    STEP += 1
    return x * STEP


def test_counters_among_globals(monkeypatch):
    monkeypatch.setitem(globals(), "STEP", 0)
    compiled = jit(counts_globally)
    assert [compiled(X)[0, 1].item() for _ in range(5)] == [1, 2, 3, 4, 5]
    assert cache_misses(compiled) == 2


def test_numbers_that_are_set_from_outside_are_left_open_where_sizes_are():
    module = torch.nn.Dropout(0.0)
    module.scale = 1.0

    def scale(x):
        return x * module.scale

    symbolic, constant = [jit(scale, cache=cache) for cache in ("symbolic values", "constant values")]
    for k in range(6):
        module.scale = 0.5 * k
        assert torch.equal(symbolic(X), X * module.scale) and torch.equal(constant(X), X * module.scale)
    assert (cache_misses(symbolic), cache_misses(constant)) == (2, 6)


class Exchanges(torch.nn.Module):
    """Puts a number, an object or both where it finds one, in a program that takes no symbolic sizes."""

    def __init__(self, exchanges):
        super().__init__()
        self.exchanges, self.calls, self.state = exchanges, 0, types.SimpleNamespace(scale=2.0)

    def forward(self, x):
        if "number" in self.exchanges:
            self.calls += 1
        if "object" in self.exchanges:
            self.state = types.SimpleNamespace(scale=self.state.scale)
        return x * self.state.scale + len("-".join([str(x.shape[0])])) + self.calls


@pytest.mark.parametrize("cache", [*CACHES, "auto"])
@pytest.mark.parametrize("exchanges", ["a number", "an object", "a number and an object"])
def test_programs_that_fix_their_sizes_serve_other_values_of_what_they_exchange(exchanges, cache):
    eager, compiled = Exchanges(exchanges), jit(Exchanges(exchanges), cache=cache)
    for rows in (2, 3, 4) * 3:
        assert torch.equal(compiled(torch.ones(rows)), eager(torch.ones(rows)))
    assert cache_misses(compiled) == 4


def test_a_counter_that_becomes_another_kind_of_number_is_compiled_for():
    module = Counts(scaled, True)
    compiled = jit(module)
    compiled(X), compiled(X)
    for value in (0.5, True, 7):
        eager = copy.deepcopy(module)
        module.calls = eager.calls = value
        assert torch.equal(compiled(X), eager(X))
        assert eager.state() == module.state()


def test_numbers_of_objects_among_the_arguments_keep_their_kind():
    def program(config, x):
        return x * (2 if isinstance(config.n, int) else 3) * config.n

    compiled = jit(program, cache="symbolic values")
    for n in (2, 3, 2.5, True):
        config = types.SimpleNamespace(n=n)
        assert torch.equal(compiled(config, X), program(config, X))


@pytest.mark.parametrize("exponents", [(1, 2, -2), (0.5, 2.0, -1.5)])
def test_powers_of_open_numbers_are_of_the_kind_that_python_gives(exponents):
    def program(x, base, exponent):
        return torch.full((2,), base**exponent)

    compiled = jit(program, cache="symbolic values")
    for base in (2, 3):
        for exponent in exponents:
            torch.testing.assert_close(compiled(X, base, exponent), program(X, base, exponent), rtol=0, atol=0)
    torch.testing.assert_close(compiled(X, -2, 0.5), program(X, -2, 0.5), rtol=0, atol=0)


class Counted:
    calls, share, kept = 0, 0.5, (1,)


class Derived(Counted):
    pass


class CountsOnItsClass(torch.nn.Module):
    seen = 0

    def forward(self, x):
        type(self).seen += 1
        return x * self.seen if self.seen != 3 else -x


def counts_on_a_class(x):
    Counted.calls += 1
    Counted.share *= 0.5
    return x * Counted.share + Derived.calls + Counted().calls


def counts_on_a_derived_class(x):
    Derived.calls += 1
    return x * Derived.calls + Counted.calls


def counts_by_name(x):
    setattr(Counted, "calls", getattr(Counted, "calls") + 1)  # noqa: B009, B010
    return x[: 1 + vars(Counted)["calls"] % 2]


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize(
    ("program", "compiled_at_most"),
    [(counts_on_a_class, 3), (counts_on_a_derived_class, 5), (counts_by_name, 3), (CountsOnItsClass(), 3)],
    ids=["class", "derived class", "by name", "module"],
)
def test_counters_on_classes(program, compiled_at_most, cache, monkeypatch):
    def outcome(run):
        monkeypatch.setattr(Counted, "calls", 0)
        monkeypatch.setattr(Counted, "share", 0.5)
        monkeypatch.setattr(CountsOnItsClass, "seen", 0)
        if "calls" in vars(Derived):
            del Derived.calls
        found = []
        for call in range(8):
            if call == 4:
                Counted.calls, CountsOnItsClass.seen, Counted.share = 7, 20, 1.0
            found.append((run(X).tolist(), Counted.calls, Derived.calls, Counted.share, CountsOnItsClass.seen))
        return found

    compiled = jit(program, cache=cache)
    assert outcome(compiled) == outcome(program)
    assert cache_misses(compiled) <= compiled_at_most


def test_what_a_program_puts_on_a_class_is_found_by_objects(monkeypatch):
    monkeypatch.setattr(Counted, "kept", (1,))

    def program(x, counted):
        Counted.calls = 5
        Counted.kept = (Counted.kept[0] + 1,)
        return x * counted.calls * counted.kept[0]

    compiled, counted = jit(program), Derived()
    for call in range(3):
        assert torch.equal(compiled(X, counted), X * 5 * (call + 2)) and Counted.kept == (call + 2,)


def dropped(x, p):
    return torch.dropout(x, p, True)


def dropped_and_written(x, p):
    y = torch.dropout(x, p, True)
    y.add_(1)
    return y, x * 1


def dropped_by_what_is_read(x, p):
    y = torch.dropout(x, torch.tensor(p).item(), True)
    y.add_(1)
    return y, x * 1


@pytest.mark.parametrize("cache", ["auto", "symbolic values"])
@pytest.mark.parametrize("program", [dropped, dropped_and_written, dropped_by_what_is_read], ids=lambda p: p.__name__)
@pytest.mark.parametrize("order", [(0.5, 0.0, 1.0, 0.25, 0.0), (0.0, 1.0, 0.5, 0.0), (1.0, 0.0, 0.75)])
@pytest.mark.filterwarnings("ignore::thunder_frontend.FallbackWarning")
def test_a_number_that_decides_whether_a_result_is_the_argument_is_looked_at(program, cache, order):
    compiled = jit(program, cache=cache, fallback="split")
    for p in order:
        found = []
        for function in (program, compiled):
            torch.manual_seed(0)
            x = torch.ones(4)
            result = function(x, p)
            first = result[0] if isinstance(result, tuple) else result
            found.append((result, x, first is x))
        torch.testing.assert_close(found[1], found[0])


def test_an_attribute_that_becomes_the_rate_of_dropout_of_nothing_is_no_constant():
    module = torch.nn.Dropout(0.5)
    compiled = jit(module)
    for module.p in (0.5, 0.0, 1.0):
        found = compiled(torch.ones(4))
    assert torch.equal(found, torch.zeros(4))


def power_of_two(exponent):
    return math.pow(2, exponent)


def squared(base):
    return math.pow(base, 2.5)


def logarithm_to(base):
    return math.log(5, base)


@pytest.mark.parametrize(
    ("function", "numbers"),
    [
        (math.log, (4, 3, 2, 1, 0, -1)),
        (math.sqrt, (2.0, 1.0, 0.5, 0.0, -0.5, math.nan)),
        (math.acos, (0.5, 0.25, 1.0, 1.25)),
        (math.exp, (1.0, 2.0, 3.0, 800.0)),
        (math.sin, (1.0, 2.0, 3.0, math.inf)),
        (math.atanh, (0.5, 0.25, -0.5, 1.0, math.nan)),
        (power_of_two, (2, 3, -1, 2000)),
        (squared, (2.0, 3.0, 0.5, -0.5, 0.0, math.nan)),
        (logarithm_to, (2.0, 3.0, 0.5, 1.0, 0.0)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_mathematics_of_numbers_that_change_is_refused_for_the_same(function, numbers):
    def program(x, number):
        made = function(number)
        return x * made if made > -100 else x

    compiled = jit(program)
    for number in numbers:
        try:
            expected = program(X, number)
        except (ValueError, OverflowError, ZeroDivisionError) as error:
            with pytest.raises(type(error), match=str(error)):
                compiled(X, number)
        else:
            torch.testing.assert_close(compiled(X, number), expected, rtol=0, atol=0, equal_nan=True)
    assert cache_misses(compiled) <= 4  # the first number, its like, those that are refused, NaN


@pytest.mark.parametrize(
    "function",
    [
        lambda n: math.pow(0.9, n),
        lambda n: math.log(n, 3),
        lambda n: math.fabs(-n),
        lambda n: math.exp2(n) + math.cbrt(n) + math.asinh(n) + math.acosh(n) + math.erfc(n),
        lambda n: math.floor(n) + math.ceil(n) + math.trunc(n) + round(n) + round(n, 1),
        lambda n: n / 4 if math.isfinite(n / 4) and not math.isnan(n / 4) and not math.isinf(n / 4) else 1,
    ],
    ids=["pow", "log with a base", "fabs", "others", "rounding", "checks"],
)
def test_mathematics_of_a_counter_needs_one_program(function):
    count = 0

    def program(x):
        nonlocal count
        count += 1
        return x * function(count)

    compiled = jit(program, fallback="error")
    for call in range(1, 9):
        assert torch.equal(compiled(X), X * function(call))
    assert cache_misses(compiled) == 2


@pytest.mark.parametrize("asked", [math.isfinite, math.isnan, math.isinf])
def test_whether_a_number_that_changes_is_finite_is_asked_at_each_call(asked):
    def program(x, number):
        return x * 2 if asked(number) else x + 1

    compiled = jit(program, fallback="error")
    for number in (0.5, 1.5, math.inf, -math.inf, math.nan, 2.5, math.inf, math.nan, 1e308):
        assert torch.equal(compiled(X, number), program(X, number))
    assert cache_misses(compiled) <= 5  # the first number, and what is finite, infinite with either sign, and NaN


def to_cents(number):
    return round(number, 2)


@pytest.mark.parametrize("function", [round, to_cents])
def test_numbers_that_change_are_rounded_to_even(function):
    def program(x, number):
        return x * function(number), x.shape[0] - round(x.shape[0] * 0.7)

    compiled = jit(program)
    numbers = [0.3, 0.5, 1.5, 2.5, 3.5, -2.675, 2.675, 1000.005, 0.49999999999999994]
    for rows, number in enumerate(numbers, 3):
        x = torch.ones(rows, dtype=torch.float64)
        expected, rest = program(x, number)
        result = compiled(x, number)
        assert torch.equal(result[0], expected) and result[1] == rest
    assert cache_misses(compiled) == 2
    for number in (math.nan, math.inf, 1e300):
        try:
            expected = program(x, number)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error), match=str(error)):
                compiled(x, number)
        else:
            torch.testing.assert_close(compiled(x, number), expected, equal_nan=True)


class Counting(torch.optim.Optimizer):
    """Scales its steps by how many it made, as optimizers that correct a bias do."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1, "epochs": 0})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["step"] = 0
                state["step"] += 1
                p.add_(p.grad, alpha=-group["lr"] * math.sqrt(1 - 0.9 ** state["step"]))
            group["epochs"] += 1


def test_a_step_of_an_optimizer_that_counts_needs_one_program():
    weights, steps = [torch.nn.Parameter(torch.ones(3)) for _ in range(2)], []
    for weight in weights:
        optimizer = Counting([weight])

        def step(x, weight=weight, optimizer=optimizer):
            optimizer.zero_grad()
            loss = (weight * x).sin().sum()
            loss.backward()
            optimizer.step()
            return loss.detach()

        steps.append(step)
    compiled = jit(steps[1], fallback="error")
    for i in range(7):
        x = torch.full((3,), 0.5 + i)
        torch.testing.assert_close(compiled(x), steps[0](x))
        torch.testing.assert_close(weights[1], weights[0])
    assert cache_misses(compiled) == 3  # without state, the first step with it, and all others


def test_an_optimizer_that_loads_its_state_in_a_program_holds_it_under_its_parameters():
    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = Counting([weight])
    saved = {"state": {0: {"step": 4}}, "param_groups": optimizer.state_dict()["param_groups"]}

    def program(x):
        optimizer.load_state_dict(saved)
        return x + 1

    compiled = jit(program)
    for _ in range(2):
        assert torch.equal(compiled(X), X + 1)
        assert list(optimizer.state) == [weight] and optimizer.state_dict()["state"] == {0: {"step": 4}}


def test_a_step_with_a_schedule_of_rates_is_compiled_once_for_all_rates():
    def trained(compile):
        weight = torch.nn.Parameter(torch.ones(3))
        optimizer = torch.optim.SGD([weight], lr=0.1, momentum=0.9)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x):
            optimizer.zero_grad()
            (weight * x).square().sum().backward()
            optimizer.step()
            schedule.step()
            return schedule.get_last_lr()

        run = compile(step)
        rates = [run(torch.arange(3.0) + k) for k in range(8)]
        return rates, weight, run

    rates, weight, compiled = trained(lambda step: jit(step, fallback="error"))
    expected_rates, expected, _ = trained(lambda step: step)
    assert rates == expected_rates
    torch.testing.assert_close(weight, expected)
    assert cache_misses(compiled) == 2
