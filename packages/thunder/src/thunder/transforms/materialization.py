"""Models that begin on the meta device."""

from thunder_transforms import MaterializationTransform

__all__ = ["MaterializationTransform"]
