"""Linear layers in eight-bit floats, by Transformer Engine. Imports it not by itself."""

from thunder_executors_transformer_engine._version import __version__
from thunder_executors_transformer_engine.availability import missing
from thunder_executors_transformer_engine.executor import TransformerEngineExecutor, executor
from thunder_executors_transformer_engine.library import InterfaceError
from thunder_executors_transformer_engine.scales import load_scales, scales

__all__ = [
    "InterfaceError", "TransformerEngineExecutor", "__version__", "executor", "load_scales", "missing", "scales",
]  # fmt: skip
