"""Random programs with branches and loops on data, random numbers, and calls that no program can hold.

Each is called several times, eagerly and compiled, in a world of its own, with inputs that take other ways at random; some
from several threads at once. What is compared: results and what autograd says of them, errors, what the program wrote
to, gradients, and the state of all generators of random numbers.
"""

from __future__ import annotations

import random
import threading
import warnings
from typing import Any

import numpy as np
import torch

from thunder_frontend import jit


def odd(x):
    """Leaves PyTorch, and comes back."""
    return x * float(np.tanh(x.detach().float().numpy().sum()))


def parts(x):
    """Returns a container."""
    size = len(x.detach().numpy().tobytes())
    return {"a": x + 1, "b": [x * 2, size], "c": (x.sum(), None, "text")}


def itself(x):
    """Returns what it is given."""
    x.detach().numpy()
    return x


def viewed(x):
    """Returns a view of what it is given."""
    return x.reshape(-1)[: len(x.detach().numpy().reshape(-1))].view(2, 3)


def touches(x, state):
    """Writes to the outside."""
    state["n"] += int(abs(x.detach().numpy().sum())) % 3
    state["log"].append(len(state["log"]))
    return x * 2


def writes(x):
    """Writes to what it is given."""
    x.detach().numpy()
    with torch.no_grad():
        x.add_(1)
    return x.sin()


def draws(x):
    """Draws from all generators."""
    x.detach().numpy()
    return x * torch.rand(2, 3) + random.random() + np.random.rand()


def refuses(x):
    """Raises, or not, by what it is given."""
    if x.detach().numpy().sum() > 0:
        raise ValueError(f"positive {tuple(x.shape)}")
    return x - 1


def sparse(x):
    """Computes with a sparse tensor."""
    return (x.detach().to_sparse() @ torch.ones(3, 3)) + x


def calls_others(x, state):
    """Can be held, but not what it calls."""
    y = odd(x * 2)
    state["n"] += 1
    if y.sum() > 1:
        y = itself(y) + 1
    return touches(y, state)


class Gate(torch.nn.Module):
    """A module that no program can hold."""

    def __init__(self):
        super().__init__()
        self.linear, self.calls = torch.nn.Linear(3, 3), 0

    def forward(self, x):
        self.calls += 1
        h = self.linear(x)
        return h * (1 if h.detach().numpy().sum() > 0 else 2)


class Block(torch.nn.Module):
    """A module that calls it."""

    def __init__(self):
        super().__init__()
        self.linear, self.gate = torch.nn.Linear(3, 3), Gate()

    def forward(self, x):
        return x + self.gate(self.linear(x).relu()) + self.gate.calls


SPACE = {f.__name__: f for f in (odd, parts, itself, viewed, touches, writes, draws, refuses, sparse, calls_others)}
SPACE |= {"torch": torch, "random": random, "np": np}

VALUES = (
    "{a} * {b}", "{a}.sin()", "{a} + {n}", "{a}.t().t()", "{a}[:]", "{a}.detach() * 2", "block.linear({a})", "{a}.clone()",
    "torch.cat([{a}, {b}])[:2]", "{a}.relu() - {b}.tanh()", "{a}.softmax(-1)", "{a}[0] + {b}", "{a} / ({b}.abs() + 1)",
    "torch.where({a} > 0, {a}, {b})", "{a} * state['n']", "{a}.view(3, 2).reshape(2, 3)", "state['kept'] + {a}.detach()",
)  # fmt: skip
LOST = (
    "odd({a})", "parts({a})['a']", "parts({a})['b'][0] * {b}", "parts({a})['c'][0] + {b}", "itself({a})", "viewed({a})", "writes({a} * 1)",
    "sparse({a})", "calls_others({a}, state)", "touches({a}, state)", "block({a})", "block.gate({a})", "odd({a}) + itself({b})", "writes({a}) + {b}",
    "torch.stack([odd(row) for row in {a}])", "odd(odd({a}))", "block({a} + odd({b}))",
    "torch.stack([*{a}, odd({a})[0], *{b}])[1:3]", "sum({**{'p': {a}}, 'q': odd({a}), **{'r': {b}}}.values())",
    "torch.stack([[itself(row) * 1 for row in {a}][i] for i in (1, 0)])", "torch.cat([*{a}.split(1), *[odd(row)[None] for row in {b}]])[1:3]",
)  # fmt: skip
ROWS = (
    "{a} * len({a}[{a}[:, 0] > 0].split(1))", "sum([row * i for i, row in enumerate({a}[{a}.sum(1) > 0])], {b} * 0)",
    "{a} + sum([{a}[i, k] * (i - k) for i, k in torch.nonzero({a} > 0)], 0)", "{a} * sum([p.sum() for p in {b}[{b} > 0].chunk(2)])",
)  # fmt: skip
DRAWN = (
    "{a} * torch.rand(2, 3)", "{a} + random.random()", "{a} * np.random.rand()", "torch.nn.functional.dropout({a}, 0.5)", "draws({a})",
    "{a} + random.randint(0, 3)", "{a} * (1 if random.random() < 0.5 else 2)",
)  # fmt: skip
CONDITIONS = (
    "{a}.sum() > {n}", "({a} > 0).any()", "int({a}.argmax()) == {n}", "{a}.sum().item() > 0", "state['n'] % 2 == 0", "len(state['log']) > {n}",
    "odd({a}).sum() > 0", "not torch.isfinite({a}).all()", "{a}.mean() > {b}.mean()",
)  # fmt: skip
DRAWN_CONDITIONS = ("random.random() < 0.5", "np.random.rand() < 0.5", "torch.rand(()) > 0.5")
EFFECTS = (
    "{a}.mul_(0.5)", "{a}[0] = {b}[1].detach()", "state['n'] += 1", "state['log'].append(len(state['log']))", "state['kept'] = {a}.detach().clone()",
    "with torch.no_grad():\n    {a}.add_(1)", "state['log'].append(parts({a})['b'][1])", "block.extra = state['n']", "state['log'].append(int(({a} > 0).sum()))",
    "{a}.add_({b}.detach())",
)  # fmt: skip


class Writer:
    """Writes a program, by a seed.

    Args:
        draw: by which it draws.
        random: whether the program draws, too.
    """

    def __init__(self, draw: random.Random, draws: bool) -> None:
        self._draw, self._draws = draw, draws
        self._count = 0

    def text(self) -> str:
        """Return the program."""
        names = ["x"]
        lines = self.block(names, self._draw.randint(3, 7), 0)
        returned = ", ".join(self._draw.sample(names, min(len(names), 3)))
        return "def program(x, state, block):\n" + "\n".join("    " + line for line in [*lines, f"return [{returned}]"])

    def block(self, names: list[str], count: int, depth: int) -> list[str]:
        """Return statements, and add what they set for certain to the names."""
        lines: list[str] = []
        for _ in range(count):
            kinds = (
                [self.value, self.effect]
                if depth > 1
                else [self.value, self.effect, self.branch, self.loop, self.region]
            )
            weights = [4, 1] if depth > 1 else [5, 2, 2, 1, 1]
            lines += self._draw.choices(kinds, weights)[0](names, depth)
        return lines

    def value(self, names: list[str], depth: int) -> list[str]:
        """Return what gives a new name a value."""
        kinds, weights = [VALUES, LOST, ROWS, DRAWN if self._draws else VALUES], [5, 3, 1, 1]
        text = self._filled(self._draw.choice(self._draw.choices(kinds, weights)[0]), names)
        return [f"{self._new(names)} = {text}"]

    def effect(self, names: list[str], depth: int) -> list[str]:
        """Return what writes to something."""
        return self._filled(self._draw.choice(EFFECTS), names).splitlines()

    def branch(self, names: list[str], depth: int) -> list[str]:
        """Return a branch, both sides of which set a name."""
        drawn = self._draws and self._draw.random() < 0.3
        condition = self._filled(self._draw.choice(DRAWN_CONDITIONS if drawn else CONDITIONS), names)
        sides = []
        for _ in range(2):
            inner = list(names)
            sides.append((self.block(inner, self._draw.randint(1, 2), depth + 1), inner[-1]))
        target = self._new(names)
        lines = [f"if {condition}:"]
        for word, (side, last) in zip(["", "else:"], sides, strict=True):
            lines += [word] if word else []
            lines += ["    " + line for line in [*side, f"{target} = {last} * 1"]]
        return lines

    def loop(self, names: list[str], depth: int) -> list[str]:
        """Return a loop that changes a name."""
        target = self._new(names, self._draw.choice(names))
        n = self._draw.randint(1, 3)
        heads = (
            f"for step in range({n}):", f"for step, row in enumerate({target}.unbind()):", f"for step in [{n}, 2]:",
            f"for row, step in zip({target}, (1, 2)):", "for step in {'p': 1, 'q': 2}.values():",
            f"while {target}.abs().sum() < {n * 4}:", f"for step, row in enumerate({target}[{target} > 0]):",
            f"for step, (i, k) in enumerate(torch.nonzero({target} > {n} / 4)):",
        )  # fmt: skip
        head = self._draw.choice(heads)
        inner = [*names]
        body = self.block(inner, self._draw.randint(0, 2), depth + 1)
        if head.startswith("while"):
            body = [*body, f"{target} = {target}.abs() * 2 + 1"]
        else:
            body = [*body, f"{target} = ({target} + {inner[-1]}).tanh() * step"]
        return [f"{target} = {names[-2] if len(names) > 1 else names[0]} * 1", head, *["    " + line for line in body]]

    def region(self, names: list[str], depth: int) -> list[str]:
        """Return statements within a handler of errors, or under a setting."""
        a, target = self._draw.choice(names), self._new(names)
        inner = names[:-1]
        if self._draw.random() < 0.5:
            call = self._draw.choice([f"refuses({a})", f"refuses({a} * 2) + {a}", f"odd(refuses(-{a}))"])
            after = self.block(inner, 1, depth + 1)
            return [
                "try:", f"    {target} = {call}", "except ValueError as error:", "    state['log'].append(str(error))",
                *["    " + line for line in after], f"    {target} = {inner[-1]} + 1",
            ]  # fmt: skip
        head = self._draw.choice(
            ["with torch.no_grad():", "with torch.enable_grad():", "with torch.autocast('cpu', enabled=False):"]
        )
        body = self.block(inner, self._draw.randint(1, 2), depth + 1)
        return [head, *["    " + line for line in [*body, f"{target} = {inner[-1]} + {a}"]]]

    def _new(self, names: list[str], _: Any = None) -> str:
        self._count += 1
        names.append(f"v{self._count}")
        return names[-1]

    def _filled(self, text: str, names: list[str]) -> str:
        a, b = self._draw.choice(names), self._draw.choice(names)
        return text.replace("{a}", a).replace("{b}", b).replace("{n}", str(self._draw.randint(0, 3)))


NO_GRADIENT = object()
"""Nothing is differentiated, as a value that was saved was written to.

Eager refuses where it needs the value; a program has kept it. What ran before a program, for results of it that nobody
uses, is checked with the rest, so that there is no gradient where eager does not need the value.
"""


class Watched:
    """A program that runs eagerly, and is looked at: whether it writes to what autograd saved in it.

    Args:
        program: it.
    """

    def __init__(self, program: Any) -> None:
        self._program = program
        self.writes_to_saved = False

    def __call__(self, *args: Any) -> Any:
        saved: list[tuple[torch.Tensor, int]] = []

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            saved.append((tensor, tensor._version))
            return tensor

        try:
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
                return self._program(*args)
        finally:
            self.writes_to_saved = any([tensor._version != version for tensor, version in saved])
            saved.clear()  # the graph holds pack, which the garbage collector does not see


class Generated:
    """A program and its calls, by a seed.

    Args:
        seed: of it.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.threads = draw.random() < 0.1
        self.text = Writer(draw, not self.threads).text()
        self.seeds = [draw.randint(0, 3) for _ in range(5)]
        self.options = {"outcomes": draw.choice([0, 2, 8, 8]), "cache": draw.choice(["constant values"] * 2 + ["auto"])}

    def run(self, compiles: bool) -> list[Any]:
        """Return what comes of all calls."""
        program = self._program()
        return self._called([jit(program, fallback="split", **self.options) if compiles else program] * len(self.seeds))

    def writes_to_saved(self) -> list[bool]:
        """Return for each call whether it writes to what autograd saved in it."""
        programs = [Watched(self._program()) for _ in self.seeds]
        self._called(programs)
        return [program.writes_to_saved for program in programs]

    def _program(self) -> Any:
        space = dict(SPACE)
        exec(compile(self.text, "<program>", "exec"), space)
        return space["program"]

    def _called(self, programs: list[Any]) -> list[Any]:
        if not self.threads:
            state, block = world()
            calls = zip(programs, self.seeds, strict=True)
            return [called(program, seed, state, block) for program, seed in calls]
        worlds = [world() for _ in self.seeds]
        found: list[Any] = [None] * len(worlds)

        def work(at: int) -> None:
            found[at] = called(programs[at], self.seeds[at], *worlds[at], of_thread=True)

        threads = [threading.Thread(target=work, args=(at,)) for at in range(len(worlds))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found


def world() -> tuple[dict[str, Any], Block]:
    """Return what a program reads and writes beside its arguments."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return {"n": 1, "log": [], "kept": torch.ones(2, 3)}, Block()


def called(program: Any, seed: int, state: dict[str, Any], block: Block, of_thread: bool = False) -> list[Any]:
    """Call a program, and return everything that comes of it."""
    if not of_thread:
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
    leaf = torch.randn(2, 3, generator=torch.Generator().manual_seed(seed)).requires_grad_(seed != 3)
    x = leaf * 1
    try:
        results = program(x, state, block)
    except (ValueError, RuntimeError) as error:
        return [type(error).__name__, described(x), described(state)]
    found = [described(results), described(x), described(state), block.gate.calls, getattr(block, "extra", None)]
    total = sum([(t.double() * (i + 1)).sum() for i, t in enumerate(results) if t.requires_grad])
    if isinstance(total, torch.Tensor):
        try:
            total.backward()
        except RuntimeError:
            total = None
        found.append(NO_GRADIENT if total is None else [described(p.grad) for p in (leaf, *block.parameters())])
        block.zero_grad()
    if not of_thread:
        found += [torch.get_rng_state().sum().item(), random.getstate()[1][-1], np.random.get_state()[2]]
    return found


def described(value: Any) -> Any:
    """Return a value as what is compared."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone(), value.requires_grad, value.dtype
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [described(item) for item in value]
    return value


def compare(ours: Any, eager: Any, path: str = "") -> None:
    """Raise an ``AssertionError`` where two descriptions differ."""
    if eager is NO_GRADIENT:
        return
    assert type(ours) is type(eager), f"{path}: {ours} and {eager}"
    if isinstance(ours, torch.Tensor):
        torch.testing.assert_close(
            ours, eager, equal_nan=True, rtol=1e-4, atol=1e-5, msg=lambda text: f"{path}: {text}"
        )
    elif isinstance(ours, dict):
        assert list(ours) == list(eager), f"{path}: {list(ours)} and {list(eager)}"
        for key in ours:
            compare(ours[key], eager[key], f"{path}.{key}")
    elif isinstance(ours, (list, tuple)):
        assert len(ours) == len(eager), f"{path}: {ours} and {eager}"
        for i, (a, b) in enumerate(zip(ours, eager, strict=True)):
            compare(a, b, f"{path}.{i}")
    else:
        assert ours == eager, f"{path}: {ours} and {eager}"


def refused_too(ours: list[Any], eager: list[Any]) -> list[Any]:
    """Return what eager gives for a call, but for gradients that a program refuses."""
    refused = [i for i, found in enumerate(ours) if found is NO_GRADIENT]
    return [NO_GRADIENT if i in refused else found for i, found in enumerate(eager)]


def agrees_with_eager(seed: int) -> None:
    """Raise an ``AssertionError`` if a program does otherwise than in eager."""
    generated = Generated(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = generated.run(compiles=False)
        try:
            ours = generated.run(compiles=True)
            calls = zip(ours, expected, generated.writes_to_saved(), strict=True)
            compare(ours, [refused_too(found, eager) if writes else eager for found, eager, writes in calls])
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error}\n{generated.text}\n{vars(generated)}") from error
