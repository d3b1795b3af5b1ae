"""The core language: what operators and methods of proxies mean in decompositions."""

from __future__ import annotations

import thunder_prims as prims
from thunder_ir import Language

core = Language("core", base=prims.strict)
"""Operators and methods with type promotion and broadcasting; the functions of this package under their names."""
