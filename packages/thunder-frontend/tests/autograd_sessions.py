"""Random programs of several results, and what their users do with these in autograd: compared with eager.

Results are differentiated in random parts, by inputs and by one another, with hooks, retained gradients and writes in
place, once or again. Some differences are known and not looked at: in which order hooks on different results run; that
what a program saved is freed, and must be unchanged, as a whole; that where gradients of some tensors only are computed,
results that lead to none of them have their hooks called, and retain their gradients, all the same; and that second
derivatives do not pass hooks on results. PyTorch tells gradients by a result before or after its hooks changed them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from thunder_frontend import jit
from thunder_ir import ThunderError

VALUES = (
    "torch.sin({a})", "{a} * {b}", "{a} + {b}", "{a} @ {b}.t() @ {a}", "{a}.sum() * {b}", "{a}.relu()", "{a}.exp() * 0.1",
    "{a}.detach() * {b}", "torch.nn.functional.layer_norm({a}, (3,))", "{a}[0] + {b}", "{a}.clone()", "{a}.softmax(-1)",
    "torch.where({a} > 0, {a}, {b})",
)  # fmt: skip
VIEWS = ("{a}.view(-1).view(3, 3)", "{a}.t()")


@dataclass
class Looked:
    """What somebody saw of gradients of results in one pass.

    Args:
        hooks: gradients that hooks were called with, by the place of the result.
        retained: gradients, by the place of the result.
        how: what the pass computes.
    """

    hooks: dict[int, list[Tensor]]
    retained: dict[int, Tensor | None]
    how: str

    def comparable(self, expected: Looked) -> list[Any]:
        """Return what is to be as expected."""
        if self.how == "backward":
            return [self.hooks, self.retained]
        retained = {i: g for i, g in self.retained.items() if expected.retained[i] is not None}
        return [{i: self.hooks.get(i) for i in expected.hooks}, retained]


class Session:
    """What a user does with the results of a program, by a seed; what comes of it is in ``log``.

    Args:
        seed: of the program and of what is done.
    """

    def __init__(self, seed: int) -> None:
        self.seed, self.draw = seed, random.Random(seed)
        self.text, self.has_views = random_program(self.draw)
        space: dict[str, Any] = {"torch": torch}
        exec(compile(self.text, "<program>", "exec"), space)
        self.program, self.state = space["program"], self.draw.getstate()

    def run(self, program: Callable[..., Any]) -> tuple[list[Any], list[str]]:
        """Return what comes of it with this program, step by step, and what was done."""
        self.draw.setstate(self.state)
        torch.manual_seed(self.seed)
        self.log, self.steps = list[Any](), list[str]()
        self.seen: dict[int, list[Tensor]] = {}
        self.inputs = [
            torch.randn(3, 3, dtype=torch.float64, requires_grad=requires_grad)
            for requires_grad in (self.chance(0.8), True)
        ]
        given = list(self.inputs)
        if self.chance(0.3):
            given[0] = given[0] * 1.5
        try:
            self.results = list(program(*given))
            self.log += [(t.detach().clone(), t.requires_grad) for t in self.results]
            self.look()
            used = [self.used(i, t) for i, t in enumerate(self.results)]
            for _ in range(self.draw.randint(1, 4)):
                self.differentiate([t for t in used if t.requires_grad and self.chance(0.6)])
        except ThunderError:
            raise
        except RuntimeError as error:
            self.log.append(error)
        return self.log, self.steps

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return self.draw.random() < probability

    def look(self) -> None:
        """Look at the gradients of some results."""
        self.looked, self.hooked = set[int](), set[int]()
        for i, result in enumerate(self.results):
            if not result.requires_grad:
                continue
            if self.chance(0.25):
                result.retain_grad()
                self.looked.add(id(result))
                self.steps.append(f"results[{i}].retain_grad()")
            elif self.chance(0.2):
                factor = self.draw.choice([1.0, 2.0, -1.0])
                self.hooked.add(id(result))
                handle = result.register_hook(lambda g, i=i, factor=factor: self.hook(i, g) * factor)
                self.steps.append(f"results[{i}].register_hook(lambda g: g * {factor})")
                if self.chance(0.15):
                    handle.remove()
                    self.steps[-1] += ".remove()"

    def hook(self, place: int, gradient: Tensor) -> Tensor:
        """Be called with the gradient of a result."""
        self.seen.setdefault(place, []).append(gradient.detach().clone())
        return gradient

    def used(self, place: int, result: Tensor) -> Tensor:
        """Return what a result is used as."""
        how = self.draw.choice(["t", "t", "t", "t * 2", "t.sin()", "t.mul_(2)"])
        written = how == "t.mul_(2)" and (self.has_views or id(result) in self.looked or not result.requires_grad)
        how = "t" if written else how
        self.steps.append(f"results[{place}] as {how}")
        return eval(how, {"t": result})

    def differentiate(self, parts: list[Tensor]) -> None:
        """Differentiate a sum by something."""
        if not parts:
            return
        total = sum([(part * (i + 1)).sum() for i, part in enumerate(parts)])
        keeps, how = self.chance(0.75), self.draw.choice(["grad", "grad", "backward", "backward", "inputs"])
        some = [t for t in self.inputs if t.requires_grad and self.chance(0.7)]
        self.steps.append(f"{how} of {len(parts)} results{', kept' if keeps else ''}")
        if how == "backward":
            total.backward(retain_graph=keeps)
        elif how == "inputs":
            total.backward(inputs=some or self.inputs[1:], retain_graph=keeps)
        else:
            free = [t for t in self.results if t.requires_grad and id(t) not in self.hooked]
            wanted = some + [t for t in free if self.chance(0.6)]
            self.gradients(total, wanted or self.inputs[1:], keeps)
        self.log += [None if t.grad is None else t.grad.clone() for t in self.inputs]
        self.log.append(Looked(self.seen, {i: t.grad for i, t in enumerate(self.results) if id(t) in self.looked}, how))
        self.seen = {}
        for result in self.results:
            if id(result) in self.looked:
                result.grad = None

    def gradients(self, total: Tensor, wanted: list[Tensor], keeps: bool) -> None:
        """Note the gradients, and those of them."""
        again = self.chance(0.3) and not (self.looked or self.hooked)
        self.steps[-1] += (
            f" by {[next(i for i, t in enumerate([*self.inputs, *self.results]) if t is w) for w in wanted]}"
        )
        found = torch.autograd.grad(
            total, wanted, retain_graph=keeps or again, create_graph=again, allow_unused=True, materialize_grads=again
        )
        self.log += [g if g is None else g.detach().clone() for g in found]
        if again:
            self.steps[-1] += ", and again"
            square = sum([g.square().sum() for g in found]) + 0 * self.inputs[1].sum()
            by = [t for t in self.inputs if t.requires_grad]
            self.log += torch.autograd.grad(square, by, retain_graph=True, allow_unused=True, materialize_grads=True)


def random_program(draw: random.Random) -> tuple[str, bool]:
    """Return the text of a program and whether it has views."""
    names, lines = ["x", "w"], []
    has_views = draw.random() < 0.3
    for i in range(draw.randint(2, 6)):
        views = has_views and i > 0 and draw.random() < 0.3
        a, text = draw.choice(names[2:] if views else names[-3:]), draw.choice(VIEWS if views else VALUES)
        lines.append(f"v{i} = {text.format(a=a, b=draw.choice(names))}")
        names.append(f"v{i}")
    returned = [draw.choice(names[2:]) for _ in range(draw.randint(2, 4))]
    if draw.random() < 0.5:
        returned.append(f"{draw.choice(names[2:])}.sum()")
    lines.append(f"return {', '.join(returned)},")
    return "def program(x, w):\n" + "\n".join("    " + line for line in lines) + "\n", has_views


def is_of_whole(found: Any) -> bool:
    """Whether something is the error that what was saved is gone or was changed, which may be another part of it."""
    return isinstance(found, RuntimeError) and any([s in str(found) for s in ("second time", "modified by an inplace")])


def agrees_with_eager(seed: int) -> None:
    """Do the same with the results of an eager and of a compiled program.

    Raises:
        AssertionError: something else comes of it.
    """
    session = Session(seed)
    (expected, steps), (found, _) = session.run(session.program), session.run(jit(session.program))
    where = "\n".join([f"seed {seed}", session.text, *steps])
    for theirs, ours in zip(expected, found, strict=False):
        if is_of_whole(ours) or is_of_whole(theirs):
            return
        if isinstance(ours, RuntimeError) or isinstance(theirs, RuntimeError):
            assert type(ours) is type(theirs), f"{ours!r}, where eager comes to {theirs!r}\n{where}"
            return
        if isinstance(theirs, Looked):
            ours, theirs = ours.comparable(theirs), theirs.comparable(theirs)
        try:
            torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4, equal_nan=True)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{where}\n{ours}, where eager comes to {theirs}") from error
    assert len(expected) == len(found), where
