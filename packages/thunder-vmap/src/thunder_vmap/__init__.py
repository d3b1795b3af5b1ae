"""Machinery of batching. Knows no operation: rules stand beside the operations that they are for."""

from thunder_vmap._version import __version__
from thunder_vmap.batching import batch_transform_on_trace, insert_dimension
from thunder_vmap.rules import BatchingRule, batching_rule

__all__ = ["BatchingRule", "__version__", "batch_transform_on_trace", "batching_rule", "insert_dimension"]
