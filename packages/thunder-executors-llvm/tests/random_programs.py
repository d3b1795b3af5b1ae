"""Random programs of prims that kernels can compute, what eager PyTorch says of them, and inputs in any layout."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from guarded import check_bounds, check_threads

import thunder_prims as prims
from thunder_executors import Region, to_callable
from thunder_executors_llvm import executor
from thunder_ir import dtypes, trace_of
from thunder_loops import CannotLower
from thunder_torch import proxy_of

DTYPES = [torch.float32] * 4 + [
    torch.float64,
    torch.bfloat16,
    torch.float16,
    torch.int64,
    torch.int32,
    torch.uint8,
    torch.bool,
]
SIZES = [0, 1, 1, 2, 3, 5, 16, 17, 33]
SCALES = {"bfloat16": 3e-2, "float16": 4e-3, "float32": 2e-4, "float64": 1e-9}
"""How far results may differ, relative to the largest one, where values of a dtype are on the way."""
FLOAT_UNARY = "abs neg exp tanh sin sigmoid floor round sqrt sign erf reciprocal".split()
BINARY = "add sub mul maximum minimum".split()
COMPARISONS = "lt ge eq ne".split()
LARGEST = 1000
"""Elements of what is multiplied with each other in all pairs along a dimension."""


@dataclass(frozen=True)
class Case:
    """A random program with its inputs."""

    seed: int
    program: Any
    inputs: tuple[torch.Tensor, ...]


def tensor(draw: random.Random, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor of a shape that lies in memory in some way."""
    wide = [n * 2 + 1 for n in shape]
    generator = torch.Generator().manual_seed(draw.randrange(2**31))
    values = torch.randn(wide, generator=generator) * 3
    values = values.to(dtype) if dtype.is_floating_point else values.abs().to(dtype)
    order = list(range(len(shape)))
    draw.shuffle(order)
    turned = values.permute(order).contiguous().permute([order.index(d) for d in range(len(shape))])
    for dim, size in enumerate(shape):
        step, start = draw.choice([(1, 0), (1, 1), (2, 0)])
        turned = turned.narrow(dim, start, size * step if step == 2 else size)
        turned = turned[(slice(None),) * dim + (slice(None, None, step),)]
        if size > 1 and draw.random() < 0.1:
            turned = turned.narrow(dim, 0, 1).expand([size if d == dim else s for d, s in enumerate(turned.shape)])
    return turned if draw.random() < 0.6 else turned.contiguous()


def case(seed: int) -> Case:
    """Return the random program of a seed."""
    draw = random.Random(seed)
    rank = draw.randrange(4)
    shape = tuple([draw.choice(SIZES) for _ in range(rank)])
    dtype = draw.choice(DTYPES)
    inputs = [tensor(draw, shape, dtype) for _ in range(draw.randrange(1, 4))]
    if draw.random() < 0.3:
        inputs.append(tensor(draw, shape if draw.random() < 0.5 else shape[:1], torch.int64))
    if draw.random() < 0.2:
        inputs.append(inputs[0])
    steps = draw.randrange(2, 9)

    def program(*given: Any) -> Any:
        pick = random.Random(seed + 1)
        values = list(given)
        for _ in range(steps):
            values.append(step(pick, values))
        return tuple(values[-2:])

    return Case(seed, program, tuple(inputs))


def step(pick: random.Random, values: list[Any]) -> Any:
    """Record one random operation on some of the values."""
    a = pick.choice(values)
    alike = [v for v in values if v.shape == a.shape and v.dtype is a.dtype]
    b = pick.choice(alike)
    kind = pick.randrange(15)
    if kind <= 3 and not (a.dtype.is_bool):
        return getattr(prims, pick.choice(BINARY))(a, b if pick.random() < 0.8 else 2)
    if kind == 4:
        flag = getattr(prims, pick.choice(COMPARISONS))(a, b)
        return prims.where(flag, a, b)
    if kind == 5 and a.ndim:
        order = list(range(a.ndim))
        pick.shuffle(order)
        return prims.transpose(a, tuple(order))
    if kind == 6:
        return prims.convert_element_type(
            a, pick.choice([dtypes.float32, dtypes.bfloat16, dtypes.float64, dtypes.float32])
        )
    if kind == 7 and a.ndim:
        return reduced(pick, a)
    if kind == 8:
        return moved(pick, a)
    if kind == 9 and a.ndim:
        return looked_up(pick, a, values)
    if kind == 10 and a.ndim and not a.dtype.is_bool:
        return scanned(pick, a)
    if kind == 11 and a.ndim and not a.dtype.is_bool and math.prod(a.shape) < LARGEST and pick.random() < 0.4:
        columns, rows = (*a.shape, 1), (*a.shape[:-1], 1, a.shape[-1])
        return prims.matmul(prims.reshape(a, columns), prims.reshape(b, rows))
    if kind >= 12 and a.ndim and a.dtype.is_floating:
        return normalised(pick, a)
    if a.dtype.is_floating:
        return getattr(prims, pick.choice(FLOAT_UNARY))(a)
    return prims.bitwise_not(a)


def scanned(pick: random.Random, a: Any) -> Any:
    """Record a cumulative sum or product of small numbers, from either end."""
    dim = pick.randrange(a.ndim)
    prim = pick.choice([prims.cumsum, prims.cumsum, prims.cumprod])
    small = prims.sin(a) if a.dtype.is_floating else a  # products of large ones have no digits to compare
    if pick.random() < 0.5:
        return prim(small, dim)
    return prims.flip(prim(prims.flip(small, (dim,)), dim), (dim,))


def looked_up(pick: random.Random, a: Any, values: list[Any]) -> Any:
    """Record a read at places that another value tells, or a write of one element per row."""
    dim = pick.randrange(a.ndim)
    size = a.shape[dim]
    if not size:
        return prims.clone(a)
    counted = [v for v in values if v.dtype.is_integer and v.ndim and v.dtype is not dtypes.uint8]
    indices = pick.choice(counted) if counted else prims.iota(pick.choice([1, 3, 17]), 5, 3, dtypes.int64, a.device)
    indices = prims.remainder(prims.convert_element_type(indices, dtypes.int64), size)
    alike = indices.ndim == a.ndim and all([n <= m for n, m in zip(indices.shape, a.shape, strict=True)])
    if alike and pick.random() < 0.5:
        ends = tuple([min(n, 1) if d == dim else n for d, n in enumerate(indices.shape)])
        one = prims.slice(indices, (0,) * a.ndim, ends)
        whole = [n == m for d, (n, m) in enumerate(zip(indices.shape, a.shape, strict=True)) if d != dim]
        if all(whole) and one.shape[dim] and not a.dtype.is_bool and pick.random() < 0.5:
            return prims.scatter_add(a, one, prims.gather(a, one, dim), dim)
        return prims.gather(a, indices, dim)
    if a.dtype.is_floating and pick.random() < 0.3:
        return added_up(pick, a, counted)
    if a.ndim == 2 and pick.random() < 0.5:
        return prims.embedding(prims.remainder(indices, a.shape[0]), a) if a.shape[0] else prims.clone(a)
    if a.ndim + indices.ndim > 4:
        return prims.clone(a)
    if pick.random() < 0.3:
        return prims.index(a, tuple([None] * dim + [indices]))
    return prims.take(a, indices, dim)


def added_up(pick: random.Random, a: Any, counted: list[Any]) -> Any:
    """Record a sum of rows that come to the same place."""
    shape, rows = a.shape[:-1], pick.choice([1, 3, 17])
    alike = [v for v in counted if v.shape == shape]
    many = prims.reshape(prims.iota(math.prod(shape), pick.choice([0, 5]), 3, dtypes.int64, a.device), shape)
    indices = prims.convert_element_type(pick.choice(alike) if alike else many, dtypes.int64)
    return prims.embedding_backward(a, prims.remainder(indices, rows), rows, pick.choice([-1, 0]), False)


def reduced(pick: random.Random, a: Any) -> Any:
    """Record a reduction, repeated along what it reduced."""
    dims = tuple(sorted(pick.sample(range(a.ndim), pick.randrange(1, a.ndim + 1))))
    name = pick.choice(["sum", "amax", "amin"])
    if a.dtype.is_bool or any([a.shape[d] == 0 for d in dims]):
        return prims.bitwise_not(a) if a.dtype.is_exact else prims.neg(a)
    made = getattr(prims, name)(a, dims)
    return prims.broadcast_in_dim(made, a.shape, tuple([d for d in range(a.ndim) if d not in dims]))


def normalised(pick: random.Random, a: Any) -> Any:
    """Record a softmax, or what has a norm below 1."""
    dim = pick.randrange(a.ndim)
    if not a.shape[dim]:
        return prims.neg(a)

    def along(made: Any) -> Any:
        return prims.broadcast_in_dim(made, a.shape, tuple([d for d in range(a.ndim) if d != dim]))

    if pick.random() < 0.7:
        weights = prims.exp(prims.sub(a, along(prims.amax(a, (dim,)))))
        return prims.div(weights, along(prims.sum(weights, (dim,))))
    return prims.div(a, along(prims.add(prims.sqrt(prims.sum(prims.mul(a, a), (dim,))), 1)))


def moved(pick: random.Random, a: Any) -> Any:
    """Record a slice, a flip, a flattening, or two tensors joined."""
    what = pick.randrange(4)
    if what == 0:
        return prims.reshape(a, (a.numel,))
    if not a.ndim:
        return prims.reshape(a, (1,))
    dim = pick.randrange(a.ndim)
    if what == 1:
        return prims.flip(a, (dim,))
    if what == 2:
        return prims.cat((a, a), dim)
    starts = [0] * a.ndim
    starts[dim] = a.shape[dim] // 3
    return prims.slice(a, tuple(starts), tuple(a.shape))


def check(one: Case, monkeypatch: pytest.MonkeyPatch | None = None) -> bool:
    """Compare a program in kernels with the same one run call by call by PyTorch; whether kernels took all of it.

    Args:
        one: the program.
        monkeypatch: of pytest; if given, kernels are run between protected pages, too, and by several threads.
    """
    trace = trace_of(one.program, *[proxy_of(t, "") for t in one.inputs])
    calls = trace.bound_symbols
    if not calls or not all([executor.can_fuse(b) for b in calls]):
        return False
    outputs = tuple({p.name: p for p in trace.outputs}.values())
    region = Region(calls, trace.inputs, outputs)
    try:
        runner = executor.runner(region, "random")
        got = runner(*one.inputs)
    except CannotLower:  # the calls can be in kernels one by one, and not together
        return False
    expected = to_callable(trace.replace(output=outputs), [])(*one.inputs)
    for have, want in zip(got, expected, strict=True):
        assert have.dtype == want.dtype and have.shape == want.shape
        scale = max([SCALES.get(p.dtype.name, 0.0) for p in (*trace.inputs, *[o for b in calls for o in b.outputs])])
        finite = want[torch.isfinite(want)] if want.is_floating_point() else torch.zeros(0)
        largest = finite.abs().max().item() if finite.numel() else 0.0
        same = torch.isclose(have.double(), want.double(), rtol=scale, atol=scale * min(largest, 1e30), equal_nan=True)
        assert same.all(), f"seed {one.seed}:\n{trace}\n{have[~same][:5]} for {want[~same][:5]}"
    if monkeypatch is not None:
        with monkeypatch.context() as patch:
            check_threads(patch, runner, one.inputs, got)
        check_bounds(runner, one.inputs, got)
    return True
