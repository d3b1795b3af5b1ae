"""Random programs that compute with arrays of NumPy among their arguments, called with others each time.

``tools/soundness_sweep.py --only arrays`` tries many more.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import torch
from container_programs import agree, described

from thunder_frontend import jit
from thunder_guards.errors import ThunderError

STATEMENTS = (
    # new arrays
    "{i} = {i} + {n}", "{i} = {i} * {j}", "{i} = {i} % {n}", "{i} = np.sort({i})", "{i} = {i}[::2]", "{i} = {i}[1:]",
    "{i} = {i}.copy()", "{i} = np.concatenate([{i}, {j}])", "{i} = np.where({i} > {n}, {i}, {j})", "{i} = {i}[{j} % 3]",
    "{f} = {f} * {n}", "{f} = {f} / ({f}.sum() + 1.0)", "{f} = np.exp(-{f})", "{f} = {f}.clip(0, 1)", "{f} = {f}[:3]",
    "{f} = {i}.astype(np.float64)", "{f} = {f} + {i}[: len({f})]", "{i} = {f}.astype(np.int64)", "{i} = {j}",
    "{i} = np.arange(len({j})) + {i}[0]", "{f} = np.linspace(0, 1, 4) * {f}[0]", "{i} = {i}[{i} > {n}]",
    "{i} = np.cumsum({i})", "{i} = {i}.reshape(-1)", "{i} = np.abs({i} - {n})", "{f} = {f}.astype(np.float32)",
    # written in place
    "{i} += {n}", "{i}[0] = {n}", "{i}[1:] = {j}[1:]", "{i}.sort()", "{f} *= 2", "{f}[0] = {i}[0]", "{i}[{j} % 3] += 1",
    "np.add.at({i}, {j} % 3, 1)", "{i}.fill({n})", "v = {i}[1:]\nv += 1", "np.maximum({f}, 0.5, out={f})",
    # tensors
    "x = x[{i} % 4] + 0", "x = x[:, {i} % 3] + 0", "x = x * torch.from_numpy({f})[0]", "x = x + torch.tensor({i})[0]",
    "x = x + torch.as_tensor({f}).sum()", "x = x.clone()\nx[{i} % 3] = {n}", "x = x + float({f}[0])", "x = x * len({i})",
    "x = x + {i}[0].item()", "x = x[{i}[0] % 3] * 1 + x", "x = x * int({i}.max())", "x = x + {f}.mean().item()",
    "x = x[{i}.tolist()[0] % 2 :]", "t = torch.from_numpy({i})\nt += 1\nx = x + t[0]",
    "t = torch.from_numpy({i}[1:])\nt += 1\nx = x * t[0]", "t = torch.as_tensor({f}.reshape(-1, 1))\nt.mul_(2)",
    "out.append(torch.from_numpy({i}[::2]))", "x = x[torch.as_tensor({i}) % 3]",
    # what Python sees
    "if {i}[0] > {n}:\n    x = x * 2", "if ({i} > 0).all():\n    x = x + 1", "for v in {i}[:2]:\n    x = x + v",
    "out.append(list({i}.shape))", "out.append({i}.tolist())", "out.append({i})", "out.append({f} + 1)", "out.append({i}.dtype.str)",
    "out.append({i} is {j})", "out.append(float({f}.sum()))", "out.append(str({i}[0]))", "d['k'] = {i}", "out.append(d['k'])",
    "{i} = d['k']", "out.append(np.array_equal({i}, {j}))", "out.append(isinstance({i}, np.ndarray))", "d['k'][0] = {n}",
    "out.append({i}[0] in (1, 2, 3))", "out.append((np.random.rand() * 0) + {f}[0])", "out.append(bool({i}[0] == {n}))",
)  # fmt: skip


def program(draw: random.Random) -> str:
    """Return the text of a random program."""
    lines = ["out = []"]
    for _ in range(draw.randint(2, 6)):
        names = {"i": draw.choice("ab"), "j": draw.choice("ab"), "f": draw.choice("fg"), "n": draw.randint(1, 3)}
        lines += draw.choice(STATEMENTS).format(**names).splitlines()
    body = "\n".join("    " + line for line in [*lines, "return x, a, out"])
    return f"def program(x, a, b, f, g, d):\n{body}\n"


def arguments(draw: random.Random, text: str) -> list[Any]:
    """Return what a call is given: in most, arrays of the same shapes and dtypes as in others.

    Args:
        draw: makes the choices.
        text: of the program.
    """
    rng = np.random.RandomState(draw.randint(0, 9999))
    size = draw.choice([4, 4, 4, 4, 5])
    a, b, k = [rng.randint(0, 4, size) for _ in range(3)]
    f, g = rng.rand(size), rng.rand(size)
    kind = draw.randint(0, 19)
    b = a if kind == 0 else b
    k = a if kind == 1 else k
    a = a.astype(np.int32) if kind == 2 else a
    f = f.astype(np.float32) if kind == 3 else f
    a = np.repeat(a, 2)[::2] if kind == 4 else a
    if kind == 5 and "add.at" not in text:  # which writes to such arrays in NumPy, too
        a.flags.writeable = False
    return [torch.linspace(-1, 1, 24, dtype=torch.float64).reshape(4, 6), a, b, f, g, {"k": k}]


def run(seed: int, compiles: bool) -> list[Any]:
    """Return what comes of all calls of the program of a seed."""
    draw = random.Random(seed)
    space: dict[str, Any] = {"torch": torch, "np": np}
    text = program(draw)
    exec(compile(text, "<program>", "exec"), space)
    options = {"cache": draw.choice(["auto", "auto", "symbolic values"]), "fallback": draw.choice(["error", "split"])}
    called = jit(space["program"], **options) if compiles else space["program"]
    np.random.seed(seed % 1000)
    log: list[Any] = []
    for _ in range(5):
        given = arguments(draw, text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                log.append(described([called(*given), given], {}))
        except ThunderError:
            raise
        except Exception as error:
            log.append(type(error).__name__)  # what the program wrote before need not be there
    return log


def agrees_with_eager(seed: int) -> None:
    """Check that a random program does what eager does; see :func:`container_programs.agree`."""
    agree(run, program(random.Random(seed)), seed)
