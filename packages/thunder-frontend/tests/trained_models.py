"""A small model, and what its user does to it between steps of training: random sequences, compared with eager.

The same seed does the same to an eager and to a compiled model. After each step results, gradients, parameters, buffers
and all that the model keeps must be the same.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.utils import parametrize

from thunder_frontend import jit

SETTINGS = {"activation": "gelu", "scale": 1.0}
WIDTH = 6


class Block(nn.Module):
    """A residual block with settings of several kinds, and a count of its calls."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear, self.drop = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.Dropout(0.1)
        self.factor, self.calls, self.last = 1.0, 0, None
        self.order, self.residual = ["norm", "linear"], True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        h = x
        for name in self.order:
            h = getattr(self, name)(h)
        h = self.drop(getattr(F, SETTINGS["activation"])(h)) * self.factor
        self.last = h.detach().mean()
        return x + h if self.residual else h


class OtherBlock(Block):
    """A class that blocks may be given later."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 0.1 * self.linear(x)


class Net(nn.Module):
    """Blocks between two projections, with running statistics, and notes of what happened."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.head = nn.Linear(4, WIDTH), nn.Linear(WIDTH, 4)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.norm = nn.BatchNorm1d(WIDTH)
        self.register_buffer("average", torch.zeros(WIDTH))
        self.left_out: set[int] = set()
        self.sizes: list[int] = []
        self.notes: dict[str, torch.Tensor] = {}

    def forward(self, x: torch.Tensor, mask: Any = None, factor: Any = None) -> torch.Tensor:
        h = self.first(x)
        for i, block in enumerate(self.blocks):
            if i not in self.left_out:
                h = block(h)
        h = self.norm(h)
        if self.training:
            self.average.lerp_(h.detach().mean(0), 0.1)
        self.notes["norm"] = h.detach().norm()
        self.sizes.append(h.shape[0])
        if len(self.sizes) > 3:
            del self.sizes[0]
        out = self.head(h if mask is None else h * mask) * SETTINGS["scale"]
        return out if factor is None else out * factor


class Symmetric(nn.Module):
    """A parametrization."""

    def forward(self, weight: torch.Tensor) -> torch.Tensor:
        return weight + weight.t()


class User:
    """Has a model, compiled or not, and calls it in some way.

    Args:
        compile_: what is made of the model.
    """

    def __init__(self, compile_: Callable[[nn.Module], Any]) -> None:
        torch.manual_seed(0)
        self.compile = compile_
        self.model = Net()
        self.callee = compile_(self.model)
        self.saved = copy.deepcopy(self.model.state_dict())
        self.optimizer: torch.optim.Optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01)
        self.handles: list[Any] = []
        self.mode: Callable[[], Any] = nullcontext
        self.given = "x"
        self.rows = 3

    def step(self, seed: int) -> list[torch.Tensor]:
        """Call the model, and go backward; return what came of it."""
        generator = torch.Generator().manual_seed(seed)
        dtype = self.model.first.weight.dtype
        x = torch.randn(self.rows, 4, generator=generator).to(dtype).requires_grad_(self.given == "gradient")
        mask = (torch.rand(self.rows, WIDTH, generator=generator) > 0.3).to(dtype)
        args = {"mask": (mask,), "factor": (None, 0.5 * seed), "both": (mask, torch.tensor(2.0, dtype=dtype))}
        torch.manual_seed(seed)
        with self.mode():
            result = self.callee(x, *args.get(self.given, ()))
        if result.requires_grad:
            result.square().mean().backward()
        return [result.detach(), torch.rand(1), *([] if x.grad is None else [x.grad])]

    def state(self) -> dict[str, Any]:
        """Return all that the model keeps."""
        tensors = self.model.state_dict(keep_vars=True)
        found: dict[str, Any] = {name: value.detach().clone() for name, value in tensors.items()}
        for name, value in tensors.items():
            found[f"{name} gradient"] = (value.requires_grad, value.grad if value.grad is None else value.grad.clone())
        found["kept"] = (list(self.model.sizes), dict(self.model.notes))
        found["blocks"] = [(b.calls, b.last, b.training) for b in self.model.blocks]
        return found

    def block(self, draw: random.Random) -> Any:
        """Return one of the blocks."""
        return draw.choice(list(self.model.blocks))


ACTIONS: list[Callable[[User, random.Random], Any]] = []


def action(function: Callable[[User, random.Random], Any]) -> Callable[[User, random.Random], Any]:
    """File what a user may do between two steps."""
    ACTIONS.append(function)
    return function


@action
def modes(user: User, draw: random.Random) -> None:
    draw.choice([user.model, user.block(draw)]).train(draw.random() < 0.5)


@action
def freezes(user: User, draw: random.Random) -> None:
    parameters = list(user.model.parameters())
    for parameter in parameters if draw.random() < 0.3 else [draw.choice(parameters)]:
        parameter.requires_grad_(not parameter.requires_grad)


@action
def settings(user: User, draw: random.Random) -> None:
    block = user.block(draw)
    draw.choice([
        lambda: SETTINGS.update(activation=draw.choice(["gelu", "relu", "tanh"])),
        lambda: SETTINGS.update(scale=draw.choice([1.0, 0.5, 2])),
        lambda: setattr(block, "factor", draw.choice([1.0, 0.5, 2, True])),
        lambda: setattr(block, "residual", not block.residual),
        lambda: setattr(block, "order", draw.choice([["norm", "linear"], ["linear", "norm"], ["linear"]])),
        lambda: block.order.reverse(),
        lambda: setattr(user.model.norm, "momentum", draw.choice([0.1, 0.5, None])),
        lambda: user.model.left_out.symmetric_difference_update({draw.randrange(3)}),
        lambda: user.model.sizes.clear(),
        lambda: setattr(user.model, "notes", {}),
    ])()  # fmt: skip


def halved(_: nn.Module, gradients: Any, __: Any) -> tuple[Any, ...]:
    return tuple([None if gradient is None else gradient * 0.5 for gradient in gradients])


@action
def hooks(user: User, draw: random.Random) -> None:
    block = user.block(draw)
    parameters = [p for p in user.model.parameters() if p.requires_grad]
    if user.handles and draw.random() < 0.4:
        user.handles.pop(draw.randrange(len(user.handles))).remove()
        return
    ways: list[Callable[[], Any]] = [
        lambda: block.register_forward_hook(lambda _, args, result: result * 2),
        lambda: block.register_forward_pre_hook(lambda _, args: (args[0] + 0.5,)),
        lambda: block.register_full_backward_hook(halved),
    ]
    if parameters:
        ways.append(lambda: draw.choice(parameters).register_hook(lambda gradient: gradient * 3))
    user.handles.append(draw.choice(ways)())


@action
def exchanges(user: User, draw: random.Random) -> None:
    torch.manual_seed(draw.randrange(99))
    model, block, blocks = user.model, user.block(draw), user.model.blocks
    one, other = draw.randrange(len(blocks)), draw.randrange(len(blocks))
    draw.choice([
        lambda: setattr(block, "linear", nn.Linear(WIDTH, WIDTH, bias=draw.random() < 0.5)),
        lambda: setattr(model.head, "weight", nn.Parameter(torch.randn(4, WIDTH))),
        lambda: setattr(model.head.weight, "data", torch.randn(4, WIDTH).to(model.head.weight.dtype)),
        lambda: setattr(block, "drop", draw.choice([nn.Identity(), nn.Dropout(0.3)])),
        lambda: setattr(block, "__class__", OtherBlock if type(block) is Block else Block),
        lambda: setattr(model.norm, "running_mean", torch.ones_like(model.norm.running_mean)),
        lambda: blocks.append(Block()) if len(blocks) < 5 else None,
        lambda: blocks.pop(len(blocks) - 1) if len(blocks) > 1 else None,
        lambda: blocks.__setitem__(one, blocks[other]),
        lambda: setattr(blocks[one].linear, "bias", blocks[other].linear.bias),
    ])()  # fmt: skip


@action
def writes(user: User, draw: random.Random) -> None:
    model = user.model
    draw.choice([
        lambda: model.head.weight.data.mul_(0.9),
        lambda: model.zero_grad(set_to_none=draw.random() < 0.5),
        lambda: user.optimizer.step(),
        lambda: model.norm.reset_running_stats(),
        lambda: model.load_state_dict(user.saved, strict=False),
        lambda: model.load_state_dict({k: v.clone() for k, v in model.state_dict().items()}, assign=True),
        lambda: model.to(draw.choice([torch.float32, torch.float64])),
        lambda: setattr(user, "optimizer", torch.optim.AdamW(model.parameters(), lr=0.01)),
    ])()  # fmt: skip


@action
def parametrizes(user: User, draw: random.Random) -> None:
    linear = user.block(draw).linear
    if parametrize.is_parametrized(linear):
        parametrize.remove_parametrizations(linear, "weight", leave_parametrized=draw.random() < 0.5)
    else:
        parametrize.register_parametrization(linear, "weight", Symmetric())


@action
def ways_to_call(user: User, draw: random.Random) -> None:
    draw.choice([
        lambda: setattr(user, "mode", draw.choice([nullcontext, torch.no_grad, torch.inference_mode])),
        lambda: setattr(user, "given", draw.choice(["x", "mask", "factor", "both", "gradient"])),
        lambda: setattr(user, "rows", draw.choice([2, 3, 5])),
    ])()  # fmt: skip


@action
def copies(user: User, draw: random.Random) -> None:
    user.model, user.handles = copy.deepcopy(user.model), []
    user.callee = user.compile(user.model)
    user.optimizer = torch.optim.SGD(user.model.parameters(), lr=0.01)


def told(seed: int, compile_: Callable[[nn.Module], Any], steps: int) -> list[Any]:
    """Return what comes of each step; after an error, which leaves eager's model half-changed, there are no more."""
    SETTINGS.update(activation="gelu", scale=1.0)
    user, draw, found = User(compile_), random.Random(seed), []
    for step in range(steps):
        try:
            for act in draw.choices(ACTIONS, k=draw.choice([0, 1, 1, 2])):
                act(user, draw)
            found.append((user.step(step), user.state()))
        except Exception as error:
            return [*found, error]
    return found


def agrees_with_eager(seed: int, steps: int = 10) -> None:
    """Do the same to an eager and to a compiled model.

    Raises:
        AssertionError: they differ.
    """
    options = random.Random(seed).choice([{}, {}, {"cache": "symbolic values"}])
    expected, found = told(seed, lambda model: model, steps), told(seed, lambda model: jit(model, **options), steps)
    assert len(expected) == len(found), f"eager ended with {expected[-1]!r}, and the compiled model with {found[-1]!r}"
    for step, (eagers, ours) in enumerate(zip(expected, found, strict=True)):
        if isinstance(eagers, Exception):
            assert isinstance(ours, type(eagers)), f"step {step}: {ours!r}, where eager raises {eagers!r}"
        else:
            torch.testing.assert_close(ours, eagers, rtol=2e-4, atol=2e-4, msg=lambda text, n=step: f"step {n}: {text}")
