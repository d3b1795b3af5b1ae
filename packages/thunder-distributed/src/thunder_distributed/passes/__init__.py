"""Passes over the collectives of a program: which are made together, and where they stand."""

from thunder_distributed.passes.buckets import bucket_collectives, sum_before_sending
from thunder_distributed.passes.once import gather_once
from thunder_distributed.passes.placement import place_collectives
from thunder_distributed.passes.products import Split, split_products, splits_of
from thunder_distributed.passes.schedule import Rank, collectives_of, reordered

__all__ = [
    "Rank", "Split", "bucket_collectives", "collectives_of", "gather_once", "place_collectives", "reordered",
    "split_products", "splits_of", "sum_before_sending",
]  # fmt: skip
