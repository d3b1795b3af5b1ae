"""Arguments to try operations with: a module per family of prims."""

from thunder_testing.samples import elementwise, reduction, shape
from thunder_testing.samples.sample import Sample, samples, samples_of

__all__ = ["Sample", "elementwise", "reduction", "samples", "samples_of", "shape"]
