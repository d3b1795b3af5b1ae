"""Programs that the tests run plainly and interpreted."""

import asyncio
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import operator


def fib(n=10):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def every_parameter_kind():
    def f(a, /, b, *rest, c, d=4, **more):
        return a, b, rest, c, d, more

    return f(1, 2, c=3), f(1, 2, 9, 9, c=3, d=5, e=6), f(*(1, 2), **{"c": 0, "z": 1})


def wrong_arguments():
    def f(a, /, b, *, c):
        return a, b, c

    found = []
    for args, kwargs in [((), {}), ((1, 2, 3), {}), ((1,), {"a": 1, "b": 2, "c": 3}), ((1, 2), {"c": 1, "d": 2})]:
        try:
            f(*args, **kwargs)
        except TypeError as error:
            found.append(str(error))
    return found


def dicts_that_are_filled():
    class Key:
        def __init__(self):
            self.asked = 0

        def __hash__(self):
            self.asked += 1
            return 3

    class Own(dict):
        def __setitem__(self, key, value):
            super().__setitem__(key, [value])

    table, key, own = {"b": 1, "a": 2}, Key(), Own(a=1)
    found = [table.setdefault("a", 7), table.setdefault("c"), table.setdefault("d", 4), table.setdefault(key, 5)]
    found += [table.update({"e": 1, "a": 3}, b=0), table.update([("f", 2)], self=1)]
    found += [table.update(), table.update(table)]
    found += [dict(table), dict(table, a=0), dict([(1, 2)]), dict(a=1), dict(), table.copy(), key.asked]
    found += [own.update({"b": 2}), own.setdefault("c", 3), own["d"] if own.update(d=1) else own, type(own.copy())]
    counts, lists, ordered = collections.Counter("ab"), collections.defaultdict(list), collections.OrderedDict(a=1)
    counts["a"] += 1
    lists["x"] = lists["y"]
    ordered["b"] = ordered["a"] + 1
    counts.update("bc")
    for wrong in (
        lambda: table.update(1),
        lambda: table.update({}, {}),
        lambda: table.setdefault(),
        lambda: table.setdefault([], 1),
        lambda: table.setdefault("a", default=1),
        lambda: dict.setdefault(1, 2),
        lambda: dict.update(),
        lambda: dict(1),
        lambda: dict({}, {}),
        lambda: table.copy(1),
    ):
        try:
            wrong()
        except TypeError as error:
            found.append(str(error))
    found = [repr(f).replace(repr(key), "key") for f in found]
    table.pop(key)
    return list(table.items()), found, own, counts, lists, list(ordered.items())


def closures_and_cells():
    total = 0

    def add(step):
        nonlocal total
        total += step
        return total

    add(2)
    add(3)
    later = [lambda i=i: i * total for i in range(3)]
    del add
    return total, [f() for f in later]


def unbound_variables():
    found = []

    def local():
        if found is None:
            x = 1
        return x  # noqa: F821

    def deleted():
        x = 1
        del x
        return x  # noqa: F821

    for f in (local, deleted):
        try:
            f()
        except UnboundLocalError as error:
            found.append(str(error))
    return found


def generators_send_throw_close():
    log = []

    def inner():
        try:
            while True:
                try:
                    log.append((yield len(log)))
                except KeyError as error:
                    log.append(error.args)
        finally:
            log.append("closed")

    def outer():
        result = yield from inner()
        log.append(result)

    generator = outer()
    next(generator)
    generator.send("a")
    generator.throw(KeyError("k"))
    generator.close()
    return log


def generator_returns_and_delegates():
    def inner():
        yield 1
        return "inner"

    def outer():
        result = yield from inner()
        yield result
        yield from [7, 8]

    return list(outer())


def generator_expression_in_c():
    return (
        sum(i * i for i in range(10)),
        sorted((x % 3 for x in range(5)), key=lambda x: -x),
        ",".join(str(i) for i in (1, 2)),
    )


def stop_iteration_in_a_generator():
    def bad():
        yield 1
        raise StopIteration("inside")

    try:
        list(bad())
    except RuntimeError as error:
        return str(error), repr(error.__cause__)


def coroutines():
    class Manager:
        async def __aenter__(self):
            return "entered"

        async def __aexit__(self, *exc):
            return exc[0] is KeyError

    async def numbers(n):
        for i in range(n):
            yield i
            await asyncio.sleep(0)

    async def main():
        found = [i async for i in numbers(3)]
        async with Manager() as entered:
            raise KeyError
        async for i in numbers(2):
            found.append(i)
        return found, entered, await asyncio.gather(*(asyncio.sleep(0, i) for i in range(3)))

    return asyncio.run(main())


class Base:
    registry = []

    def __init_subclass__(cls, /, tag=None, **kwargs):
        super().__init_subclass__(**kwargs)
        cls.registry.append((cls.__name__, tag))

    def greet(self):
        return "base"


class Meta(type):
    def __new__(mcs, name, bases, namespace, **keywords):
        made = super().__new__(mcs, name, bases, namespace)
        made.keywords = keywords
        return made

    @classmethod
    def __prepare__(mcs, name, bases, **keywords):
        return collections.OrderedDict(prepared=True)

    def __call__(cls, *args):
        made = super().__call__(*args)
        made.called = True
        return made


def classes():
    class Named:
        def __set_name__(self, owner, name):
            self.name = (owner.__name__, name)

        def __get__(self, instance, owner=None):
            return self if instance is None else (self.name, instance.value)

    class Child(Base, tag="t"):
        field = Named()
        __slots__ = ("value",)

        def __init__(self, value):
            self.value = value

        def greet(self):
            return super().greet() + __class__.__name__

        @property
        def double(self):
            return self.value * 2

        @double.setter
        def double(self, value):
            self.value = value // 2

        @classmethod
        def make(cls, value):
            return cls(value)

        @staticmethod
        def static(value):
            return value

    class WithMeta(metaclass=Meta, extra=1):
        y: int = 2

    child = Child.make(3)
    child.double = 10
    made = WithMeta()
    return (
        child.greet(),
        child.field,
        child.double,
        Child.static(1),
        Base.registry[-1],
        made.called,
        WithMeta.keywords,
        WithMeta.prepared,
        WithMeta.__annotations__,
        Child.__qualname__,
        Child.__module__ == __name__,
    )


class Vector:
    def __init__(self, *values):
        self.values = values

    def __add__(self, other):
        if not isinstance(other, Vector):
            return NotImplemented
        return Vector(*map(operator.add, self.values, other.values))

    def __rmul__(self, factor):
        return Vector(*(factor * v for v in self.values))

    def __iadd__(self, other):
        self.values = tuple(v + other for v in self.values)
        return self

    def __eq__(self, other):
        return self.values == getattr(other, "values", None)

    def __lt__(self, other):
        return self.values < other.values

    def __hash__(self):
        return hash(self.values)

    def __getitem__(self, index):
        return self.values[index]

    def __len__(self):
        return len(self.values)

    def __contains__(self, value):
        return any(v == value for v in self.values)

    def __iter__(self):
        yield from self.values

    def __call__(self, *args):
        return args, self.values

    def __getattr__(self, name):
        if name.startswith("v"):
            return self.values[int(name[1:])]
        raise AttributeError(name)

    def __repr__(self):
        return f"Vector{self.values}"

    def __format__(self, spec):
        return f"<{spec}>"

    def __neg__(self):
        return Vector(*(-v for v in self.values))

    def __bool__(self):
        return bool(self.values)


def operators():
    a, b = Vector(1, 2), Vector(3, 4)
    c = a + b
    c += 1
    errors = []
    for f in (lambda: a + 1, lambda: a - b, lambda: a > 1, lambda: -"x"):
        try:
            f()
        except (TypeError, AttributeError) as error:
            errors.append(str(error))
    return (
        repr(c),
        repr(2 * a),
        a == Vector(1, 2),
        a != b,
        a < b,
        b > a,
        a[0],
        len(a),
        2 in a,
        9 not in a,
        [*a],
        a(7),
        a.v1,
        hasattr(a, "w"),
        f"{a:spec} {a!r}",
        str(-a),
        sorted([b, a])[0] is a,
        {a: 1}[Vector(1, 2)],
        not Vector(),
        errors,
    )


def exceptions():
    log = []

    def f(kind):
        try:
            try:
                if kind:
                    raise kind("inner")
                log.append("no error")
            except KeyError as error:
                raise ValueError("outer") from error
            except TypeError:
                raise
            else:
                log.append("else")
            finally:
                log.append("finally")
        except ValueError as error:
            log.append((str(error), repr(error.__cause__), repr(error.__context__), error.__suppress_context__))
        except TypeError as error:
            log.append(repr(error.__context__))

    for kind in (None, KeyError, TypeError, ValueError):
        f(kind)
    try:
        raise ExceptionGroup("g", [ValueError(1), TypeError(2), OSError(3)])
    except* ValueError as group:
        log.append(repr(group.exceptions))
    except* (TypeError, OSError) as group:
        log.append(len(group.exceptions))
    return log


def with_statements():
    log = []

    @contextlib.contextmanager
    def manager(name):
        log.append(("enter", name))
        try:
            yield name
        except KeyError:
            log.append(("swallowed", name))
        finally:
            log.append(("exit", name))

    with manager("a") as a, manager("b") as b:
        log.append((a, b))
        raise KeyError
    with contextlib.suppress(ZeroDivisionError):
        log.append(1 / 0)
    return log


@dataclasses.dataclass(order=True, frozen=True)
class Item:
    name: str
    price: float = 1.0
    tags: list = dataclasses.field(default_factory=list, compare=False)


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


def matching():
    found = []
    for subject in [1, "x", [1, 2, 3], (1, 2), {"a": 1, "b": 2}, Item("i", 2.0), Colour.RED, None, {"c": []}]:
        match subject:
            case int(n) if n > 0:
                found.append(("int", n))
            case str() as s:
                found.append(("str", s))
            case [first, *rest, last] if len(rest) == 1:
                found.append((first, rest, last))
            case [a, b]:
                found.append((a, b))
            case {"a": x, **others}:
                found.append((x, others))
            case Item(name=name, price=price):
                found.append((name, price))
            case Colour.RED | Colour.GREEN:
                found.append("colour")
            case None:
                found.append(None)
            case _:
                found.append("other")
    return found


def standard_library():
    Point = collections.namedtuple("Point", "x y")

    @functools.lru_cache
    def cached(n):
        return n * 2

    class Lazy:
        @functools.cached_property
        def value(self):
            return [1]

    @functools.wraps(cached)
    def wrapped(*args):
        return functools.partial(cached, *args)()

    lazy = Lazy()
    items = sorted([Item("b"), Item("a", 3.0)], key=operator.attrgetter("name"))
    return (
        Point(1, y=2)._replace(x=5),
        cached(2),
        cached(2),
        cached.cache_info().hits,
        lazy.value is lazy.value,
        wrapped(4),
        wrapped.__wrapped__ is cached,
        items,
        dataclasses.asdict(items[0]),
        Colour(1).name,
        Colour["GREEN"].value,
        [*Colour],
        functools.reduce(lambda a, b: a + b, [1, 2, 3]),
        max([3, 1, 2], key=lambda x: -x),
        list(filter(lambda x: x % 2, range(5))),
        list(zip(range(2), (i for i in "ab"), strict=True)),
    )


def largest_of_values_that_iterate():
    class Version:
        def __init__(self, *parts):
            self.parts = parts

        def __iter__(self):
            yield from self.parts

        def __lt__(self, other):
            return self.parts < other.parts

        def __gt__(self, other):
            return self.parts > other.parts

    old, new = Version(1, 2), Version(1, 3)
    return max(old, new) is new, min(new, old) is old, max(old, new, key=list) is new, max(old), min([new, old]) is old


def comprehensions_and_unpacking():
    xs = [1, 2, 3]
    a, *b, c = xs
    (d, e), f = (1, 2), 3
    first, second = {"k": 1, "l": 2}.items()
    return (
        [x * y for x in xs for y in xs if x != y],
        {x: x**2 for x in xs},
        {x % 2 for x in xs},
        [*xs, *range(2)],
        {**{"a": 1}, "b": 2},
        (a, b, c, d, e, f, first, second),
        [(y := x) for x in xs][-1],
        y,
        xs[1:],
        xs[::-1],
    )


def dynamic_code():
    names = {}
    exec("def f(x):\n    return x + y\ny = 3\nz = [f(i) for i in range(2)]", names)
    local = 5
    return names["z"], eval("local + 1"), sorted(locals()), eval("a * 2", {"a": 4}), "fib" in globals(), dir()[:1]


def copies():
    class Reduced:
        def __init__(self, k):
            self.k = k

        def __reduce__(self):
            return Reduced, (self.k + 1,)

    class Stated(Reduced):
        __reduce__ = object.__reduce__

        def __getstate__(self):
            return {"k": self.k * 2}

    class Slotted:
        __slots__ = ("a", "b")

    slotted = Slotted()
    slotted.a = [1]
    made = [copy.copy(Reduced(1)), copy.deepcopy(Reduced(2)), copy.copy(Stated(3)), copy.deepcopy(Stated([4]))]
    return [m.k for m in made], copy.copy(slotted).a is slotted.a, hasattr(copy.deepcopy(slotted), "b")


PROGRAMS = [
    fib,
    every_parameter_kind,
    wrong_arguments,
    dicts_that_are_filled,
    closures_and_cells,
    unbound_variables,
    generators_send_throw_close,
    generator_returns_and_delegates,
    generator_expression_in_c,
    stop_iteration_in_a_generator,
    coroutines,
    classes,
    operators,
    exceptions,
    with_statements,
    matching,
    standard_library,
    largest_of_values_that_iterate,
    comprehensions_and_unpacking,
    dynamic_code,
    copies,
]
