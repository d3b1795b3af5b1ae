"""The closed set of operations that every transform knows, each with its rules beside it."""

from thunder_prims._version import __version__
from thunder_prims.prim import PRIMS, prim, strict

__all__ = ["PRIMS", "__version__", "prim", "strict"]
