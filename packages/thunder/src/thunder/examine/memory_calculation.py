"""Memory of a program, line by line."""

from thunder.examine import get_alloc_memory

__all__ = ["get_alloc_memory"]
