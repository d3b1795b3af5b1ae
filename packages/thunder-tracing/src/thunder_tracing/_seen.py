"""What of PyTorch calls C code without telling any mode, and is told to a tracer while a function is traced."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from thunder_tracing.tensors.traced_tensor import is_acquiring

Told = tuple[Callable[..., Any], Callable[..., Any]]


def records() -> bool:
    """Whether what is called now is recorded: not while a tracer asks PyTorch for metadata, say."""
    return torch._C._is_torch_function_mode_enabled() and is_acquiring()


class Seen:
    """Puts two functions of PyTorch aside while functions are traced: those of other threads reach PyTorch's own."""

    def __init__(self) -> None:
        self._told: contextvars.ContextVar[Told | None] = contextvars.ContextVar("told", default=None)
        self._lock = threading.Lock()
        self._tracers = 0
        self._backward: Callable[..., Any] = torch.autograd.backward
        self._above: Any = torch.autograd.Function.__mro__[1]  # whose apply that of Function ends in

    @contextmanager
    def by(self, apply: Callable[..., Any], backward: Callable[..., Any]) -> Iterator[None]:
        """Call other functions in this context.

        Args:
            apply: in the place of ``torch.autograd.Function.apply``, also where somebody took that of his class before;
                takes the class first.
            backward: in the place of ``torch.autograd.backward``.
        """
        token = self._told.set((apply, backward))
        self._enter()
        try:
            yield
        finally:
            self._leave()
            self._told.reset(token)

    def _enter(self) -> None:
        with self._lock:
            self._tracers += 1
            if self._tracers == 1:
                self._backward = own = torch.autograd.backward
                inherited = inspect.getattr_static(self._above, "apply")

                def apply(cls: object, *args: Any, **kwargs: Any) -> Any:
                    told = self._told.get()
                    if told is None or not records():
                        return inherited.__get__(None, cls)(*args, **kwargs)
                    return told[0](cls, *args, **kwargs)

                def backward(*args: Any, **kwargs: Any) -> None:
                    told = self._told.get()
                    (own if told is None else told[1])(*args, **kwargs)

                self._above.apply = classmethod(apply)
                torch.autograd.backward = backward

    def _leave(self) -> None:
        with self._lock:
            self._tracers -= 1
            if self._tracers == 0:
                del self._above.apply
                torch.autograd.backward = self._backward


SEEN = Seen()

__all__ = ["SEEN"]
