"""Machinery of derivatives. Knows no operation: rules stand beside the operations that they are for."""

from thunder_autograd._version import __version__
from thunder_autograd.rules import JvpRule, Pullback, VjpRule, jvp_rule, vjp_rule

__all__ = ["JvpRule", "Pullback", "VjpRule", "__version__", "jvp_rule", "vjp_rule"]
