"""Derivatives: of compiled functions, and what rules are written with."""

from thunder_autograd import *  # noqa: F403
from thunder_frontend import grad, value_and_grad

__all__ = ["grad", "value_and_grad"]
