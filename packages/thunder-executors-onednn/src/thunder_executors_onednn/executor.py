"""The executor, and the one of its kind that takes part by default: what is large enough to be faster."""

from __future__ import annotations

from thunder_executors import Executor, OperatorExecutor
from thunder_executors_onednn._version import __version__
from thunder_executors_onednn.availability import missing
from thunder_executors_onednn.convolutions import add_convolutions
from thunder_executors_onednn.products import add_products
from thunder_executors_onednn.taking import ALL, LARGE, Sizes
from thunder_ir import BoundSymbol


class OnednnExecutor(OperatorExecutor):
    """Computes products of matrices by oneDNN.

    Args:
        sizes: from which on they are taken.
        careful: who takes part where the user names no executor.
    """

    def __init__(self, sizes: Sizes, careful: Executor | None = None) -> None:
        super().__init__(
            "onednn", version=__version__, missing=missing, default=False, priority=15, checks=False, careful=careful
        )
        add_products(self, sizes)
        add_convolutions(self, sizes)

    def makes_new(self, bound: BoundSymbol) -> bool:
        return True


executor = OnednnExecutor(ALL, careful=OnednnExecutor(LARGE))

__all__ = ["OnednnExecutor", "executor"]
