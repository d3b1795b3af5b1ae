"""Graphs of forward and backward parts for compilers of FX graphs, as ``functorch.compile`` has it."""

try:
    from thunder_fx.aot import *  # noqa: F403
    from thunder_fx.aot import __all__ as __all__
except ImportError as error:
    raise ImportError("thunder.aot needs thunder-fx: pip install 'thunder-jit[fx]'") from error
