"""Weights kept in eight or four bits."""

from thunder_transforms import Quantise

__all__ = ["Quantise"]
