"""What each prim means, in NumPy: a small evaluator of traces for tests."""

from thunder_testing.reference import elementwise, indexing, reduction, shape
from thunder_testing.reference.machine import dtype_of, numpy_dtype, reference, run_reference

__all__ = ["dtype_of", "elementwise", "indexing", "numpy_dtype", "reduction", "reference", "run_reference", "shape"]
