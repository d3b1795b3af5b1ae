"""Numbers in dicts and lists that a program sets to others: what reads a container leaves them dynamic."""

import collections
import copy
import itertools
from typing import NamedTuple

import pytest
import torch

from thunder_frontend import cache_misses, jit

X = torch.arange(12.0).reshape(4, 3)


def test_a_number_that_get_finds_in_a_dict_may_change():
    state = {"scale": 3}

    def program(x):
        state["step"] = state.get("step", 0) + 1
        return x * state["step"] + state.get("scale")

    compiled = jit(program, fallback="error")
    for step in range(1, 9):
        assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 3.0 + step))
        assert state["step"] == step
    misses = cache_misses(compiled)
    assert misses <= 3  # without a number, with the first one, and with any
    state["scale"] = 2.5
    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 11.5))


def set_by_default(state):
    state.setdefault("n", 5)
    state["n"] += 1


def set_by_a_copy(copied):
    def count(state):
        state["n"] = copied(state)["n"] + 1

    return count


@pytest.mark.parametrize(
    "count",
    [
        lambda s: s.update(n=s["n"] + 1),
        lambda s: s.update({"n": s["n"] + 1}),
        set_by_default,
        set_by_a_copy(dict),
        set_by_a_copy(dict.copy),
    ],
    ids=["update by name", "update", "setdefault", "dict", "copy"],
)
def test_a_number_may_change_in_a_dict_of_which_methods_read_more(count):
    state = {"n": 1, "other": 3}

    def program(x):
        count(state)
        return x * state["n"]

    compiled = jit(program, fallback="error")
    for calls in range(1, 8):
        assert torch.equal(compiled(X), X * (calls + 1))
        assert list(state.items()) == [("n", calls + 1), ("other", 3)]
    assert cache_misses(compiled) == 2
    state["n"], state["other"] = 9, 4
    assert torch.equal(compiled(X), X * 10)


@pytest.mark.parametrize(
    "make", [collections.OrderedDict, collections.Counter, lambda **_: collections.defaultdict(int)]
)
def test_a_number_may_change_in_a_dict_of_another_class(make):
    state = make(n=0)

    def program(x):
        state["n"] += 1
        return x * state["n"]

    compiled = jit(program, fallback="error")
    for calls in range(1, 8):
        assert torch.equal(compiled(X), X * calls)
        assert state["n"] == calls
    assert cache_misses(compiled) <= 3  # without a number, with the first one, and with any


@pytest.mark.parametrize(
    "taken",
    [
        zip,
        enumerate,
        reversed,
        list,
        tuple,
        iter,
        itertools.chain,
        lambda it: itertools.islice(it, 1),
        lambda it: it[:1],
    ],
    ids=["zip", "enumerate", "reversed", "list", "tuple", "iter", "chain", "islice", "slice"],
)
def test_a_number_in_what_iteration_takes_out_of_a_list_may_change(taken):
    groups = [{"lr": 1.0}]

    def program(x):
        rate = groups[0]["lr"] / 2
        for _ in taken(groups):
            pass
        groups[0]["lr"] = rate
        return x * rate

    compiled = jit(program, fallback="error")
    for call in range(1, 7):
        assert torch.equal(compiled(X), X * 0.5**call)
    assert cache_misses(compiled) == 2
    groups.append({"lr": 1.0})
    compiled(X)
    assert cache_misses(compiled) == 3  # the length is a fact, as it was


class Named:
    """A key that is told by which object it is."""


@pytest.mark.parametrize(
    "key",
    [torch.nn.Parameter(torch.ones(3)), torch.nn.Linear(3, 3), Named(), Named, ("kind", Named), ("kind", 2), 1.5, True],
    ids=["parameter", "module", "object", "class", "tuple with a class", "tuple", "float", "bool"],
)
def test_a_number_may_change_in_a_dict_in_a_closure_that_is_found_by_any_key(key):
    state = {key: {"step": 0}}

    def program(x):
        state[key]["step"] += 1
        return x * (1 - 0.5 ** state[key]["step"])

    compiled = jit(program, fallback="error")
    for call in range(1, 9):
        assert torch.equal(compiled(X), X * (1 - 0.5**call))
        assert state[key]["step"] == call
    assert cache_misses(compiled) == 2


def test_a_tensor_that_a_closure_keeps_by_a_module_may_grow():
    layers = [torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)]

    def caching():
        cache = {}

        def program(x):
            for layer in layers:
                kept = cache.get(layer)
                cache[layer] = x.clone() if kept is None else torch.cat([kept, x])
                x = layer(x) + cache[layer].mean(0)
            return x

        return program

    compiled, eager = jit(caching(), fallback="error"), caching()
    with torch.no_grad():
        for _ in range(8):
            torch.testing.assert_close(compiled(X), eager(X))
    assert cache_misses(compiled) <= 3  # without, with the first one, and with any


class State(NamedTuple):
    step: int
    least: int = 1


def by_unpacking(state):
    step, least = state
    return State(step + least, least)


NEXT = {
    "index": lambda state: State(state[0] + 1, state[1]),
    "last": lambda state: State(state[-2] + 1, state[-1]),
    "unpacked": by_unpacking,
    "starred": lambda state: State(*[*state][:1], 1) if state[0] == 0 else State(state[0] + 1, 1),
    "loop": lambda state: State(*[value + 1 - i for value, i in ((v, 0 if v is state.step else 1) for v in state)]),
    "comprehension": lambda state: State(*[value + 1 for value in state]),
    "slice": lambda state: State(state[:1][0] + 1, *state[1:]),
    "replaced": lambda state: state._replace(step=state.step + 1),
}


@pytest.mark.parametrize("name", NEXT)
def test_numbers_of_a_named_tuple_are_read_as_those_of_a_tuple(name):
    def keeping():
        kept = [State(0)]

        def program(x):
            kept[0] = NEXT[name](kept[0])
            return x * kept[0].step, kept[0]

        return program

    compiled, eager = jit(keeping()), keeping()
    for _ in range(6):
        (result, state), (expected, expected_state) = compiled(X), eager(X)
        assert torch.equal(result, expected)
        assert state == expected_state and type(state) is State
    if name in ("index", "last", "unpacked", "comprehension", "replaced"):
        assert cache_misses(compiled) <= 3


@pytest.mark.parametrize(
    ("name", "method"),
    [("__getitem__", lambda self, key: 7), ("__iter__", lambda self: iter([5, 6]))],
    ids=["items", "iterator"],
)
def test_that_a_class_of_tuples_reads_in_another_way_is_noticed(name, method):
    class Own(NamedTuple):
        step: int
        least: int = 1

    def program(x, state):
        first, _ = state
        return x * first + state[0]

    compiled = jit(program)
    for step in (2, 3, 4):
        assert torch.equal(compiled(X, Own(step)), program(X, Own(step)))
    setattr(Own, name, method)
    for step in (2, 3):
        assert torch.equal(compiled(X, Own(step)), program(X, Own(step)))
    delattr(Own, name)
    assert torch.equal(compiled(X, Own(2)), program(X, Own(2)))


class Chosen(torch.nn.Module):
    """Calls one of its layers, by a name that is made of a number."""

    def __init__(self):
        super().__init__()
        for i in range(3):
            setattr(self, f"layer{i}", torch.nn.Linear(3, 3))

    def forward(self, x, step):
        name = f"layer{step % 3}"
        assert hasattr(self, name)
        setattr(self, f"seen{step % 3}", step)
        return getattr(self, name)(x) + getattr(self, "seen" + str(step % 3))


def test_attributes_that_are_named_by_numbers_need_a_program_for_each_name():
    model = Chosen()
    compiled, eager = jit(model, fallback="error"), copy.deepcopy(model)
    for step in range(15):
        torch.testing.assert_close(compiled(X, step), eager(X, step))
        assert [getattr(model, f"seen{i}", None) for i in range(3)] == [
            getattr(eager, f"seen{i}", None) for i in range(3)
        ]
    assert cache_misses(compiled) <= 9


SCHEDULE = [step / 64 for step in range(64)]
BY_STEP = {
    "scale": lambda x, i: x * SCHEDULE[i],
    "two of them": lambda x, i: x * SCHEDULE[i] + (1 - SCHEDULE[i - 1] ** 2) ** 0.5,
    "from the end": lambda x, i: x * SCHEDULE[-1 - i],
    "compared": lambda x, i: x if SCHEDULE[i] < 0.25 else x * 2,
    "made a tensor": lambda x, i: x + torch.tensor(SCHEDULE[i]),
    "counted": lambda x, i: x * SCHEDULE[i % 3 + i],
}


@pytest.mark.parametrize("name", BY_STEP)
@pytest.mark.parametrize("make", [list, tuple], ids=["list", "tuple"])
def test_numbers_of_a_schedule_are_looked_up_by_a_step_that_changes(name, make, monkeypatch):
    program = BY_STEP[name]
    monkeypatch.setitem(globals(), "SCHEDULE", make(SCHEDULE))
    compiled = jit(program, fallback="error")
    for step in range(1, 30):
        x, same = X.clone().requires_grad_(), X.clone().requires_grad_()
        ours, expected = compiled(x, step), program(same, step)
        torch.testing.assert_close(ours, expected)
        (ours.sum() + expected.sum()).backward()
        torch.testing.assert_close(x.grad, same.grad)
    assert cache_misses(compiled) <= 4  # the first step, any, and an outcome of a comparison each
    with pytest.raises(IndexError, match="index out of range"):
        compiled(X, 200)


def test_a_schedule_that_changes_is_looked_up_anew(monkeypatch):
    schedule = SCHEDULE.copy()
    compiled = jit(lambda x, i: x * schedule[i], fallback="error")
    for step in range(1, 6):
        assert torch.equal(compiled(X, step), X * schedule[step])
    schedule[7] = 3.5
    assert torch.equal(compiled(X, 7), X * 3.5)
    schedule[8] = 2
    found = compiled(X.int(), 8)
    assert torch.equal(found, X.int() * 2) and found.dtype == torch.int32
    schedule.clear()
    with pytest.raises(IndexError):
        compiled(X, 3)


def test_a_schedule_that_the_program_writes_is_read_as_it_goes():
    def program(x, schedule, i):
        first = schedule[i]
        schedule[i + 1] = first * 2
        return x * schedule[i + 1] + schedule[i]

    ours, eagers = SCHEDULE.copy(), SCHEDULE.copy()
    compiled = jit(lambda x, i: program(x, ours, i), fallback="error")
    for step in range(1, 6):
        assert torch.equal(compiled(X, step), program(X, eagers, step))
        assert ours == eagers


@pytest.mark.parametrize("kind", [collections.defaultdict, collections.Counter, collections.OrderedDict])
def test_numbers_in_dicts_of_other_kinds_change(kind):
    ours, eagers = (kind(int, n=2) if kind is collections.defaultdict else kind(n=2) for _ in range(2))

    def program(x, counts):
        counts["n"] += 1
        return x * counts["n"]

    compiled = jit(lambda x: program(x, ours))
    for _ in range(6):
        assert torch.equal(compiled(X), program(X, eagers))
        assert type(ours) is kind and ours == eagers
    assert cache_misses(compiled) == 2


def test_a_number_at_the_end_of_a_deque_changes():
    ours, eagers = collections.deque([1.5, 2.5], 2), collections.deque([1.5, 2.5], 2)

    def program(x, last):
        last.append(last[-1] + 1)
        return x * last[0]

    compiled = jit(lambda x: program(x, ours))
    for _ in range(6):
        assert torch.equal(compiled(X), program(X, eagers))
        assert ours == eagers


def test_numbers_that_a_loop_takes_out_of_a_deque_change():
    recent = collections.deque([0.5, 1.5], 2)

    def program(x):
        total = 0.0
        for number in recent:
            total = total + number
        return x * total + sum(recent) / len(recent)

    compiled = jit(program)
    for step in range(6):
        recent.append(step / 7)
        torch.testing.assert_close(compiled(X), program(X))
    assert cache_misses(compiled) <= 3
