"""Passes over the collectives of a program: which are made together, and where they stand."""

from thunder_distributed.passes.buckets import bucket_collectives, sum_before_sending
from thunder_distributed.passes.placement import place_collectives
from thunder_distributed.passes.schedule import Rank, collectives_of, reordered

__all__ = ["Rank", "bucket_collectives", "collectives_of", "place_collectives", "reordered", "sum_before_sending"]
