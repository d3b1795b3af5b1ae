"""Each operation as a range of torch.profiler."""

from thunder_transforms import ProfileTransform

__all__ = ["ProfileTransform"]
