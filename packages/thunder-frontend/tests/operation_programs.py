"""Random programs that call Thunder's own operations, with containers from every kind of place that change between calls.

Operators of an executor, prims, symbols of the torch language and functions of the core and numpy languages are given
nested containers that come from arguments, defaults, globals, closures, attributes, classes, modules, properties and
partials, or are made in the program; the program, and its user between calls, change these in place. Eager has functions of
PyTorch by the same names. Operations but those of torch return values: in eager, copies.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch

import thunder_lang
import thunder_lang.numpy as tnp
import thunder_prims as prims
import thunder_torch as ltorch
from thunder_executors import OperatorExecutor
from thunder_frontend import jit
from thunder_ir import ThunderError


@dataclasses.dataclass
class Config:
    """A dataclass, of which a program may hold several."""

    scale: Any
    rest: Any


class Pair(NamedTuple):
    """A named tuple."""

    first: Any
    second: Any


class Slots:
    """An object whose attributes are in slots."""

    __slots__ = ("rest", "scale")

    def __init__(self, scale: Any, rest: Any) -> None:
        self.scale, self.rest = scale, rest


class Sizes(list):
    """A list of the user's class."""


def digest(value: Any) -> Any:
    """Return a number, or a tensor, that tells what is in a value."""
    if isinstance(value, torch.Tensor):
        return value.double().sum()
    if isinstance(value, (bool, type(None))):
        return {True: 0.5, False: 0.25, None: 0.75}[value]
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        return sum(map(ord, value)) / 1000
    if isinstance(value, (Config, Slots)):
        return 1.5 + digest([value.scale, value.rest])
    if isinstance(value, dict):
        return 2.5 + digest([digest(k) + digest(v) for k, v in value.items()])
    if isinstance(value, (set, frozenset)):
        return 3.5 + sum(map(digest, value))
    return 4.5 + sum([(i + 1) * digest(item) for i, item in enumerate(value)])


def tensors_in(value: Any) -> list[Any]:
    """Return what is in nested lists and tuples."""
    return [t for item in value for t in tensors_in(item)] if isinstance(value, (list, tuple)) else [value]


def total(value: Any) -> Any:
    """Return the sum of what is in nested lists and tuples."""
    return functools.reduce(lambda a, b: a + b, tensors_in(value))


executor = OperatorExecutor("generated")
OURS: dict[str, Any] = {
    "weighted": executor.register_operator(
        "weighted", meta=lambda a, tree: a.like(), fn=lambda a, tree: a * (1 + digest(tree)).float()
        if isinstance(digest(tree), torch.Tensor) else a * (1 + digest(tree)),
    ),
    "both": executor.register_operator(
        "both",
        meta=lambda tree, *, a, scale=1: [a.like(), {"b": a.like()}],
        fn=lambda tree, *, a, scale=1: [a * scale, {"b": (a + digest(tree)).to(a.dtype)}],
    ),
    "totalled": executor.register_operator("totalled", like=lambda a, tensors: a + total(tensors), fn=None),
    "ltorch": ltorch, "lang": thunder_lang, "tnp": tnp, "prims": prims,
}  # fmt: skip


def copied(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of PyTorch such that it returns a copy, without gaps."""
    return lambda *args, **kwargs: function(*args, **kwargs).clone(memory_format=torch.contiguous_format)


EAGERS: dict[str, Any] = {
    "weighted": lambda a, tree: (a * (1 + digest(tree))).to(a.dtype),
    "both": lambda tree, *, a, scale=1: [a * scale, {"b": (a + digest(tree)).to(a.dtype)}],
    "totalled": lambda a, tensors: a + total(tensors),
    "ltorch": torch,
    "prims": SimpleNamespace(
        reshape=copied(torch.reshape), transpose=copied(torch.permute), flip=copied(torch.flip), cat=copied(torch.cat),
        sum=copied(torch.sum),
    ),
    "lang": SimpleNamespace(
        **{name: copied(getattr(torch, name)) for name in "cat stack sum add".split()},
        **{name: copied(getattr(torch.Tensor, name)) for name in "reshape permute flip".split()},
    ),
    "tnp": SimpleNamespace(
        sum=copied(torch.sum), mean=copied(torch.mean), reshape=copied(torch.reshape), permute_dims=copied(torch.permute),
        concat=copied(torch.concat), stack=copied(torch.stack), add=copied(torch.add),
    ),
}  # fmt: skip

# what operations take, with what may be in its place: each of shape (2, 3) or made such again
SHAPES, DIMS, ORDERS = ("6", "3, 2", "1, 6", "6, 1, 1"), ("0", "1", "0, 1"), ("0, 1", "1, 0")
CALLS = {
    "any": (
        "weighted({a}, {c})", "weighted({a}, [{c}, {n}])", "both({c}, a={a})[1]['b']", "both(a={a}, tree=({c},), scale={n})[0]",
        "weighted(a={a}, tree={{'k': {c}}})",
    ),
    "shape": (
        "ltorch.reshape({a}, {c}).reshape(2, 3)", "prims.reshape({a}, tuple({c})).reshape(2, 3)", "tnp.reshape({a}, tuple({c})).reshape(2, 3)",
        "lang.reshape({a}, *{c}).reshape(2, 3)", "lang.reshape({a}, {c}).reshape(2, 3)",
    ),
    "dims": (
        "ltorch.sum({a}, {c}, keepdim=True) + {b}", "lang.sum({a}, {c}, True) + {b}", "tnp.sum({a}, axis=tuple({c})) + {b}.sum()",
        "lang.flip({a}, {c})", "prims.flip({a}, tuple({c}))", "ltorch.flip({a}, dims={c})", "ltorch.flip({a}, {c})",
    ),
    "order": (
        "prims.transpose({a}, tuple({c})).reshape(2, 3)", "lang.permute({a}, {c}).reshape(2, 3)", "tnp.permute_dims({a}, {c}).reshape(2, 3)",
        "ltorch.permute({a}, {c}).reshape(2, 3)",
    ),
    "tensors": (
        "totalled({a}, {c})", "ltorch.cat({c})[:2] + {a}", "lang.cat({c})[-2:] * {a}", "ltorch.stack({c}).sum(0)", "lang.stack({c}).mean(0)",
        "tnp.concat({c})[1:3]", "tnp.stack({c}).amax(0)", "prims.cat({c}, 0)[:2]", "totalled({a}, [[{b}], {c}])",
    ),
}  # fmt: skip
VALUES = ("{a} * {n}", "{a} + {b}", "{a}.sin()", "ltorch.mul({a}, {b})", "lang.add({a}, {b})", "tnp.add({a}, {b})")
WRITES = ("{a}.add_({n})", "{a}[0] = {b}[1]", "{a}.t()[0].mul_(2)")
SOURCES = {
    "argument": ("", "p{i}"),
    "global": ("c{i} = {value}", "c{i}"),
    "attribute": ("n{i} = SimpleNamespace(v=SimpleNamespace(v={value}))", "n{i}.v.v"),
    "class": ("class K{i}:\n    v = {value}", "K{i}.v"),
    "property": ("class Q{i}:\n    v = property(lambda self: self.held)\nq{i} = Q{i}()\nq{i}.held = {value}", "q{i}.v"),
    "module": ("m{i} = torch.nn.Module()\nm{i}.inner = torch.nn.Module()\nm{i}.inner.v = {value}", "m{i}.inner.v"),
    "item": ("t{i} = {{'k': ({value}, 1)}}", "t{i}['k'][0]"),
    "closure": ("def outer{i}():\n    held = {value}\n    return lambda: held\nget{i} = outer{i}()", "get{i}()"),
    "default": ("def named{i}(v={value}):\n    return v", "named{i}()"),
    "partial": ("part{i} = functools.partial(lambda v: v, {value})", "part{i}()"),
    "fresh": ("", "f{i}"),
}
LEAVES = ("1", "2", "0.5", "True", "None", "'ab'", "-3", "T0", "T1")
NAMES: dict[str, Any] = {
    "Config": Config, "Pair": Pair, "Slots": Slots, "Sizes": Sizes, "SimpleNamespace": SimpleNamespace,
    "collections": collections, "functools": functools, "torch": torch,
}  # fmt: skip


class Generated:
    """A program and what its user does between calls, by a seed.

    Args:
        seed: of it.
    """

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.setup: list[str] = []
        self.given: list[str] = []
        self.body: list[str] = []
        self.places: list[tuple[str, str, str]] = []
        for i in range(self.draw.randint(1, 4)):
            self.container(i)
        self.differentiates = all([kind != "any" for _, kind, _ in self.places])
        self.statements()
        self.changes = [[self.change(outside=True) for _ in range(self.draw.randint(1, 2))] for _ in range(3)]
        parameters = ", ".join(["x", "y", *self.given])
        lines = "\n".join(["    " + line for line in self.body])
        self.text = "\n".join([*self.setup, f"def program({parameters}):\n{lines}\n"])

    def container(self, i: int) -> None:
        """Make a container and say where it is."""
        kind, source = self.draw.choice([*CALLS, "any", "any"]), self.draw.choice(list(SOURCES))
        self.inside: list[tuple[str, str]] = []
        if kind == "any":
            value = self.tree("", self.draw.randint(1, 3))
        elif kind == "tensors":
            value = f"[{', '.join(['T0', 'T1', *self.draw.sample(['T2', 'T1'], self.draw.randint(0, 2))])}]"
            self.inside.append(("", "tensors"))
        else:
            options = {"shape": SHAPES, "dims": DIMS, "order": ORDERS}[kind]
            listed = self.draw.random() < 0.6
            value = ("[{}]" if listed else "({},)").format(self.draw.choice(options))
            self.inside += [("", kind)] if listed else []
        setup, place = SOURCES[source]
        if setup:
            self.setup.append(setup.format(i=i, value=value))
        elif source == "argument":
            self.setup.append(f"p{i} = {value}")
            self.given.append(f"p{i}")
        else:
            self.body.append(f"f{i} = {value}")
        place = place.format(i=i)
        self.places += [(place, kind, "fresh" if source == "fresh" else "")]
        self.mutable = [*getattr(self, "mutable", []), *[(place + path, what, source) for path, what in self.inside]]

    def tree(self, path: str, depth: int) -> str:
        """Return the text of a nested container; note the ways to what can be changed in it."""
        if depth == 0:
            return self.draw.choice(LEAVES)

        def inner(step: str) -> str:
            return self.tree(path + step, self.draw.randint(0, depth - 1))

        kind = self.draw.choice("list list tuple dict set deque ordered default config slots pair sizes frozen".split())
        self.inside.append((path, kind))
        if kind == "set":
            return "{1, 2, 'k'}"
        if kind == "frozen":
            return "frozenset([3, 'z'])"
        if kind in ("dict", "ordered", "default"):
            text = f"{{'k': {inner('[chr(107)]')}, 2: {inner('[2]')}}}"
            wrap = {
                "dict": "{}",
                "ordered": "collections.OrderedDict({})",
                "default": "collections.defaultdict(int, {})",
            }
            return wrap[kind].format(text)
        if kind in ("config", "slots"):
            return f"{kind.title()}({inner('.scale')}, {inner('.rest')})"
        text = ", ".join([inner(f"[{i}]") for i in range(2)])
        wrap = {
            "list": "[{}]",
            "tuple": "({})",
            "deque": "collections.deque([{}])",
            "pair": "Pair({})",
            "sizes": "Sizes([{}])",
        }
        return wrap[kind].format(text)

    def change(self, outside: bool) -> str:
        """Return a statement that changes something."""
        possible = [m for m in self.mutable if outside is False or m[2] != "fresh"]
        if not possible:
            return "T0.add_(1)" if outside else "pass"
        place, kind, _ = self.draw.choice(possible)
        n = self.draw.choice(["1", "2.5", "'c'", "None", "T2", "[7]", "4"])
        if kind in ("shape", "dims", "order"):
            return f"{place}[:] = [{self.draw.choice({'shape': SHAPES, 'dims': DIMS, 'order': ORDERS}[kind])}]"
        if kind == "tensors":
            return self.draw.choice(
                [f"{place}.append(T2)", f"{place}[0] = T2", f"{place}.reverse()", f"{place}[1:] = [T0]"]
            )
        if kind in ("list", "deque", "sizes"):
            return self.draw.choice(
                [
                    f"{place}.append({n})",
                    f"{place}.insert(2, {n})",
                    f"{place} += [{n}]" if kind == "list" and place[-1] == "]" else f"{place}.extend([{n}])",
                ]
            )
        if kind in ("dict", "ordered", "default"):
            return self.draw.choice(
                [f"{place}[{self.draw.choice(['3', chr(39) + 'm' + chr(39)])}] = {n}", f"{place}.update(u={n})"]
            )
        if kind == "set":
            return self.draw.choice([f"{place}.add(9)", f"{place}.discard(1)", f"{place}.add('q')"])
        if kind in ("config", "slots"):
            return f"{place}.scale = {n}" if not self.leads_on(place + ".scale") else f"{place}.rest = {place}.rest"
        return "T1.mul_(2)" if outside else "pass"

    def leads_on(self, place: str) -> bool:
        """Whether something that can be changed is behind a place, which is to stay then."""
        return any([other.startswith(place) for other, _, _ in self.mutable])

    def statements(self) -> None:
        """Make the body of the program."""
        names = ["x", "y"]
        for i in range(self.draw.randint(3, 7)):
            a, b, n = self.draw.choice(names), self.draw.choice(names), self.draw.randint(2, 5)
            what = self.draw.random()
            if what < 0.55:
                place, kind, _ = self.draw.choice(self.places)
                text = self.draw.choice(CALLS[kind]).format(a=a, b=b, c=place, n=n)
            elif what < 0.7:
                text = self.draw.choice(VALUES).format(a=a, b=b, n=n)
            elif what < 0.85:
                self.body.append(self.change(outside=False))
                continue
            else:
                self.body.append(self.draw.choice(WRITES).format(a=a, b=b, n=n))
                continue
            self.body.append(f"v{i} = {text}")
            names.append(f"v{i}")
        place, kind, _ = self.places[0]
        self.body.append(f"v = {self.draw.choice(CALLS[kind]).format(a='x', b='y', c=place, n=2)}")
        self.body.append(f"return [{', '.join(['v', *self.draw.sample(names, min(2, len(names)))])}]")

    def run(self, operations: dict[str, Any], compiles: bool) -> list[Any]:
        """Return what comes of all calls and changes, with these operations."""
        space: dict[str, Any] = {**operations, **NAMES}
        for i in range(3):
            space[f"T{i}"] = torch.arange(6.0).reshape(2, 3) * 0.1 + i
        exec(compile(self.text, "<program>", "exec"), space)
        program = space["program"]
        program = jit(program, executors=[executor], fallback="error") if compiles else program
        log: list[Any] = []
        for changes in ([], [], *self.changes, []):
            for change in changes:
                try:
                    exec(change, space)
                except Exception as error:  # a change that makes no sense now makes none in either world
                    log.append(len(type(error).__name__))
            leaf = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_(self.differentiates)
            x, y = leaf * 1, torch.linspace(2, 1, 6).reshape(2, 3)
            try:
                results = program(x, y, *[space[name] for name in self.given])
                log.append([t.detach().clone() for t in results])
                wanted = [t.sum() for t in results if t.requires_grad]
                log.append(gradient(sum(wanted), leaf) if wanted else None)
            except ThunderError:
                raise
            except Exception as error:
                log.append(("raised", None if isinstance(error, RuntimeError) else "other"))
                return log
            log.append([x.detach().clone(), y.detach().clone(), *[space[f"T{i}"].detach().clone() for i in range(3)]])
            log.append(self.state(space))
        return log

    def state(self, space: dict[str, Any]) -> list[Any]:
        """Return what all containers hold."""
        found = []
        for place, _, fresh in self.places:
            if not fresh:
                value = digest(eval(place, space))
                found.append(float(value) if not isinstance(value, str) else value)
        return found


def gradient(total: torch.Tensor, leaf: torch.Tensor) -> Any:
    """Return a gradient; a text where eager's autograd finds that what it saved was changed, which a program copies."""
    try:
        return torch.autograd.grad(total, leaf)[0]
    except RuntimeError as error:
        if "modified by an inplace" not in str(error):
            raise
        return "changed"


def agrees_with_eager(seed: int) -> None:
    """Call a random program eagerly and compiled, with changes between calls.

    Raises:
        AssertionError: something else comes of it.
        ThunderError: it is refused.
    """
    generated = Generated(seed)
    expected = generated.run(EAGERS, compiles=False)
    found = generated.run(OURS, compiles=True)
    where = f"seed {seed}\n{generated.text}\nchanges: {generated.changes}"
    if [e for e in expected if isinstance(e, tuple)]:
        expected, found = [copy.copy(e) for e in expected], found
    for step, (ours, theirs) in enumerate(zip(found, expected, strict=False)):
        if isinstance(theirs, tuple) or isinstance(ours, tuple):
            assert isinstance(theirs, tuple) and isinstance(ours, tuple), f"step {step}: {ours}, not {theirs}\n{where}"
            return
        if isinstance(theirs, str) or isinstance(ours, str):
            assert isinstance(theirs, str), f"step {step}: {ours}, not {theirs}\n{where}"
            continue
        try:
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4, equal_nan=True)
        except AssertionError as error:
            raise AssertionError(f"step {step}: {error}\n{ours}, where eager comes to {theirs}\n{where}") from error
    assert len(expected) == len(found), where
