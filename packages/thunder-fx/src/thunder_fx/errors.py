"""What cannot be said in the other language."""

from __future__ import annotations

from torch.fx import Node

from thunder_ir import ThunderError


class FXError(ThunderError, RuntimeError):
    """A trace that no FX graph can be made of, or an FX graph that no trace can."""


class NodeError(FXError):
    """An FX graph of which one node cannot be recorded.

    Args:
        problem: what is the matter.
        node: which it is.
    """

    def __init__(self, problem: str, node: Node | None) -> None:
        super().__init__(problem)
        self.node = node


__all__ = ["FXError", "NodeError"]
