"""State that programs keep in Python: closures, attributes, containers; read, written and read again over calls."""

import bisect
import collections
import copy
import heapq
import os
import types

import pytest
import torch
from against_eager import tensors
from torch import nn

from thunder_frontend import AcquisitionError, cache_misses, jit, last_epilogue_traces


class Record:
    def __init__(self):
        self.count, self.history = 0, {}


class Attributes(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__


def counter():
    count = 0

    def step(x):
        nonlocal count
        count += 1
        return x * count

    return step


def set_and_get():
    value = 1

    def set_it(x):
        nonlocal value
        value = 5
        return x * value

    def get_it(x):
        return x * value

    return set_it, get_it


def makes_records(x, record):
    record.count += 1
    record.history[record.count] = x * record.count
    record.history.setdefault("log", []).append(record.count)
    return len(record.history), list(record.history)


def through_the_dict(x, record):
    vars(record)["extra"] = 7
    first = record.extra * x
    record.extra = 8
    record.__dict__.update(other=x * 2)
    return first, vars(record)["extra"] * x, record.other, len(vars(record)), list(vars(record))


def heaps(x, items):
    heapq.heapify(items)
    heapq.heappush(items, 1)
    bisect.insort(items, 4)
    return x * heapq.heappop(items), list(items)


def counts(x, counter):
    counter.update("ab")
    return x * counter["a"], dict(counter)


def attributes_as_items(x, named):
    named.y = x * named.scale
    named.scale = named.scale + 1
    return named.y, named.get("scale")


CASES = [
    (lambda x, f: f(x), counter),
    (lambda x, fs: (fs[1](x), fs[0](x), fs[1](x)), set_and_get),
    (makes_records, Record),
    (through_the_dict, Record),
    (heaps, lambda: [5, 3]),
    (counts, lambda: collections.Counter("a")),
    (attributes_as_items, lambda: Attributes(scale=2)),
]


@pytest.mark.parametrize(("program", "make"), CASES)
def test_state_changes_from_call_to_call_as_in_eager(program, make):
    compiled, ours, eagers = jit(program), make(), make()
    x = torch.arange(3.0)
    for _ in range(3):
        found, truth = compiled(x, ours), program(x, eagers)
        assert repr(found) == repr(truth)
        if not callable(ours):
            assert repr(getattr(ours, "__dict__", ours)) == repr(getattr(eagers, "__dict__", eagers)) or callable(
                ours[0]
            )


def test_the_compiled_functions_own_closure_is_written():
    step, twin = counter(), counter()
    compiled = jit(step)
    for _ in range(3):
        assert torch.equal(compiled(torch.ones(2)), twin(torch.ones(2)))


@pytest.mark.parametrize("make", [torch.Tensor.clone, lambda t: t.clone().requires_grad_(), nn.Parameter])
@pytest.mark.parametrize(
    "program",
    [
        copy.copy, lambda x: copy.deepcopy([x, {"a": x}]), lambda x: (copy.copy(x), copy.copy(x) * 2),
        lambda x: copy.deepcopy(x * 2),
    ],
)  # fmt: skip
def test_tensors_are_copied(program, make):
    ours, eagers = make(torch.arange(3.0)), make(torch.arange(3.0))
    try:
        truth = program(eagers)
    except RuntimeError:  # PyTorch copies no results
        with pytest.raises(RuntimeError, match="deepcopy"):
            jit(program)(ours)
        return
    for found, true in zip(tensors(jit(program)(ours)), tensors(truth), strict=True):
        assert torch.equal(found, true) and type(found) is type(true) and found.requires_grad == true.requires_grad
        shared = [t.untyped_storage()._cdata == i.untyped_storage()._cdata for t, i in ((found, ours), (true, eagers))]
        assert shared[0] == shared[1]


@pytest.mark.parametrize("kind", [TypeError, LookupError, AttributeError, ZeroDivisionError, ValueError])
def test_a_program_that_raises_anew_runs_once_in_each_call(kind):
    state = types.SimpleNamespace(calls=0, error=None)

    def program(x):
        state.calls += 1
        if state.error is not None:
            raise state.error
        return x + 1

    compiled = jit(program)
    compiled(torch.ones(2))
    state.error = kind("again")
    for calls in (2, 3):
        with pytest.raises(kind, match="again"):
            compiled(torch.ones(2))
        assert state.calls == calls


def test_builtins_that_others_replaced_are_named_if_they_break_what_relies_on_them(monkeypatch):
    compiled = jit(lambda x: x * len([1, 2]))
    x = torch.ones(2)
    assert torch.equal(compiled(x), x * 2)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.len", lambda value: value.__len__())
        assert torch.equal(compiled(x), x * 2)
    with monkeypatch.context() as patch:
        patch.setattr("builtins.len", lambda value: 42)
        try:
            compiled(x)
        except AcquisitionError as error:
            refusal = error
    assert "builtins.len is replaced" in str(refusal) and "put it back" in str(refusal)
    assert torch.equal(compiled(x), x * 2)


def test_builtins_that_others_replaced_are_named_if_they_break_what_compiles(monkeypatch):
    def program(x):
        return x * 2 + x

    known = jit(lambda x: x * 2 + x)(torch.ones(2))  # what PyTorch says of the calls
    assert torch.equal(known, torch.full((2,), 3.0))
    with monkeypatch.context() as patch:
        patch.setattr("builtins.min", lambda *values, **options: [][0])
        try:
            jit(program)(torch.ones(2))
            refusal = None
        except AcquisitionError as error:
            refusal = error
    assert "builtins.min is replaced" in str(refusal)


def keeps(x, kept):
    kept.append(x * 2)
    kept.extend([x.sum(), len(x.shape)])
    return x


def keeps_and_takes(x, kept):
    kept.append(x * 2)
    kept.append(1)
    return x * kept.pop()


def keeps_and_counts(x, kept):
    kept.append(x * 2)
    return x * len(kept)


def keeps_and_looks_back(x, kept):
    kept.append(x)
    return kept[0] + kept[-1] * 2


def keeps_and_replaces(x, kept):
    kept[-1] = x
    kept.append(2.0)
    kept.append(3.0)
    kept[-1] = x * 2
    return x


def keeps_doubled(x, kept):
    kept.append(x)
    kept.extend(kept)
    kept.extend(y * 2 for y in tuple(kept))
    return x


@pytest.mark.parametrize(
    ("function", "compiled_once"),
    [(keeps, True), (keeps_and_takes, False), (keeps_and_counts, False), (keeps_and_looks_back, False),
     (keeps_and_replaces, False), (keeps_doubled, False)],
    ids=lambda value: getattr(value, "__name__", None),
)  # fmt: skip
def test_lists_that_are_appended_to_are_guarded_where_they_are_read(function, compiled_once):
    compiled, x = jit(function), torch.arange(3.0)
    expected, found = [x + 1], [x + 1]
    for _ in range(3):
        torch.testing.assert_close(compiled(x, found), function(x, expected))
        torch.testing.assert_close(found, expected)
    assert (cache_misses(compiled) == 1) == compiled_once


def test_appending_is_undone_if_compiling_fails():
    def refused(x, kept):
        kept.append(x)
        return x if x.sum() > 0 else x * 2

    kept = [1.0]
    with pytest.raises(AcquisitionError):
        jit(refused, outcomes=0)(torch.ones(2), kept)
    assert kept == [1.0]


SHARED = 3


def sets_a_global(state, x):
    global SHARED
    SHARED = x.shape[0]
    return x + 1


def sets_an_attribute(state, x):
    state.count = x.shape[0]
    return x + 1


def sets_an_item(state, x):
    state.table["count"] = x.shape[0]
    return x + 1


def puts_the_same_object(state, x):
    state.history = state.kept
    return x + 1


@pytest.mark.parametrize("sets", [sets_a_global, sets_an_attribute, sets_an_item, puts_the_same_object])
def test_what_is_written_without_being_read_is_written_again_over_anything(sets, monkeypatch):
    kept = {"a": 1}
    state = types.SimpleNamespace(count=3, table={"count": 3}, history=kept, kept=kept)

    def seen():
        return SHARED, state.count, state.table["count"], state.history is state.kept

    compiled = jit(lambda x: sets(state, x))
    monkeypatch.setitem(globals(), "SHARED", 3)
    compiled(torch.ones(3))
    assert seen() == (3, 3, 3, True)
    monkeypatch.setitem(globals(), "SHARED", 7)
    state.count, state.table["count"], state.history = 7, 7, {}
    compiled(torch.ones(3))
    expected = {sets_a_global: (3, 7, 7, False), sets_an_attribute: (7, 3, 7, False), sets_an_item: (7, 7, 3, False)}
    assert seen() == expected.get(sets, (7, 7, 7, True))


def test_what_is_put_back_is_not_written():
    class Restores(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2.0

        def forward(self, x):
            before, self.scale = self.scale, 5.0
            result = x * self.scale
            self.scale = before
            return result

    eager, module = Restores(), Restores()
    compiled = jit(module)
    for scale in (2.0, 2.0, 3.0, 4.0):
        eager.scale = module.scale = scale
        assert torch.equal(compiled(torch.ones(2)), eager(torch.ones(2)))
        assert module.scale == eager.scale
        assert "setattr" not in str(last_epilogue_traces(compiled)[-1])


def test_lists_that_questions_make_anew_are_different_ones(tmp_path):
    class Base:
        pass

    kept = type("Derived", (Base,), {})
    (tmp_path / "file").touch()

    def program(x, values):
        x = x * len(os.listdir(tmp_path)) + len(Base.__subclasses__())
        return x * values[0] if kept else x

    compiled = jit(program)
    for k in range(4):
        assert torch.equal(compiled(torch.ones(2), [k + 1.0]), torch.full((2,), 2 * (k + 1.0)))


def test_objects_need_not_tell_their_class():
    class Silent:
        scale = 3.0

        def __getattribute__(self, name):
            if name == "__class__":
                raise AttributeError(name)
            return object.__getattribute__(self, name)

    silent, x = Silent(), torch.ones(2)
    for program in (lambda x, o: x * o.scale, lambda x, o: x * silent.scale, lambda x, o: setattr(o, "kept", x) or x):
        compiled = jit(program)
        for scale in (3.0, 4.0):
            silent.scale = scale
            assert torch.equal(compiled(x, silent), program(x, silent))


class SetsTwice:
    """What is set of it is doubled, and it counts what is deleted."""

    def __setattr__(self, name, value):
        object.__setattr__(self, name, value * 2)

    def __delattr__(self, name):
        object.__setattr__(self, "deleted", (*self.__dict__.get("deleted", ()), name))
        object.__delattr__(self, name)


class SetsTwiceItself(torch.nn.Module):
    def __setattr__(self, name, value):
        super().__setattr__(name, value * 2 if name == "k" else value)


def test_setters_of_classes_run_once():
    def program(x, first, second):
        first.k, first.tensor, second.k = 2, x, 3
        del first.gone
        return x + first.k + second.k

    compiled, left = jit(program, fallback="error"), []
    for function in (program, compiled):
        first, second = SetsTwice(), SetsTwiceItself()
        for _ in range(3):
            object.__setattr__(first, "gone", 0)
            result = function(torch.ones(2), first, second)
        left.append((result.tolist(), first.k, first.tensor.tolist(), first.deleted, second.k))
    assert left[0] == left[1]


@pytest.mark.parametrize("cache", ["symbolic values", "constant values"])
def test_a_tensor_is_called_one_where_python_refuses_it(cache):
    compiled = jit(lambda x: x * None, cache=cache)
    for size in (2, 3):
        with pytest.raises(TypeError, match=r"for \*: 'Tensor' and 'NoneType'"):
            compiled(torch.ones(size))


def test_buffers_lose_and_get_bytes_as_in_eager():
    def shrinks(x, buffer):
        del buffer[0]
        buffer[1:2] = b"xyz"
        return x + len(buffer)

    compiled, ours, eagers = jit(shrinks, fallback="error"), bytearray(b"abcd"), bytearray(b"abcd")
    for _ in range(3):
        assert compiled(torch.ones(()), ours) == shrinks(torch.ones(()), eagers)
        assert ours == eagers
