"""Programs as CUDA graphs."""

from thunder_transforms import CUDAGraphTransform

__all__ = ["CUDAGraphTransform"]
