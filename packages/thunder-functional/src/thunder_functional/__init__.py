"""Derivatives and batches of functions on proxies, composable in any order."""

from thunder_functional._version import __version__
from thunder_functional.batching import vmap
from thunder_functional.forward import jvp, linearize
from thunder_functional.functional import functionalize
from thunder_functional.jacobians import hessian, jacfwd, jacrev
from thunder_functional.reverse import grad, value_and_grad, vjp

__all__ = [
    "__version__", "functionalize", "grad", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "value_and_grad", "vjp",
    "vmap",
]  # fmt: skip
