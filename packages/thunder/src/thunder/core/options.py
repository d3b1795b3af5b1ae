"""The choices that ``thunder.jit`` takes as objects; strings do as well."""

from thunder_frontend.options import CACHE_OPTIONS, SHARP_EDGES_OPTIONS, DebugOptions

__all__ = ["CACHE_OPTIONS", "SHARP_EDGES_OPTIONS", "DebugOptions"]
