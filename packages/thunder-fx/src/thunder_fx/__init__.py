"""Traces as FX graphs of ATen operations, and FX graphs as traces."""

import thunder_fx._internals_needed  # noqa: F401  (first, so that what PyTorch lacks fails no other import)
from thunder_fx import aot
from thunder_fx._version import __version__
from thunder_fx.dynamo import ThunderCompiler, thunderfx
from thunder_fx.errors import FXError, NodeError
from thunder_fx.export import Argument, Held, exported_program, from_exported
from thunder_fx.from_fx import from_fx
from thunder_fx.to_fx import to_fx

__all__ = [
    "Argument", "FXError", "Held", "NodeError", "ThunderCompiler", "__version__", "aot", "exported_program",
    "from_exported", "from_fx", "thunderfx", "to_fx",
]  # fmt: skip
