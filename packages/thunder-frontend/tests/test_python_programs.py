"""Python around the tensors: containers, closures, objects, exceptions, calls of all kinds."""

import collections
import dataclasses
import enum
import functools
import operator

import pytest
import torch
from against_eager import same_as_eager
from torch import nn

from thunder_frontend import DataDependentError, FallbackWarning, jit


@dataclasses.dataclass
class Pair:
    tensor: torch.Tensor
    number: int


Named = collections.namedtuple("Named", "a b")
SCALE = 1.0


class Holder:
    pass


def takes_all_kinds(d, items, *rest, k=3, **named):
    return {"a": d["x"] + items[0], "b": [items[1] * k, rest[0]], "c": (named["z"], k)}


def raises_for_three(x):
    if x.shape[0] == 3:
        raise ValueError("three is not allowed")
    return x


def catches(x):
    try:
        return x @ torch.ones(7, 7)
    except RuntimeError:
        return x + 1


def recursive(x, n):
    return x if n == 0 else recursive(x * 2, n - 1)


def generates(xs):
    return sum(x * i for i, x in enumerate(xs))


def chooses(x, mode="a", *, scale=2.0):
    return {"a": x, "b": -x}[mode] * scale


@pytest.mark.parametrize(
    ("program", "args", "kwargs"),
    [
        (
            takes_all_kinds,
            ({"x": torch.randn(3)}, [torch.randn(3), torch.randn(3)], torch.randn(3)),
            {"z": torch.randn(2)},
        ),
        (lambda t: Named(t.a + 1, t.b), (Named(torch.randn(3), 4),), {}),
        (raises_for_three, (torch.randn(3),), {}),
        (raises_for_three, (torch.randn(4),), {}),
        (catches, (torch.randn(3),), {}),
        (recursive, (torch.randn(3), 4), {}),
        (generates, ([torch.randn(3), torch.randn(3)],), {}),
        (chooses, (torch.randn(3),), {}),
        (chooses, (torch.randn(3),), {"mode": "b", "scale": 3.0}),
        (lambda x, n, s, b: x * n if b else x + len(s), (torch.randn(3), 2, "abc", True), {}),
        (lambda **k: k["a"] - k["b"], (), {"b": torch.randn(3), "a": torch.randn(3)}),
        (lambda x: x * 2 if isinstance(x, torch.Tensor) and type(x) is torch.Tensor else x, (torch.randn(3),), {}),
        (functools.partial(lambda a, b: a - b, torch.randn(3)), (torch.randn(3),), {}),
        (lambda x: jit(lambda y: y * 2)(x) + 1, (torch.randn(3),), {}),
    ],
)
def test_programs_do_what_python_does(program, args, kwargs):
    same_as_eager(program, *args, **kwargs)


class Meta(type):
    def __new__(cls, name, bases, names, **_):
        return super().__new__(cls, name, bases, dict(names))


def makes_classes(x):
    class Base:
        def __init_subclass__(cls, flag=0):
            cls.flag = flag

    class Derived(Base, flag=3):
        pass

    class Other(metaclass=Meta, flag=1):
        pass

    found = [
        Derived,
        Other,
        type("Made", (Base,), {}, flag=4),
        Meta("Named", (), {}),
        type.__new__(Meta, "New", (), {}),
    ]
    found += [
        type("Placed", (), {"__module__": "elsewhere"}),
        collections.namedtuple("Tuple", "a"),
        enum.Enum("E", "a"),
    ]
    return x * 2, [(c.__module__, c.__name__, type(c).__name__, getattr(c, "flag", None)) for c in found]


def test_classes_that_a_program_makes_are_as_eager_makes_them():
    same_as_eager(makes_classes, torch.randn(3))


@functools.lru_cache
def library_of(cls):
    return cls.__module__.split(".")[0]


WEIGHT = nn.Parameter(torch.randn(3))


def asks_for_classes(x):
    y = x * WEIGHT
    found = [
        y.__class__ is torch.Tensor,
        x.__class__.__name__,
        library_of(y.__class__),
        WEIGHT.__class__ is nn.Parameter,
        getattr(WEIGHT, "__class__").__name__,  # noqa: B009
        list(map(operator.attrgetter("__class__"), [x, WEIGHT])),
        {torch.Tensor: "tensor"}[y.__class__],
        issubclass(WEIGHT.__class__, y.__class__),
    ]
    return y, found


def test_tensors_are_of_the_classes_that_they_have_in_eager():
    library_of.cache_clear()
    same_as_eager(asks_for_classes, torch.randn(3))
    found = jit(asks_for_classes)(torch.randn(3))[1]
    assert found == asks_for_classes(torch.randn(3))[1]


def test_dataclasses_go_in_and_out():
    compiled = jit(lambda pair: Pair(pair.tensor * pair.number, pair.number + 1))
    x = torch.randn(3)
    for number in (2, 3, 2):
        made = compiled(Pair(x, number))
        assert type(made) is Pair
        assert torch.equal(made.tensor, x * number)
        assert made.number == number + 1


def test_closures_are_guarded():
    factor, offset = 2.0, torch.randn(3)

    def program(x):
        return x * factor + offset

    compiled = jit(program)
    x = torch.randn(3)
    assert torch.equal(compiled(x), program(x))
    factor = 3.0
    assert torch.equal(compiled(x), program(x))
    offset = torch.randn(3)
    assert torch.equal(compiled(x), program(x))


def test_globals_are_guarded(monkeypatch):
    compiled = jit(lambda x: x * SCALE)
    x = torch.randn(3)
    assert torch.equal(compiled(x), x)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert torch.equal(compiled(x), x * 5)


def test_writes_to_objects_are_made_by_each_call():
    holder = Holder()
    holder.count, holder.seen = 0, []

    def program(x):
        holder.count += 1
        holder.seen.append(x * 2)
        holder.last = x + 1
        return x * holder.count

    compiled = jit(program)
    x = torch.randn(3)
    for call in range(1, 4):
        assert torch.equal(compiled(x), x * call)
        assert holder.count == len(holder.seen) == call
        assert torch.equal(holder.seen[-1], x * 2)
        assert torch.equal(holder.last, x + 1)
        assert type(holder.last) is torch.Tensor


def test_writes_to_dicts_are_made_by_each_call():
    cache = {}

    def program(x, key):
        cache[key] = x * 2
        return cache[key] + 1

    compiled = jit(program)
    x = torch.randn(3)
    assert torch.equal(compiled(x, "a"), x * 2 + 1)
    assert torch.equal(compiled(x, "b"), x * 2 + 1)
    assert list(cache) == ["a", "b"]
    assert torch.equal(cache["a"], x * 2)


@pytest.mark.parametrize("kind", ["method", "callable"])
def test_methods_and_callable_objects_read_their_object(kind):
    class Scaled:
        def __init__(self):
            self.weight = torch.randn(3)

        def __call__(self, x):
            return x * self.weight

    scaled = Scaled()
    compiled = jit(scaled.__call__ if kind == "method" else scaled)
    x = torch.randn(3)
    assert torch.equal(compiled(x), scaled(x))
    scaled.weight = torch.randn(3)
    assert torch.equal(compiled(x), scaled(x))


def test_a_choice_by_a_tensors_value_is_refused_and_leaves_nothing_behind():
    holder = Holder()
    holder.count = 0

    def program(x):
        holder.count += 1
        return x if x.sum() > 0 else -x

    with pytest.raises(DataDependentError, match="known only when the program runs"):
        jit(program, outcomes=0)(torch.randn(3))
    assert holder.count == 0


def test_tuples_and_frozen_sets_are_added_to_by_making_others():
    def program(x, first=(), names=frozenset({"a"})):
        first += (x * len(names),)
        names |= {"b", "c"}
        return first, sorted(names)

    x = torch.ones(2)
    for _ in range(2):
        (result,), names = jit(program)(x)
        assert torch.equal(result, x)
        assert names == ["a", "b", "c"]


class AnswersAnything(type):
    """A metaclass that has something under any name."""

    def __getattr__(cls, name):
        return 30.0


class Answering(metaclass=AnswersAnything):
    def __call__(self, x):
        return x * type(self).anything


class CompilesItself:
    def compiles(self):
        raise RuntimeError("this is the user's own")

    def __call__(self, x):
        return x * 5


def test_what_classes_say_by_themselves_or_of_their_own_is_not_taken_for_thunders():
    x, answering, own = torch.ones(2), Answering(), CompilesItself()
    for program in (answering, lambda x: answering(x), lambda x: Answering()(x), lambda x: own(x), own):
        assert torch.equal(jit(program)(x), program(x))


def test_a_complex_tensor_is_a_float_where_it_has_no_imaginary_part():
    compiled = jit(lambda t: float(t) + 1, fallback="split")
    with pytest.warns(FallbackWarning):
        assert compiled(torch.tensor(2 + 0j)) == 3.0
    assert [compiled(torch.tensor(v)) for v in (1 + 0j, 3 + 0j)] == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="value cannot be converted to type double without overflow"):
        compiled(torch.tensor(1 + 2j))
