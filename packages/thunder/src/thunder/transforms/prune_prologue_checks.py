"""Guards that are not checked."""

from thunder_transforms import PrunePrologueChecks

__all__ = ["PrunePrologueChecks"]
