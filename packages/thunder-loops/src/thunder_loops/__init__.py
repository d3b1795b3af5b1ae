"""Regions of programs as loop nests, which anyone can render for a target. Knows no target, and needs no PyTorch."""

from thunder_loops._version import __version__
from thunder_loops.adding import ADDING
from thunder_loops.cost import Cost, cost, cost_again, operation_cost
from thunder_loops.holding import Hold
from thunder_loops.index import Index, Quotient, Remainder
from thunder_loops.layout import Walk, row_major_strides, walks
from thunder_loops.lower import ACCUMULATE, lower
from thunder_loops.machine import run, sizes_of
from thunder_loops.nest import (
    Add,
    Axis,
    Buffer,
    Compute,
    Constant,
    Load,
    LoopProgram,
    Nest,
    Position,
    Reduce,
    Scan,
    Statement,
    Store,
    axes_of,
    reads,
)
from thunder_loops.operations import OPERATIONS, REDUCTIONS, SCANS, Operation, Reduction
from thunder_loops.overwriting import may_overwrite
from thunder_loops.parts import Parts, creates, moves_only, of_untold_sizes, parts_of
from thunder_loops.plan import ACROSS, GRAIN, OPEN, SHORT, Access, Launch, LoopPlan, plan
from thunder_loops.pooling import POOLING
from thunder_loops.reduction import REDUCING
from thunder_loops.rules import CannotLower, lowering
from thunder_loops.scanning import SCANNING
from thunder_loops.schedule import Schedule, divide, schedule
from thunder_loops.space import symbolic_sizes
from thunder_loops.structure import Structure, is_of_one_program, structure_of
from thunder_loops.verify import verify

__all__ = [
    "ACCUMULATE", "ACROSS", "ADDING", "GRAIN", "OPEN", "OPERATIONS", "POOLING", "REDUCING", "REDUCTIONS",
    "SCANNING", "SCANS", "SHORT", "Access", "Add", "Axis", "Buffer", "CannotLower", "Compute", "Constant", "Cost",
    "Hold", "Index", "Launch", "Load", "LoopPlan", "LoopProgram", "Nest", "Operation", "Parts", "Position",
    "Quotient", "Reduce", "Reduction", "Remainder", "Scan", "Schedule", "Statement", "Store", "Structure", "Walk",
    "__version__", "axes_of", "cost", "cost_again", "creates", "divide", "is_of_one_program", "lower", "lowering",
    "may_overwrite", "moves_only", "of_untold_sizes", "operation_cost", "parts_of", "plan", "reads",
    "row_major_strides", "run", "schedule", "sizes_of", "structure_of", "symbolic_sizes", "verify", "walks",
]  # fmt: skip
