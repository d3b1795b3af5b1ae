"""A callback before each operation."""

from thunder_transforms import DebugTransform, debug_execution_trace

__all__ = ["DebugTransform", "debug_execution_trace"]
