"""Random programs that read lists, objects and arrays which their users write to, and replace, between calls.

Each is called several times, eagerly and compiled, in a world of its own. What is compared: results, what errors are, and
all that the world holds.
"""

from __future__ import annotations

import copy
import functools
import math
import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from programs import Refused

from thunder_frontend import jit
from thunder_ir import ThunderError

SIZES = ("w.sizes", "sizes", "list(w.sizes)", "[w.count, 3]", "w.pair", "(w.count, *w.pair[1:])", "[*map(int, sizes)]")
WEIGHTS = (
    "w.weights",
    "weights",
    "[w.count * 0.5, 1.5]",
    "w.weights + [2.5]",
    "w.weights * 2",
    "w.rows[0]",
    "[*w.weights]",
)
LISTS = ("w.rows", "[w.weights, w.weights]", "[weights, weights]")
OBJECTS = ("w.kept", "w.entries['a']", "w.items[0]")
STATEMENTS = (
    "y = y + torch.zeros({sizes}).sum()", "y = y + torch.tensor({weights}).sum()", "y = y * torch.as_tensor({weights}).mean()",
    "y = y + y.sum().expand({sizes}).sum()", "y = y + torch.nn.functional.pad(y, {sizes}).sum()", "y = y + y.new_tensor({weights}).sum()",
    "y = y + x[:2, :3].repeat({sizes}).sum()", "y = y.roll({sizes}, (0, 1))", "y = y + torch.tensor({lists}).sum()",
    "y = y + torch.nn.functional.interpolate(y[None, None], size={sizes}).sum()", "y = y * sum({weights})",
    "out.append({weights} + [1.0])", "out.append({lists} * 2)", "y = y + y[{places}].sum()", "y[{places}] = 1.0",
    "q = w.rows + [[5.0, 6.0]]\nq[0].append(7.0) if len(q[0]) < 4 else None\nout.append(q)", "out.append({object})",
    "w.sizes.append(4) if len(w.sizes) < 3 else w.sizes.pop()", "w.weights[0] = w.weights[0] + 0.25", "w.count = w.count % 4 + 1",
    "w.weights = w.weights + [0.75] if len(w.weights) < 4 else [0.5, 1.5]", "w.sizes = [w.sizes[0] % 3 + 1, 3]",
    "y = fold({object}, y, [])", "y = fold({object}, y, [])", "y = fold({object}, y, [])", "y = y * 2 if {object} is {other} else y * 3",
    "y = y * 2 if isinstance({object}, (list, tuple)) else y + 3", "y = y * 2 if hasattr({object}, 'u') else y + 3",
    "w.kept = [{object}, y.sum()]", "w.entries['a'] = {object}", "if type({object}) is list: {object}.append(y.mean())",
    "if isinstance({object}, Plain): {object}.u = y.sum()", "y = y * w.schedule[i]", "y = y + w.schedule[i + 1] / w.schedule[-i]",
    "w.schedule[i] += 1.0", "y = y + float(w.schedule[-i])", "y = y * (2 if w.schedule[i] > 0.5 else 3)", "out.append(w.schedule[i])",
    "y = y + np.sqrt(w.schedule[i]) * math.sqrt(1 + w.schedule[i])", "y = y + w.table[i] * w.grid[i, 1]", "w.grid[i, 1] = 3.0",
    "torch.from_numpy(w.schedule)[1] = 0.5", "y = y + w.schedule[[i, 0]].sum()", "y = y * int(np.ceil(i / 2)) + np.cos(i)",
    "out.append(np.floor(i * 0.7))", "w.counts['n'] += 1\ny = y * w.counts['n']", "sums = np.cumsum(w.table)\ntorch.from_numpy(sums)[0] = 7\nout.append(sums)",
)  # fmt: skip
CHANGES = (
    "w.sizes = [{n}, {m}]", "w.sizes[0] = {n}", "w.weights = [{f}, 2.5]", "w.weights[-1:] = [{f}]", "w.rows[0] = [{f}, 2.0]",
    "w.rows = [[{f}, 1.0], [2.0, 3.0]]", "w.count = {n}", "w.pair = ({n}, 2)", "w.places = [{n} % 4, {m}]", "w.schedule[{n}] = {f}",
    "w.schedule = w.schedule * 1.5", "w.kept = made", "w.entries['a'] = made", "w.items[:1] = [made]", "w.kept = w.items[0] = made",
    "w.kept = copy.copy(w.kept)", "w.kept = w.entries['a']",
)  # fmt: skip


class Plain:
    """An object of a user's."""

    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)

    def times(self, value: Any) -> Any:
        """Return a product."""
        return value * getattr(self, "u", 2) if isinstance(getattr(self, "u", 2), float) else value


class Slotted:
    """Another, which keeps its attribute elsewhere."""

    __slots__ = ("u",)

    def __init__(self, u: Any) -> None:
        self.u = u


@dataclass
class Config:
    """A third."""

    u: Any = 1.5
    inner: Any = None


class Pair(NamedTuple):
    """A tuple with names."""

    u: Any
    inner: Any


def times(factor: float) -> Any:
    """Return a function as each call of this makes one."""
    return lambda value: value * factor


def made(draw: random.Random, depth: int = 2) -> Any:
    """Return a random number, tensor, container or object."""
    if not depth or draw.random() < 0.25:
        value = draw.choice([0.5, 1.5, draw.random() + 2, draw.randint(2, 9), "a", None, True, "tensor"])
        return torch.full((6,), draw.random()) if value == "tensor" else value
    part, other = made(draw, depth - 1), made(draw, depth - 1)
    return draw.choice([
        lambda: [part, other], lambda: (part,), lambda: {"u": part, "z": other}, lambda: Plain(u=part), lambda: Slotted(part),
        lambda: Config(part, other), lambda: Pair(part, other), lambda: deque([part]), lambda: SimpleNamespace(u=part),
        lambda: times(draw.choice([1.5, draw.random()])), lambda: Plain(u=2.5).times, lambda: OrderedDict(u=part),
        lambda: functools.partial(torch.mul, other=draw.choice([2.5, 3.5])),
    ])()  # fmt: skip


def fold(value: Any, x: Any, seen: list[Any]) -> Any:
    """Return a tensor that all that an object holds had a part in."""
    if isinstance(value, bool) or value is None:
        return x + 1 if value else x - 0.5
    if isinstance(value, (int, float)):
        return x * value
    if isinstance(value, torch.Tensor):
        return x + value
    if isinstance(value, str):
        return x * len(value)
    if any([known is value for known in seen]) or len(seen) > 30:
        return x * 1.125
    seen.append(value)
    if isinstance(value, (FunctionType, MethodType, functools.partial)):
        return value(x)
    if isinstance(value, dict):
        for key, item in value.items():
            x = fold(item, x, seen) * (2 if key == "u" else 3)
        return x
    if isinstance(value, (list, tuple, deque)):
        for item in value:
            x = fold(item, x, seen)
        return x + len(value)
    x = fold(value.u, x, seen)
    return fold(value.inner, x, seen) if hasattr(value, "inner") else x


class World:
    """What a program reads and writes beside its arguments.

    Args:
        seed: of what it holds.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.sizes, self.pair, self.count, self.places = [2, 3], (2, 3), 2, [0, 1]
        self.weights, self.rows = [0.5, 1.5], [[1.0, 2.0], [3.0, 4.0]]
        self.kept, self.entries, self.items = made(draw), {"a": made(draw)}, [made(draw)]
        self.schedule, self.table = np.linspace(0.1, 0.9, 8), np.arange(1, 9)
        self.grid, self.counts = np.linspace(0.1, 0.9, 16).reshape(8, 2), defaultdict(int)


def described(value: Any, seen: dict[int, int]) -> Any:
    """Return what is seen of a value and of all that it holds, and which of that is the same."""
    if isinstance(value, torch.Tensor):
        return "tensor", str(value.dtype), value.detach().clone()
    if isinstance(value, (int, float, str, type(None), np.generic)):
        return type(value).__name__, value
    if id(value) in seen:
        return "the same", seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, np.ndarray):
        return str(value.dtype), torch.tensor(value)
    if isinstance(value, (FunctionType, MethodType, functools.partial)):
        return type(value).__name__
    if isinstance(value, dict):
        return type(value).__name__, [(key, described(item, seen)) for key, item in value.items()]
    if isinstance(value, (list, tuple, deque)):
        return type(value).__name__, [described(item, seen) for item in value]
    held = {"u": value.u} if isinstance(value, Slotted) else vars(value)
    return type(value).__name__, [(key, described(item, seen)) for key, item in held.items()]


def program(draw: random.Random) -> str:
    """Return the text of a random program."""
    lines = ["out = []", "y = x * 1"]
    for _ in range(draw.randint(2, 6)):
        given = {"sizes": SIZES, "weights": WEIGHTS, "lists": LISTS, "object": OBJECTS, "other": OBJECTS}
        text = draw.choice(STATEMENTS)
        lines += text.format(
            **{name: draw.choice(options) for name, options in given.items()},
            places=draw.choice(["[0, 1]", "places", "w.places"]),
        ).splitlines()
    body = "\n".join("    " + line for line in [*lines, "return y, out"])
    return f"def program(x, w, i, sizes, weights, places):\n{body}\n"


def run(seed: int, compiles: bool) -> list[Any]:
    """Return what comes of all calls of the program of a seed."""
    draw = random.Random(seed)
    text = program(draw)
    space: dict[str, Any] = {"torch": torch, "np": np, "math": math, "fold": fold, "Plain": Plain}
    exec(compile(text, "<program>", "exec"), space)
    cache = draw.choice(["auto", "auto", "symbolic values", "constant values"])
    called = jit(space["program"], cache=cache, fallback="error") if compiles else space["program"]
    world, log = World(seed), list[Any]()
    for _ in range(6):
        numbers = {"n": draw.randint(1, 4), "m": draw.randint(1, 3), "f": draw.random() + 0.5}
        changes = [draw.choice(CHANGES).format(**numbers) for _ in range(draw.choice([0, 1, 2]))]
        for change in changes:
            exec(change, {"w": world, "copy": copy, "made": made(random.Random(draw.randint(0, 3)))})
        i, sizes = draw.randint(1, 4), [draw.randint(1, 4), draw.randint(1, 3)]
        given = [sizes, [draw.random() + 0.5, draw.choice([1.5, 2.5])], [draw.randint(0, 3), draw.randint(0, 3)]]
        x = torch.linspace(-1, 1, 24).reshape(4, 6)
        try:
            log.append(described([called(x, world, i, *given), world, given], {}))
        except ThunderError:
            raise
        except Exception as error:
            return [*log, type(error).__name__]  # what the program wrote before need not be there
    return log


def alike(ours: Any, eagers: Any) -> bool:
    """Whether two descriptions are the same, but for rounding."""
    if isinstance(ours, torch.Tensor):
        return ours.shape == eagers.shape and torch.allclose(ours, eagers, rtol=1e-4, atol=1e-4, equal_nan=True)
    if isinstance(ours, (list, tuple)):
        return len(ours) == len(eagers) and all([alike(a, b) for a, b in zip(ours, eagers, strict=True)])
    if isinstance(ours, float):
        return type(ours) is type(eagers) and bool(np.isclose(ours, eagers, equal_nan=True))
    return bool(ours == eagers)


def agrees_with_eager(seed: int) -> None:
    """Check that a random program does what eager does; see :func:`agree`."""
    agree(run, program(random.Random(seed)), seed)


def agree(run: Callable[[int, bool], list[Any]], text: str, seed: int) -> None:
    """Check that the calls of a random program do what they do in eager.

    Args:
        run: returns what comes of all calls of the program of a seed, compiled or not.
        text: of the program.
        seed: of it.

    Raises:
        AssertionError: it does something else.
        Refused: eager raises at once.
    """
    expected = run(seed, False)
    if isinstance(expected[0], str):
        raise Refused(expected[0])
    found = run(seed, True)
    for call, (ours, eagers) in enumerate(zip(found, expected, strict=False)):
        if type(ours) is not type(eagers) or not alike(ours, eagers):
            raise AssertionError(f"{text}\ncall {call}\nours:  {ours}\neager: {eagers}")
    assert len(found) == len(expected)
