"""Fake tensors that stand for proxies while PyTorch is asked what an operation returns."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from types import FrameType
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from thunder_ir import IntegerProxy, NumberProxy, TensorProxy
from thunder_torch.convert import contiguous_strides, to_torch_device, to_torch_dtype
from thunder_torch.fake_modes import QuickMode

implications = inspect.unwrap(ShapeEnv.get_implications)


class SizeEnv(ShapeEnv):
    """Keeps PyTorch's symbols for sizes, without writing down the line of user code that each of them comes from.

    To find that out, PyTorch would load all of its compilers, and walk up the stack for each symbol. What follows from
    a comparison is kept here: PyTorch keeps it with the environment for good, and so every environment that there was.
    """

    def __init__(self, **options: Any) -> None:
        self._implied: dict[Any, Any] = {}
        super().__init__(**options)

    def get_implications(self, e: Any) -> Any:  # type: ignore[override]
        found = self._implied.get(e)
        if found is None:
            found = self._implied[e] = implications(self, e)
        return found

    def _get_user_frame(self) -> FrameType:
        return sys._getframe()

    def _log_create_unbacked_symbol(self, *args: Any, **kwargs: Any) -> None:
        pass


class StandIns:
    """One run of an operation on fake tensors, some of whose sizes are symbols of PyTorch's.

    Args:
        env: keeps the symbols.
    """

    dispatching: Callable[[], AbstractContextManager[object]] = staticmethod(nullcontext)
    """How operations are dispatched meanwhile."""

    def __init__(self, env: SizeEnv) -> None:
        self.env = env
        self.mode = QuickMode(env)

    def settle(self) -> None:
        """Look at what PyTorch found out of the sizes when the operation has run."""

    def size(self, number: Any) -> Any:
        """Return what stands for an integer: a symbol, an expression of symbols, or a plain integer."""
        raise NotImplementedError

    def number(self, value: NumberProxy) -> Any:
        """Return what stands for an integer; the value at hand of other numbers."""
        return self.size(value) if isinstance(value, IntegerProxy) else value.value

    def tensor(self, value: Any) -> torch.Tensor:
        """Return a fake tensor for a proxy or a real tensor."""
        if not isinstance(value, TensorProxy):
            return self.mode.from_tensor(value, static_shapes=True)
        shape = tuple([self.size(d) for d in value.shape])
        strides = None if value.strides is None else tuple([self.size(s) for s in value.strides])
        dtype, device = to_torch_dtype(value.dtype), to_torch_device(value.device)
        with self.mode:
            if strides is None and all([d.__class__ is int for d in shape]):
                strides = contiguous_strides(shape)
            if strides is None:
                fake = torch.empty(shape, dtype=dtype, device=device)
            else:
                fake = torch.empty_strided(shape, strides, dtype=dtype, device=device)
        return fake.requires_grad_() if value.requires_grad else fake
