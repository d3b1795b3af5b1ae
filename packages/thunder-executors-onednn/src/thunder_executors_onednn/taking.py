"""What calls have to be like, products and convolutions, to be taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from thunder_executors import Declined
from thunder_ir import TensorProxy, devices, dtypes


@dataclass(frozen=True, slots=True)
class Sizes:
    """From which sizes on products are taken.

    Args:
        products: multiplications that there are at least.
        dimension: what rows, columns and the inner size are at least.
    """

    products: int = 1
    dimension: int = 1

    def takes(self, rows: int, inner: int, columns: int) -> bool | Declined:
        """Whether a product of two matrices is large enough."""
        if min(rows, inner, columns) < self.dimension or rows * inner * columns < self.products:
            return Declined("PyTorch multiplies matrices of this size as fast")
        return True


ALL = Sizes()
LARGE = Sizes(2**22, 16)
"""Where oneDNN was measured to be faster; see the table of the README."""


def takes_operands(*operands: Any) -> bool | Declined:
    """Whether these are tensors of float32 on the CPU; ``None`` stands for one that is not given."""
    for operand in operands:
        if operand is None:
            continue
        if not isinstance(operand, TensorProxy) or operand.device.type is not devices.cpu.type:
            return Declined("it takes tensors of the CPU")
        if operand.dtype is not dtypes.float32:
            return Declined(f"PyTorch computes with {operand.dtype} as fast")
    return True


__all__ = ["ALL", "LARGE", "Sizes", "takes_operands"]
