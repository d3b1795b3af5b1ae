"""Branches on values of tensors of which one way does nothing but raise: a program goes the other, and checks that.

Of what a program computes, nothing reaches the caller before it is complete. So a call that would have gone the way
that raises can run as eager from its beginning, and raises what eager raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from thunder_ir import OpTags, ThunderError, is_unknown

TAGS = (OpTags.DONT_DCE, OpTags.DONT_FUSE, OpTags.MAY_FAIL)


class Bailout(Exception):  # noqa: N818  (no error: it ends the program, and the call begins anew as eager)
    """A call goes another way than the program was compiled for."""


class EagerFallback(ThunderError, Bailout):
    """A call is one that no program stands for, and runs as eager."""


def is_single_and_unknown(value: object) -> bool:
    """Whether a traced tensor or number has one truth, which only the run of the program tells."""
    if isinstance(value, torch.Tensor):
        return value.numel() == 1
    return is_unknown(value)


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """Checks, when a program runs, that a value has the truth that the program was compiled for.

    Args:
        expected: that truth.
    """

    expected: bool
    __name__ = "check"

    def __call__(self, value: object) -> None:
        if bool(value) is not self.expected:
            raise Bailout

    def metadata(self, values: tuple[Any, ...]) -> None:
        """Return what it returns."""
