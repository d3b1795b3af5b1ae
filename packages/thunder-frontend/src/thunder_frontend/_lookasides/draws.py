"""What is run in place of methods of Python's and NumPy's generators of random numbers: the program draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from thunder_frontend._draws import drawing, generators
from thunder_interpreter import DECLINED
from thunder_ir import NumberProxy, OpTags, flat_proxies
from thunder_torch import opaque_call

if TYPE_CHECKING:
    from thunder_frontend._acquiring import Acquiring

METHODS = (
    "random", "getrandbits", "rand", "randn", "random_sample", "uniform", "normal", "randint", "standard_normal",
    "beta", "exponential", "gamma", "binomial", "poisson",
)  # fmt: skip
"""Methods in C that draw; NumPy's draw one number where they are asked for no size."""

TAGS = (OpTags.RANDOM, OpTags.DONT_DCE, OpTags.DONT_FUSE, OpTags.DONT_RECOMPUTE)


class Draws:
    """Records calls that draw a number.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Acquiring) -> None:
        self._calls = calls

    def lookasides(self) -> dict[Any, Any]:
        """Return what is run in place of which functions."""
        table: dict[Any, Any] = {}
        for generator in generators():
            for cls in type(generator).__mro__:
                found = {name: vars(cls).get(name) for name in METHODS}
                table.update({f: self._of(generator, f) for f in found.values() if f is not None and _is_in_c(f)})
        return table

    def _of(self, generator: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(owner: Any, *args: Any, **kwargs: Any) -> Any:
            if owner is not generator or any(isinstance(p, NumberProxy) for p in flat_proxies((args, kwargs))):
                return DECLINED
            with torch._C.DisableTorchFunction():
                draw = drawing(generator, function, args, kwargs)
            if draw is None:
                return DECLINED
            self._calls.hand_out_number()
            self._calls.changes += 1
            with torch._C.DisableTorchFunction(), self._calls.builder.tagged(*TAGS):
                return opaque_call(draw)

        return called


def _is_in_c(function: object) -> bool:
    return not hasattr(function, "__globals__") or "cython" in type(function).__name__


__all__ = ["Draws"]
