"""Which calls can be in a kernel, and what of a region becomes one."""

from __future__ import annotations

from thunder_executors import Declined
from thunder_executors_llvm import arithmetic, division, folding, mathematics, polynomials
from thunder_executors_llvm.conversion import missing
from thunder_executors_llvm.rows import ROWS
from thunder_executors_llvm.target import Target
from thunder_ir import BoundSymbol, TensorProxy, Trace, devices
from thunder_loops import CannotLower, Compute, Constant, LoopProgram, Parts, Reduce, Statement, lower, moves_only

_FAMILIES = (arithmetic, division, polynomials, mathematics)  # which file their rows when they are imported


def why_not(bound: BoundSymbol, target: Target) -> str | None:
    """Return why a call cannot be in a kernel, or ``None``."""
    tensors = [p for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)]
    if not bound.outputs or not all([isinstance(p, TensorProxy) for p in bound.outputs]):
        return "its results are no tensors"
    for tensor in tensors:
        if tensor.device.type is not devices.cpu.type:
            return f"a tensor lives on {tensor.device}"
    inputs = tuple({p.name: p for p in bound.inputs}.values())
    try:
        program = lower(Trace("call", inputs, (bound,), bound.outputs))
    except CannotLower as error:
        return str(error)
    return unwritten(program, target)


def unwritten(program: LoopProgram, target: Target) -> str | None:
    """Return which operation of a program has no row in the tables, or ``None``."""
    for nest in program.nests:
        dtypes = {s.name: s for s in nest.statements if hasattr(s, "name")}
        for statement in nest.statements:
            found = None
            if isinstance(statement, Compute):
                found = _row(statement, dtypes, target)
            elif isinstance(statement, Reduce):
                found = folding.missing(statement.operation, dtypes[statement.operand].dtype, target)  # type: ignore[union-attr]
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
    if len(computing) < 2:
        return Declined("one kernel of PyTorch does the same")
    return True
