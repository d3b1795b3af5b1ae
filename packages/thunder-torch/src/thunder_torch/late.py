"""Modules that take long to import, and are imported when something of them is first asked for.

What PyTorch knows of symbolic sizes rests on SymPy, and its compiler is a second's worth of modules. A process that
compiles nothing does without them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LateModule:
    """Stands for a module until something of it is asked for.

    Args:
        name: of the module.

    Example:
        >>> from thunder_torch.late import LateModule
        >>> LateModule("colorsys").rgb_to_hsv(1.0, 1.0, 1.0)
        (0.0, 0.0, 1.0)
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)


symbolic_shapes = LateModule("torch.fx.experimental.symbolic_shapes")
sympy_functions = LateModule("torch.utils._sympy.functions")
wrapped_operators = LateModule("torch._dynamo._trace_wrapped_higher_order_op")

__all__ = ["LateModule", "symbolic_shapes", "sympy_functions", "wrapped_operators"]
