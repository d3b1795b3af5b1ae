"""Ranges of profilers of hardware."""

from thunder_transforms import ITTProfileTransform, NvtxProfileTransform

__all__ = ["ITTProfileTransform", "NvtxProfileTransform"]
