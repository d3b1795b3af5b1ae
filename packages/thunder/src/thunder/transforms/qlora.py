"""Low-rank adaptation."""

from thunder_transforms import LORATransform

__all__ = ["LORATransform"]
