"""Passes that know no operation, and what passes are written with."""

from thunder_ir.passes.common_subexpressions import common_subexpressions
from thunder_ir.passes.dataflow import dependencies, leading_to, producers, read_from_outside, topological_order
from thunder_ir.passes.dead_code import dead_code_elimination, keep_failures
from thunder_ir.passes.decorator import trace_pass, verifying
from thunder_ir.passes.difference import difference
from thunder_ir.passes.dimensions import under_fresh_names
from thunder_ir.passes.equal_integers import equal_integers
from thunder_ir.passes.evaluation import evaluate
from thunder_ir.passes.expansion import expand
from thunder_ir.passes.pairing import pair_outputs
from thunder_ir.passes.renaming import renamed
from thunder_ir.passes.rewriting import KEEP, rewrite
from thunder_ir.passes.traits import depends_on_the_run, has_effect, is_random, is_repeatable, may_fail, stays, writes

__all__ = [
    "KEEP", "common_subexpressions", "dead_code_elimination", "dependencies", "depends_on_the_run", "difference",
    "equal_integers", "evaluate", "expand", "has_effect", "is_random", "is_repeatable", "keep_failures", "leading_to",
    "may_fail", "pair_outputs", "producers", "read_from_outside", "renamed", "rewrite", "stays", "topological_order",
    "trace_pass", "under_fresh_names", "verifying", "writes",
]  # fmt: skip
