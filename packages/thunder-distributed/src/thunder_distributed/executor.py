"""The executor that runs collectives."""

from __future__ import annotations

import torch

from thunder_distributed import collectives, copies, in_flight, prims
from thunder_distributed.agreement import agree_on_collectives, compare, compare_programs
from thunder_distributed.passes import (
    bucket_collectives,
    gather_once,
    place_collectives,
    split_products,
    sum_before_sending,
)
from thunder_distributed.prim import OWNED
from thunder_executors import OperatorExecutor, add_always_executor, register_executor
from thunder_ir import BoundSymbol

executor = OperatorExecutor("distributed", always=True, priority=-50, checks=False)
"""Runs collectives by ``torch.distributed``; its passes place them, in every program that has some."""


def owns_buffer(bound: BoundSymbol) -> bool:
    """Whether a collective may write to its argument, which nothing else reads."""
    return bound.has_tag(OWNED)


executor.implements(prims.all_reduce, when=owns_buffer)(collectives.all_reduce_within)
executor.implements(prims.reduce_scatter, when=owns_buffer)(collectives.reduce_scatter_scaled)
executor.implements(prims.wait)(in_flight.wait)
executor.implements(prims.all_reduce)(collectives.all_reduce)
executor.implements(prims.all_gather)(collectives.all_gather)
executor.implements(prims.reduce_scatter)(collectives.reduce_scatter)
executor.implements(prims.broadcast)(collectives.broadcast)
executor.implements(prims.on_rank)(collectives.on_rank)
executor.implements(prims.part)(collectives.part)
executor.implements(prims.placed)(collectives.placed)
executor.implements(prims.added)(torch.add)
executor.implements(prims.joined_from_ring)(collectives.joined_from_ring)
executor.implements(prims.counted_from_part)(collectives.counted_from_part)
executor.implements(prims.all_to_all)(collectives.all_to_all)
executor.implements(prims.permute)(collectives.permute)
executor.implements(prims.copy_to)(copies.copy_to)
executor.implements(prims.pack)(collectives.pack)
executor.implements(prims.unpack)(collectives.unpack)
executor.implements(compare)(compare_programs)

executor.passes += [
    gather_once, split_products, sum_before_sending, bucket_collectives, place_collectives, agree_on_collectives,
]  # fmt: skip
register_executor(executor)
add_always_executor(executor)

__all__ = ["executor"]
