"""Things that a program may read, each with changes to it: what random tests for stale results are made of.

A :class:`Case` is text: what is set up, what the program does with it, and changes that are made between calls. Each is
executed in the globals of the program, so that a compiled and an eager copy of the same world can be kept in step.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import csv
import decimal
import enum
import functools
import gc
import locale
import math
import os
import resource
import socket
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules import module as modules

from thunder_frontend import jit
from thunder_frontend._external_state.watch import EAGER_RAISES_TOO
from thunder_ir import ThunderError

PRELUDE = """
import collections, contextlib, copy, dataclasses, enum, functools, itertools, math, operator, types
import torch
from torch import nn
NAMED = {}
CONTEXT = contextlib.nullcontext
def tensor(*values):
    return torch.tensor([float(v) for v in values])
"""


@dataclass(frozen=True)
class Case:
    """One thing that a program reads.

    Args:
        name: for messages.
        setup: statements that make it.
        body: statements of the program, which has ``x`` and updates ``y``, both of shape ``[3]``.
        changes: statements, each made between two calls.
    """

    name: str
    setup: str
    body: str
    changes: tuple[str, ...]


class Scene:
    """The globals of one program made of several cases.

    Args:
        cases: what it reads, in order.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.scope: dict[str, Any] = {"__name__": __name__}
        self.execute(PRELUDE)
        for case in cases:
            self.execute(case.setup)
        parameters = ", ".join(["x", *self.scope["NAMED"]])
        lines = [line for case in cases for line in case.body.strip("\n").splitlines()]
        body = "\n".join("    " + line for line in ["y = x", *lines, "return y"])
        self.text = f"def program({parameters}):\n{body}\n"
        self.execute(self.text)
        self.program = self.scope["program"]

    def execute(self, text: str) -> None:
        """Run statements in the program's globals."""
        exec(text, self.scope)

    def call(self, function: Any) -> Any:
        """Call the program, or what it was compiled to, on this scene's arguments."""
        with self.scope["CONTEXT"](), contextlib.nullcontext():
            try:
                return function(torch.arange(3.0), **self.scope["NAMED"])
            except EAGER_RAISES_TOO as error:
                return error
            except ThunderError:
                raise
            except Exception as error:  # the program's own: compared
                return error


CASES: list[Case] = []
LINEAR = "torch.manual_seed(0)\n{0} = nn.Linear(3, 3)"


def case(name: str, setup: str, body: str, *changes: str) -> None:
    """Add a case."""
    CASES.append(Case(name, setup, body, changes))


PI, DIRECTORY = math.pi, os.getcwd()
REPLACED = {
    (module, name): getattr(module, name)
    for module, names in (
        (torch, "sin relu layer_norm embedding norm"),
        (torch.nn.functional, "scaled_dot_product_attention"),
        (torch._C._nn, "gelu"),
    )
    for name in names.split()
}
"""Functions that cases replace."""
PATCHED = (
    torch.Tensor, torch.nn.Parameter, torch.nn.Module, torch.nn.Linear, torch.nn.Sequential, enum.Enum,
    collections.Counter, torch.distributions.Normal, torch.distributions.Distribution,
)  # fmt: skip
"""Classes of libraries that cases change."""
AS_THEY_WERE = [dict(vars(cls)) for cls in PATCHED]
FUNCTIONS = (torch.nn.functional.leaky_relu, torch.nn.functional.softsign, torch.nn.Linear.forward)
MADE_OF = [(f.__code__, f.__defaults__) for f in FUNCTIONS]


def restore() -> None:
    """Put back what cases change of the whole process."""
    math.pi = PI
    for (module, name), function in REPLACED.items():
        setattr(module, name, function)
    vars(torch._VF).pop("dropout", None)
    for cls, before in zip(PATCHED, AS_THEY_WERE, strict=True):
        for name in [name for name in vars(cls) if name not in before]:
            delattr(cls, name)
        for name, value in before.items():
            if vars(cls).get(name) is not value:
                setattr(cls, name, value)
    for function, (code, defaults) in zip(FUNCTIONS, MADE_OF, strict=True):
        function.__code__, function.__defaults__ = code, defaults
    torch.set_default_dtype(torch.float32)
    torch.use_deterministic_algorithms(False)
    torch.set_float32_matmul_precision("highest")
    torch._C._set_cudnn_benchmark(False)  # the attribute cannot be set once torch.testing._internal is imported
    torch.backends.cuda.enable_math_sdp(True)
    torch.set_autocast_dtype("cpu", torch.bfloat16)
    modules._global_forward_hooks.clear()
    modules._global_forward_pre_hooks.clear()
    decimal.setcontext(decimal.Context())
    os.chdir(DIRECTORY)
    sys.modules.pop("thunder_scene", None)
    vars(builtins).pop("thunder_scene", None)
    for name in ("THUNDER_SCENE", "THUNDER_SCENE2", "TZ"):
        os.environ.pop(name, None)
    restore_settings()


SETTINGS = (
    (sys.setrecursionlimit, (sys.getrecursionlimit(),)),
    (gc.set_threshold, gc.get_threshold()),
    (csv.field_size_limit, (csv.field_size_limit(),)),
    (socket.setdefaulttimeout, (None,)),
    (resource.setrlimit, (resource.RLIMIT_NOFILE, resource.getrlimit(resource.RLIMIT_NOFILE))),
    (locale.setlocale, (locale.LC_NUMERIC, "C")),
    (time.tzset, ()),
    (functools.partial(torch.set_printoptions, profile="default"), ()),
)
"""What the process had set, by the functions that set it."""


def restore_settings() -> None:
    """Put back what cases set in modules written in C."""
    for function, args in SETTINGS:
        function(*args)
    if numpy := sys.modules.get("numpy"):
        numpy.seterr(divide="warn", over="warn")
        numpy.seterrcall(None)
        numpy.set_printoptions(precision=8, suppress=False)


def same(ours: Any, eagers: Any) -> bool:
    """Whether two results, or the exceptions in their place, are the same."""
    if isinstance(ours, Exception) or isinstance(eagers, Exception):
        return type(ours) is type(eagers) or isinstance(ours, EAGER_RAISES_TOO) and isinstance(eagers, Exception)
    facts = ("dtype", "shape", "requires_grad")
    if any(getattr(ours, f) != getattr(eagers, f) for f in facts) or ours.stride() != eagers.stride():
        return False
    return ours.is_inference() == eagers.is_inference() and torch.allclose(ours, eagers, rtol=1e-5, equal_nan=True)


def never_stale(cases: Sequence[Case], steps: Iterable[str], calls: int = 2, **options: Any) -> None:
    """Compare a compiled program with an eager twin, each in a world of its own, after each of some changes.

    Args:
        cases: what the program reads.
        steps: statements, executed in both worlds.
        calls: how many calls follow each step.
        options: how the program is compiled.
    """
    eager, ours = Scene(cases), Scene(cases)
    compiled = jit(ours.program, **options)
    for step in ("pass", *steps):
        for scene in (eager, ours):
            with contextlib.suppress(Exception):  # a change that makes no sense now makes none in either world
                scene.execute(step)
        for _ in range(calls):
            expected, result = eager.call(eager.program), ours.call(compiled)
            if not same(result, expected):
                raise AssertionError(
                    f"after {step!r}, eager says {expected!r} and the compiled program {result!r}\n{ours.text}"
                )
