"""Random programs that leave state behind: modes, flags, random numbers, hooks, retained gradients, views, attributes.

Each is called several times, eagerly and compiled, in a world of its own; between the calls settings are put back, or not.
What is compared: results and what autograd says of them, PyTorch's settings, the state of the generator of random numbers,
what the program wrote to, and what comes of writing to results and differentiating them.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

import torch
from programs import Refused

from thunder_frontend import jit
from thunder_guards.settings import SETTINGS, settings_now
from thunder_ir import ThunderError

SETTING = (
    "torch.set_grad_enabled({flag})", "torch.no_grad().__enter__()", "torch.enable_grad().__enter__()",
    "torch.autocast('cpu', torch.bfloat16).__enter__()", "torch.set_autocast_enabled('cpu', {flag})",
    "torch.set_autocast_dtype('cpu', torch.float16)", "torch.set_autocast_cache_enabled({flag})",
    "torch.set_default_dtype(torch.float64 if {flag} else torch.float32)", "torch.use_deterministic_algorithms({flag}, warn_only=True)",
    "torch.set_num_threads(1 + {flag})", "torch.set_float32_matmul_precision('high' if {flag} else 'highest')",
    "torch.backends.cudnn.benchmark = {flag}", "torch.backends.cuda.enable_flash_sdp({flag})", "torch.autograd.set_detect_anomaly({flag})",
    "torch.set_printoptions(precision=3)", "torch.set_default_device('cpu' if {flag} else None)", "torch.set_warn_always({flag})",
    "torch.backends.cudnn.deterministic = not torch.backends.cudnn.deterministic", "torch.set_num_threads(3 - torch.get_num_threads())",
    "torch.set_grad_enabled(not torch.is_grad_enabled())", "torch.utils.deterministic.fill_uninitialized_memory = {flag}",
    "torch.backends.mkldnn.deterministic = {flag}", "torch.autograd.set_multithreading_enabled({flag})",
)  # fmt: skip
RANDOM = (
    "torch.manual_seed({n})", "v{i} = {a} + torch.rand(2, 3)", "state = torch.get_rng_state()\nv{i} = {a} * torch.randn(2, 3)\ntorch.set_rng_state(state)",
    "v{i} = torch.nn.functional.dropout({a}, 0.5)", "torch.rand(3)", "box.generator.manual_seed({n})", "v{i} = {a} * torch.rand((), generator=box.generator)",
)  # fmt: skip
VALUES = (
    "v{i} = {a} * {b}", "v{i} = {a}.sin()", "v{i} = {a} + torch.ones(3)", "v{i} = {a}.view(3, 2).view(2, 3)", "v{i} = {a}.t().t()", "v{i} = {a}[:]",
    "v{i} = {a}.detach()", "v{i} = ({a} @ net.weight.t())", "v{i} = net({a})", "v{i} = {a}.clone()", "v{i} = {a} * (2 if torch.is_grad_enabled() else 3)",
    "v{i} = {a} * torch.get_num_threads()", "v{i} = {a}.unbind()[0].expand(2, 3)", "v{i} = {a} + (1 if torch.backends.cudnn.benchmark else 0)",
    "with torch.no_grad():\n    v{i} = {a} * 2", "with torch.autocast('cpu', torch.bfloat16):\n    v{i} = net({a})", "with torch.enable_grad():\n    v{i} = {a} * 2",
    "with torch.inference_mode():\n    box.seen = {a}.sum()\nv{i} = {a} * 2", "v{i} = {a}.view(-1).view(2, 3)", "v{i} = {a}.relu()",
)  # fmt: skip
EFFECTS = (
    "hook({a}, box.hooks) if {a}.requires_grad else None", "{a}.retain_grad() if {a}.requires_grad and {a} is not x else None",
    "box.value = {a}", "box.count += 1", "box.items.append({a}.detach().clone())", "net.weight.grad = None", "box.view = {a}[0]", "{a}.mul_(2)", "{a}[0] = {b}[1].detach()",
    "net.extra = {a}", "with torch.no_grad():\n    {a}.add_(1)", "{a}.tag = {n}", "del box.items[:1]", "box.table['k'] = {a}",
)  # fmt: skip
FORBIDDEN = "autograd forbids it"
NOT_DIFFERENTIATED = ("inplace", "in-place", "autocast::prioritize")
"""What errors say that eager's autograd raises where we may know the derivative: after writes, and where autocast, left on
with another lower dtype, meets both dtypes."""
USES = (
    "pass",
    "results[0].mul_(2)",
    "results[-1].add_(1)",
    "results[0].detach_()",
    "results[-1][0].zero_()",
    "results[0].view(-1).mul_(3)",
)


class World:
    """What a program reads and writes beside its arguments."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.net = torch.nn.Linear(3, 3)
        self.box = SimpleNamespace(
            hooks=[], items=[], count=0, value=None, view=None, table={}, seen=None, generator=torch.Generator()
        )
        self.box.generator.manual_seed(1)


def hook(tensor: torch.Tensor, seen: list[Any]) -> None:
    """Note the shapes of gradients that come to a tensor."""
    tensor.register_hook(lambda gradient: seen.append(gradient.shape))


def hook_in_eager(tensor: torch.Tensor, seen: list[Any]) -> None:
    """The same, once PyTorch wrote the history of a view again: hooks on one that was not asked crash the process."""
    assert tensor.grad_fn is not None
    hook(tensor, seen)


class Generated:
    """A program, and what is done before and after its calls, by a seed.

    Args:
        seed: of it.
    """

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        names, lines = ["x"], []
        for i in range(draw.randint(3, 8)):
            kind = draw.choices([SETTING, RANDOM, VALUES, EFFECTS], [3, 2, 4, 3])[0]
            given = {
                "a": draw.choice(names),
                "b": draw.choice(names),
                "i": i,
                "n": draw.randint(0, 9),
                "flag": draw.random() < 0.5,
            }
            text = draw.choice(kind).format(**given)
            lines += text.splitlines()
            if f"v{i} = " in text:
                names.append(f"v{i}")
        lines.append(f"v = {names[-1]} * 2")
        lines.append(f"return [{', '.join(draw.sample(['v', *names], min(len(names), 3)))}]")
        body = "\n".join("    " + line for line in lines)
        self.text = f"def program(x, box, net):\n{body}\n"
        self.calls = [(draw.random() < 0.5, draw.choice(SETTING[:2] + SETTING[7:12]).format(flag=draw.random() < 0.5)
                       if draw.random() < 0.3 else "pass", draw.choice(USES), draw.random() < 0.7) for _ in range(4)]  # fmt: skip

    def run(self, compiles: bool) -> list[Any]:
        """Return what comes of all calls."""
        world, log, before = World(), list[Any](), settings_now()
        space: dict[str, Any] = {"torch": torch, "hook": hook if compiles else hook_in_eager}
        exec(compile(self.text, "<program>", "exec"), space)
        program = jit(space["program"], fallback="error") if compiles else space["program"]
        try:
            for puts_back, change, use, differentiates in self.calls:
                if puts_back:
                    put_back(before)
                exec(change)
                self.call(program, world, use, differentiates, log)
        finally:
            put_back(before)
        return log

    def call(self, program: Any, world: World, use: str, differentiates: bool, log: list[Any]) -> None:
        """Call it once, and note everything."""
        with torch.enable_grad():
            leaf = torch.linspace(-1, 1, 6, dtype=torch.float32, device="cpu").reshape(2, 3).requires_grad_()
            x = leaf * 1
        try:
            results = program(x, world.box, world.net)
        except ThunderError:
            raise
        except Exception as error:
            log.append(f"raised {isinstance(error, RuntimeError)}")
            log.append(told(settings_now()))
            return
        log.append([told(settings_now()), torch.get_rng_state().sum(), world.box.generator.get_state().sum()])
        log.append([described(t) for t in results])
        log.append(
            [
                described(t)
                for t in (x, world.box.value, world.box.view, world.box.table.get("k"), world.net.__dict__.get("extra"))
            ]
        )
        log.append([world.box.count, len(world.box.items), [getattr(t, "tag", None) for t in results]])
        with torch.enable_grad():
            try:
                exec(use, {"results": results})
                log.append([described(t) for t in results])
                if differentiates:
                    total = sum([(t.double() * (i + 1)).sum() for i, t in enumerate(results) if t.requires_grad])
                    if isinstance(total, torch.Tensor):
                        total.backward()
            except RuntimeError as error:
                log.append("changed" if any([words in str(error) for words in NOT_DIFFERENTIATED]) else "raised")
                return
        log.append(
            [
                copied(leaf.grad),
                copied(world.net.weight.grad),
                [copied(t.grad) for t in results if t.retains_grad],
                len(world.box.hooks),
            ]
        )


def put_back(settings: tuple[Any, ...]) -> None:
    """Put back all settings."""
    for setting, value in zip(SETTINGS, settings, strict=True):
        if setting.now() != value:
            setting.set(value)


def told(settings: tuple[Any, ...]) -> str:
    """Return settings as a text."""
    return str([f"{s.name}={v}" for s, v in zip(SETTINGS, settings, strict=True)])


def copied(tensor: Any) -> Any:
    """Return a copy of a tensor without what autograd knows of it."""
    return None if tensor is None else tensor.detach().clone()


def described(tensor: Any) -> Any:
    """Return what is seen of a tensor."""
    if tensor is None:
        return None
    try:
        facts = [tensor.requires_grad, tensor.is_leaf, tensor.is_inference()]
    except RuntimeError:
        facts = [FORBIDDEN]
    return [copied(tensor), str(tensor.dtype), facts]


def agrees_with_eager(seed: int) -> None:
    """Call a random program eagerly and compiled.

    Raises:
        AssertionError: something else comes of it.
        ThunderError: it is refused.
    """
    generated = Generated(seed)
    expected, found = generated.run(compiles=False), generated.run(compiles=True)
    where = f"seed {seed}\n{generated.text}\n{generated.calls}"
    # eager sums up the gradients of a weight that autocast cast once in low precision, a program those of several casts
    precise = 5e-2 if "autocast" in generated.text else 1e-4
    for step, (ours, theirs) in enumerate(zip(found, expected, strict=False)):
        # where eager's autograd forbids what it did, we may know the derivative
        if theirs == "changed" or FORBIDDEN in str(theirs):
            return
        if ours == "changed" or FORBIDDEN in str(ours) and FORBIDDEN not in str(theirs):
            raise Refused("autograd forbids to write to a result of which the program computes others, or its base")
        assert same(ours, theirs, precise), f"step {step}: {ours}, where eager comes to {theirs}\n{where}"
        if str(theirs).startswith("raised"):  # where an operation raises as it runs, a program leaves all as it was
            return
    assert len(expected) == len(found), where


def same(ours: Any, theirs: Any, precise: float) -> bool:
    """Whether two logs say the same; numbers of some dtypes up to ``precise``."""
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all([same(a, b, precise) for a, b in zip(ours, theirs, strict=True)])
    if isinstance(ours, torch.Tensor) and isinstance(theirs, torch.Tensor):
        alike = ours.shape == theirs.shape and ours.dtype == theirs.dtype
        precise = precise if ours.dtype in (torch.float32, torch.float64) else 5e-2
        return alike and torch.allclose(ours.double(), theirs.double(), rtol=precise, atol=precise, equal_nan=True)
    return type(ours) is type(theirs) and bool(ours == theirs)
