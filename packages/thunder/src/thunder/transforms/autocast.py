"""Autocast as part of a program."""

from thunder_transforms import AutocastTransform, autocast

__all__ = ["AutocastTransform", "autocast"]
