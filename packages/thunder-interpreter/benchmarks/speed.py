"""How much slower interpreted programs are than CPython runs them.

``python benchmarks/speed.py`` prints CPU time plain and interpreted, and the geometric mean of the ratios;
``--callbacks`` measures with every callback overridden.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

from thunder_interpreter import Callbacks, interpret


def fib(n: int = 18) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def loop(n: int = 20_000) -> int:
    total = 0
    for i in range(n):
        if i % 3 == 0:
            total += i
        else:
            total -= 1
    return total


def while_loop(n: int = 15_000) -> int:
    i = total = 0
    while i < n:
        total = total ^ (i << 1)
        i += 1
    return total


class Point:
    def __init__(self, x: float, y: float) -> None:
        self.x = x
        self.y = y

    def moved(self, dx: float, dy: float) -> "Point":
        return Point(self.x + dx, self.y + dy)

    @property
    def norm(self) -> float:
        return self.x * self.x + self.y * self.y

    def __add__(self, other: "Point") -> "Point":
        return Point(self.x + other.x, self.y + other.y)


def attributes(n: int = 4000) -> float:
    point = Point(1.0, 2.0)
    total = 0.0
    for _ in range(n):
        point.x = point.x + 0.5
        total += point.x * point.y
    return total


def methods(n: int = 1500) -> float:
    point = Point(0.0, 0.0)
    for _ in range(n):
        point = point.moved(1.0, 2.0)
        point = point + point
        point = Point(point.norm % 7.0, 1.0)
    return point.norm


def comprehensions(n: int = 60) -> int:
    total = 0
    for i in range(n):
        squares = [j * j for j in range(60) if j % 2]
        table = {j: j + i for j in squares}
        total += sum(table.values()) + len({j % 5 for j in squares})
    return total


def generators(n: int = 4000) -> int:
    def counting(limit: int) -> Any:
        for i in range(limit):
            yield i + 0

    def doubled(limit: int) -> Any:
        yield from counting(limit)
        for i in counting(limit):
            yield 2 * i

    return sum(i for i in doubled(n))


def exceptions(n: int = 1500) -> int:
    def fails(i: int) -> int:
        if i % 2:
            raise ValueError(i)
        return i

    caught = 0
    for i in range(n):
        try:
            fails(i)
        except ValueError as error:
            caught += error.args[0]
        finally:
            caught += 1
    return caught


def strings(n: int = 3000) -> int:
    parts = []
    for i in range(n):
        parts.append(f"{i:>4}-{i % 7}".strip() + "x" * (i % 3))
    return len(",".join(parts).upper().split("X"))


def closures(n: int = 3000) -> int:
    def counter() -> Callable[[int], int]:
        count = 0

        def add(step: int) -> int:
            nonlocal count
            count += step
            return count

        return add

    add = counter()
    for i in range(n):
        add(i)
    return add(0)


def sorting(n: int = 600) -> list[int]:
    values = [(i * 7919) % 1009 for i in range(n)]
    for _ in range(3):
        values = sorted(values, key=lambda value: -value)
    return list(map(lambda value: value + 1, values))


def calls(n: int = 3000) -> int:
    def spread(a: int, b: int = 2, *rest: int, c: int = 3, **more: int) -> int:
        return a + b + c + len(rest) + len(more)

    total = 0
    for i in range(n):
        total += spread(i) + spread(i, 1, 2, c=4) + spread(*(i, i), **{"d": 1})
    return total


PROGRAMS: tuple[Callable[[], Any], ...] = (
    fib,
    loop,
    while_loop,
    attributes,
    methods,
    comprehensions,
    generators,
    exceptions,
    strings,
    closures,
    sorting,
    calls,
)


class Everything(Callbacks):
    """Overrides every callback without doing anything."""


def overridden(name: str) -> Callable[..., Any]:
    """A method that does what the one it overrides does."""
    inherited = getattr(Callbacks, name)

    def same(self: Any, *args: Any) -> Any:
        return inherited(self, *args)

    return same


for callback in [name for name in vars(Callbacks) if not name.startswith("_")]:
    setattr(Everything, callback, overridden(callback))


def cpu_seconds(fn: Callable[[], Any], repeat: int) -> float:
    """The least CPU time of ``repeat`` calls."""
    best = math.inf
    for _ in range(repeat):
        began = time.process_time()
        fn()
        best = min(best, time.process_time() - began)
    return best


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--callbacks", action="store_true")
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    ratios = []
    for program in PROGRAMS:
        if options.programs and program.__name__ not in options.programs:
            continue
        callbacks = Everything() if options.callbacks else None
        run = interpret(program, callbacks=callbacks)
        if run() != program():
            raise AssertionError(f"{program.__name__} gives another result when interpreted")
        plain = cpu_seconds(program, 3 * options.repeat)
        interpreted = cpu_seconds(run, options.repeat)
        ratios.append(interpreted / plain)
        print(f"{program.__name__:16} {plain * 1e3:8.3f} ms {interpreted * 1e3:9.2f} ms  {ratios[-1]:6.1f} x")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"geometric mean {mean:.1f} x")


if __name__ == "__main__":
    main()
