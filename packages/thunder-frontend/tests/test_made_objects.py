"""What programs make and return is made by every call: fresh, and as eager makes it."""

import array
import collections
import functools
import types
import weakref

import pytest
import torch

from thunder_frontend import AcquisitionError, cache_misses, jit


class Namespace(types.SimpleNamespace):
    """Compared by its attributes."""


class Set(set):
    """With attributes."""


class Refused(Exception):
    """With attributes."""


def counter(start):
    def step(by):
        nonlocal start
        start = start + by
        return start

    def now():
        return start

    return step, now


def failed(x):
    error = Refused("why", x * 2)
    error.k = x
    return error


def with_attributes(x):
    made = Set([1, 2])
    made.k = x * 2
    return made


def seen(value):
    """What can be told of a value, tensors as lists."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if isinstance(value, functools.partial):
        return seen(value.func), seen(value.args), seen(value.keywords)
    if isinstance(value, (types.FunctionType, functools.partial)):
        return seen(value(torch.ones(3)))
    if isinstance(value, dict):
        return type(value), [(k, seen(v)) for k, v in value.items()]
    if isinstance(value, BaseException):
        return type(value), seen(value.args), seen(vars(value))
    if isinstance(value, (list, tuple, collections.deque, collections.abc.MappingView)):
        return type(value), [seen(v) for v in value], getattr(value, "maxlen", None)
    if hasattr(value, "tolist"):
        return value.tolist()
    return (type(value), repr(value), seen(vars(value))) if hasattr(value, "__dict__") else repr(value)


ZEROS = torch.zeros(2).numpy()
MAKERS = {
    "deque": lambda x: collections.deque([x * 2, 1], maxlen=3),
    "closure": lambda x: lambda v: v * x,
    "defaults": lambda x: lambda v, w=x * 2, *, z=x: v * w + z,
    "partial": lambda x: functools.partial(torch.mul, x * 2, other=x),
    "default factory": lambda x: collections.defaultdict(lambda: x, {"a": x * 2}),
    "bound method": lambda x: Namespace(k=x * 2).__repr__.__self__,
    "method of a list": lambda x: [x * 2].copy()[0],
    "exception": failed,
    "set with attributes": with_attributes,
    "bytes that change": lambda x: bytearray(b"ab"),
    "array": lambda x: array.array("d", [1.0]),
    "array of NumPy": lambda x: ZEROS.copy(),
    "keys": lambda x: {"a": x}.keys(),
    "values": lambda x: {"a": x * 2}.values(),
    "items": lambda x: collections.OrderedDict(a=x * 2).items(),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_each_call_makes_what_eager_makes(make):
    compiled = jit(make)
    for start in (0.0, 1.0):
        x = torch.arange(3.0) + start
        first, second = compiled(x), compiled(x)
        assert first is not second
        assert seen(first) == seen(second) == seen(make(x))


@pytest.mark.parametrize("change", [lambda v: v.append(7), lambda v: v.extend([7])])
@pytest.mark.parametrize("make", [lambda x: bytearray(b"ab"), lambda x: collections.deque([1]), lambda x: [1]])
def test_what_the_caller_does_to_a_result_is_not_seen_by_the_next_one(make, change):
    compiled = jit(make)
    x = torch.ones(3)
    change(compiled(x))
    assert compiled(x) == make(x)


def test_functions_that_share_a_variable_share_it_when_they_are_returned():
    compiled = jit(counter)
    (step, now), (_, others) = compiled(torch.zeros(2)), compiled(torch.zeros(2))
    step(torch.ones(2))
    assert now().tolist() == [1, 1]
    assert others().tolist() == [0, 0]


def test_weak_references_that_a_call_makes_are_to_what_it_is_given_or_makes():
    def program(seen, x):
        same = seen.first() is x
        seen.first, seen.second = weakref.ref(x), weakref.ref(made := x * 2)
        return made, same

    ours, eagers = [Namespace(first=lambda: None) for _ in range(2)]
    compiled, x, y = jit(program), torch.ones(2), torch.zeros(2)
    for given in (x, x, y, x):
        (made, same), (_, expected) = compiled(ours, given), program(eagers, given)
        assert same == expected and ours.first() is given and ours.second() is made
        del made
        assert ours.second() is None


class Log(list):
    def append(self, item):
        raise ValueError(item)

    def plainly(self):
        return super().append


def test_a_method_that_super_finds_is_not_the_one_that_overrides_it():
    def program(x):
        log = Log([x + 1])
        return log, log.plainly()

    compiled = jit(program)
    for _ in range(2):
        log, append = compiled(torch.ones(2))
        append(3)
        assert type(log) is Log and log[1:] == [3] and torch.equal(log[0], torch.full((2,), 2.0))


def test_a_method_of_an_object_that_the_program_makes_is_bound_to_a_new_one():
    compiled = jit(lambda x: [x * 2].append)
    append, other = compiled(torch.ones(2)), compiled(torch.ones(2))
    append(1)
    assert [len(append.__self__), len(other.__self__)] == [2, 1]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: iter([x]),
        lambda x: map(torch.sin, [x]),
        lambda x: zip([x], [x], strict=True),
        lambda x: (x * i for i in range(2)),
        lambda x: reversed([1, 2]),
        lambda x: enumerate([x]),
    ],
)
def test_iterators_that_the_first_call_would_use_up_are_refused(make):
    with pytest.raises(AcquisitionError, match="which its first call would use up; make a list of it"):
        jit(make)(torch.ones(3))


async def later(x):
    return x * 2


@pytest.mark.filterwarnings("ignore:coroutine")
def test_code_that_would_run_outside_of_the_program_is_refused():
    with pytest.raises(AcquisitionError, match="a coroutine, whose code would run outside of it"):
        jit(later)(torch.ones(3))


def of_itself(x):
    made = [x]
    made.append(made)
    return made


def class_with_a_tensor(x):
    class Made:
        k = x * 2

    return Made


@pytest.mark.parametrize(
    ("make", "why"),
    [(of_itself, "contains itself"), (class_with_a_tensor, "class Made, which it makes and which holds tensors")],
)
def test_what_cannot_be_made_again_is_refused(make, why):
    with pytest.raises(AcquisitionError, match=why):
        jit(make)(torch.ones(3))


class InBoth:
    """With a name that may be both in a slot and in its dict."""

    __slots__ = ("__dict__", "k")


def made_in_both(x, _):
    made = InBoth()
    made.k, made.__dict__["k"] = x * 2, x * 3
    return made


def written_in_both(x, kept):
    kept.k, kept.__dict__["k"] = x * 2, x * 3
    return kept


def only_in_dict(x, kept):
    kept.__dict__["k"] = x * 4 + kept.k
    return kept.k, kept


def only_in_slot(x, kept):
    kept.k = x * 4 + kept.__dict__["k"]
    return kept.__dict__["k"], kept


def without_slot(x, kept):
    kept.__dict__["k"] = x
    del kept.k
    return kept


@pytest.mark.parametrize("program", [made_in_both, written_in_both, only_in_dict, only_in_slot, without_slot])
def test_a_slot_and_an_item_of_the_dict_of_one_name_are_two_places(program):
    compiled = jit(program)
    for value in (1.0, 2.0, 3.0):
        results = []
        for function in (program, compiled):
            kept = InBoth()
            kept.k, kept.__dict__["k"] = torch.full((3,), value), torch.full((3,), value + 10)
            results.append((function(torch.ones(3), kept), kept))
        for ours, eagers in zip(*results, strict=True):
            ours, eagers = [r if isinstance(r, tuple) else (0, r) for r in (ours, eagers)]
            assert seen(ours[0]) == seen(eagers[0])
            assert hasattr(ours[1], "k") == hasattr(eagers[1], "k")
            assert seen(getattr(ours[1], "k", 0)) == seen(getattr(eagers[1], "k", 0))
            assert seen(ours[1].__dict__) == seen(eagers[1].__dict__)


def one_tuple_in_two_attributes(x, kept):
    kept.a = kept.b = (x,)
    return kept.a is kept.b, kept.a


def one_tuple_in_a_tuple(x, kept):
    part = (x * 2, 1)
    kept.a, kept.b = (part, part), [part]
    return kept.a[0], kept.b[0]


def one_tuple_in_the_result(x, kept):
    kept.a = kept.b = part = (x * 2,)
    return part, {"k": part}["k"]


def equal_tuples(x, kept):
    kept.a, kept.b = (x,), (x,)
    return (x,), (x,)


@pytest.mark.parametrize(
    "program", [one_tuple_in_two_attributes, one_tuple_in_a_tuple, one_tuple_in_the_result, equal_tuples]
)
def test_a_tuple_in_several_places_is_one_object(program):
    def identities(run):
        kept = types.SimpleNamespace()
        parts = [*run(torch.ones(3), kept)]
        parts += [kept.a, kept.b, *kept.a, *kept.b]
        return [[a is b for a in parts] for b in parts]

    compiled = jit(program)
    for _ in range(2):
        assert identities(compiled) == identities(program)


@pytest.mark.parametrize("make", [slice, range])
def test_a_slice_or_a_range_in_several_places_is_one_object(make):
    kept = types.SimpleNamespace()

    def program(x):
        kept.first = kept.second = made = make(1, 3)
        return [made, {"a": made}], x[1:3]

    for _ in range(2):
        (made, held), _ = jit(program)(torch.ones(4))
        assert made is held["a"] is kept.first is kept.second
        assert made == make(1, 3)


def test_dicts_with_tensors_for_keys_have_those_of_each_call():
    class Holder:
        parameter = torch.ones(2, requires_grad=True)

    holder = Holder()

    def program(x):
        y = x + 1
        holder.state = {holder.parameter: {"step": 1}}
        by_default = collections.defaultdict(list)
        by_default[y].append(x)
        return y, {y: 1, x: 2}, by_default, collections.OrderedDict([(x, y)]), {(y, 1): x, "plain": {x: y}}

    compiled = jit(program, fallback="error")
    for _ in range(2):
        x = torch.zeros(2)
        y, plain, by_default, ordered, nested = compiled(x)
        assert [key is holder.parameter for key in holder.state] == [True]
        assert [key is value for key, value in zip(plain, (y, x), strict=True)] == [True, True]
        assert [key is y for key in by_default] == [True] and by_default.default_factory is list
        assert [key is x and value is y for key, value in ordered.items()] == [True]
        (key, _), text = nested
        assert key is y and text == "plain" and [key is x for key in nested["plain"]] == [True]


def test_weak_references_that_a_program_makes_are_asked_inside_of_it():
    class Holder:
        pass

    def program(x):
        holder = Holder()
        holder.tensor = x * 2
        reference, of_tensor = weakref.ref(holder), weakref.ref(x)
        found = reference().tensor, weakref.proxy(holder).tensor
        same = reference() is holder and of_tensor() is x
        del holder
        return found, same, reference() is None

    compiled = jit(program, fallback="error")
    for value in (1.0, 2.0, 3.0):
        (first, second), *facts = compiled(torch.full((2,), value))
        assert first is second and torch.equal(first, torch.full((2,), 2 * value)) and facts == [True, True]
    assert cache_misses(compiled) == 1
