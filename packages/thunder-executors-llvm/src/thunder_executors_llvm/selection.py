"""Which calls can be in a kernel, and what of a region becomes one."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from thunder_executors import Declined
from thunder_executors_llvm import arithmetic, brief, division, folding, mathematics, polynomials
from thunder_executors_llvm.conversion import missing
from thunder_executors_llvm.rows import ROWS
from thunder_executors_llvm.target import Target
from thunder_ir import BoundSymbol, OpTags, Proxy, TensorProxy, Trace, devices, dtypes, is_unknown, value_of
from thunder_ir.passes import expand
from thunder_loops import (
    ADDING,
    POOLING,
    REDUCING,
    Add,
    CannotLower,
    Compute,
    Constant,
    LoopProgram,
    Parts,
    Reduce,
    Scan,
    Statement,
    creates,
    lower,
    moves_only,
    symbolic_sizes,
)
from thunder_prims import (
    acosh,
    asinh,
    atan,
    convert_element_type,
    cos,
    erf,
    exp,
    sin,
    std,
    tanh,
    var,
    var_mean,
    where,
)
from thunder_torch import symbol_of

_FAMILIES = (arithmetic, division, polynomials, mathematics, brief)  # which file their rows when they are imported

SPREADS = frozenset({std, var, var_mean})
"""Reductions that compute with the elements."""

BRANCHES = frozenset({where, symbol_of(torch.where), symbol_of(torch.masked_fill)})
"""What PyTorch's kernels do with a jump for each element, which takes many times as long where choices vary."""


WINDOWS = POOLING | {symbol_of(function) for function in (
    F.max_pool1d, F.max_pool1d_with_indices, F.max_pool2d, F.max_pool2d_with_indices, F.max_pool3d,
    F.max_pool3d_with_indices, torch.max_pool1d, torch.max_pool2d, torch.max_pool3d, F.avg_pool1d, F.avg_pool2d,
    F.avg_pool3d,
)}  # fmt: skip
"""Pooling, which PyTorch's kernels do element by element, in ten times the time."""

FUNCTIONS = frozenset({tanh, exp, erf, sin, cos, atan, asinh, acosh} | {symbol_of(function) for function in (
    torch.tanh, torch.exp, torch.erf, torch.sin, torch.cos, torch.atan, torch.asinh, torch.acosh, torch.trunc,
    torch.heaviside, torch.isnan, torch.isfinite, torch.isinf, torch.fmax, torch.fmin, F.softsign,
)})  # fmt: skip
"""Functions of ``float32`` that PyTorch's kernels take about twice as long for, or longer, as the measurement
``python -m thunder_benchmarks.functions`` shows.
"""

SLOW = BRANCHES | WINDOWS | FUNCTIONS
"""What is worth a kernel of its own, as is what computes :func:`a hyperbolic tangent <takes_tanh>`."""


def is_slow(bound: BoundSymbol) -> bool:
    """Whether a call is worth a kernel of its own."""
    return bound.symbol in SLOW or takes_tanh(bound)


def takes_tanh(bound: BoundSymbol) -> bool:
    """Whether a call computes, for each element, a hyperbolic tangent, as PyTorch's gelu and mish may."""
    return OpTags.ELEMENTWISE in bound.symbol.tags and any([b.symbol is tanh for b in bound.subsymbols])


def unfit(bound: BoundSymbol) -> str | None:
    """Return why a call cannot be in a kernel, whatever it computes, or ``None``."""
    tensors = [p for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)]
    if not bound.outputs or not all([isinstance(p, TensorProxy) for p in bound.outputs]):
        return "its results are no tensors"
    for tensor in tensors:
        if tensor.device.type is not devices.cpu.type:
            return f"a tensor lives on {tensor.device}"
    if not bound.symbol.is_prim and OpTags.ELEMENTWISE not in bound.symbol.tags:
        if len({t.dtype for t in bound.inputs if isinstance(t, TensorProxy) and t.dtype.is_inexact}) > 1:
            return "PyTorch takes tensors of several dtypes here, or refuses them"
    return None


def why_not(call: Trace, target: Target) -> str | None:
    """Return why no kernel computes what a call does, or ``None``; what reads no tensor may stand beside what does."""
    try:
        program = lower(call, told=symbolic_sizes(call.outputs) if creates(call.bound_symbols) else ())
    except CannotLower as error:
        return str(error)
    return unwritten(program, target)


def unwritten(program: LoopProgram, target: Target) -> str | None:
    """Return which operation of a program has no row in the tables, or ``None``."""
    for nest in program.nests:
        made = {s.name: s for s in nest.statements if hasattr(s, "name")}
        for statement in nest.statements:
            found = None
            if isinstance(statement, Compute):
                found = _row(statement, made, target)
            elif isinstance(statement, (Reduce, Scan)):
                found = folding.missing(statement.operation, made[statement.operand].dtype, target)  # type: ignore[union-attr]
            elif isinstance(statement, Add):
                found = missing(target, statement.dtype, dtypes.float32)
            if found is not None:
                return found
    return None


def _row(statement: Compute, made: dict[str, Statement], target: Target) -> str | None:
    last = made[statement.operands[-1]]
    have = last.dtype  # type: ignore[union-attr]
    if statement.operation == "to":
        return missing(target, have, statement.dtype)
    if have.is_integer and statement.operation in division.BY_NUMBERS:
        if not isinstance(last, Constant) or last.value == 0:
            return f"{statement.operation} of {have} by what may be 0 raises in PyTorch"
    found = ROWS.find(statement.operation, have, target)
    return found if isinstance(found, str) else None


def worth(parts: Parts) -> bool | Declined:
    """Whether kernels would save passes over memory, against one kernel of PyTorch for each call."""
    computing = [b for b in parts.inside if not moves_only(b)]
    slow = any([b.symbol in ADDING or is_slow(b) for b in computing])  # in PyTorch
    if len(computing) < 2 and not slow and not digests(parts):
        return Declined("one kernel of PyTorch does the same")
    return True


def digests(parts: Parts) -> bool:
    """Whether elements are computed only to be reduced: PyTorch writes all of them to memory, a kernel none."""
    made = {p.name for b in parts.inside for p in b.outputs}
    inputs = tuple({p.name: p for b in parts.inside for p in b.inputs if p.name not in made}.values())
    prims = expand(Trace("parts", inputs, parts.inside, parts.outputs)).bound_symbols
    computed: set[str] = set()
    most = 0
    for bound in prims:
        of_computed = bound.symbol in SPREADS or not computed.isdisjoint([p.name for p in bound.inputs])
        if bound.symbol in REDUCING and of_computed:
            most = max(most, elements(bound.inputs[0]))
        if OpTags.ELEMENTWISE in bound.symbol.tags and bound.symbol is not convert_element_type:
            computed |= {p.name for p in bound.outputs}
        elif not computed.isdisjoint([p.name for p in bound.inputs]) and bound.symbol not in REDUCING:
            computed |= {p.name for p in bound.outputs}
    return most > 16 * max(map(elements, parts.outputs), default=0)


def elements(proxy: Proxy) -> int:
    """Return how many elements a tensor has, by the sizes at hand; 0 where only the run tells, and for what is none."""
    if not isinstance(proxy, TensorProxy) or any(map(is_unknown, proxy.shape)):
        return 0
    return math.prod(map(value_of, proxy.shape))
