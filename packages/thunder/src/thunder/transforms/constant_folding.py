"""What depends on no input is computed once."""

from thunder_transforms import ConstantFolding

__all__ = ["ConstantFolding"]
