"""What of PyTorch calls C code without telling any mode, and is told to a tracer while a function is traced."""

from __future__ import annotations

import contextvars
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder_guards.errors import AcquisitionError
from thunder_tracing._torch_versions import APPLIES, SETTINGS_OF_CALLS
from thunder_tracing.tensors.traced_tensor import is_acquiring


@dataclass(frozen=True)
class Told:
    """Who is told in a context, and what was refused there: C code forgets which error a setting raised."""

    apply: Callable[..., Any]
    backward: Callable[..., Any]
    refused: list[AcquisitionError] = field(default_factory=list)


class Setting:
    """A setting of custom functions that C code reads to apply one, which is not reported: refused while traced."""

    def __init__(self, value: object, told: contextvars.ContextVar[Told | None]) -> None:
        self._value = value
        self._told = told

    def __get__(self, function: object, cls: type) -> Any:
        """Return the setting."""
        told = self._told.get()
        if told is None or not records():
            return self._value
        told.refused.append(
            AcquisitionError(
                f"{cls.__name__}.apply was taken of its class before the program was traced, and this PyTorch does not "
                f"tell when it is called; write {cls.__name__}.apply where it is called"
            )
        )
        raise told.refused[-1]


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
        self._apply: Any = vars(APPLIES).get("apply")

    @contextmanager
    def by(self, apply: Callable[..., Any], backward: Callable[..., Any]) -> Iterator[None]:
        """Call other functions in this context.

        Args:
            apply: in the place of ``torch.autograd.Function.apply``; takes the class first. Where user code took that
                of its class before, it is called, too, or the call is refused.
            backward: in the place of ``torch.autograd.backward``.
        """
        told = Told(apply, backward)
        token = self._told.set(told)
        self._enter()
        try:
            yield
        except RuntimeError as error:
            if told.refused:
                raise told.refused[0] from error
            raise
        finally:
            self._leave()
            self._told.reset(token)

    def _enter(self) -> None:
        with self._lock:
            self._tracers += 1
            if self._tracers == 1:
                self._backward = own = torch.autograd.backward
                inherited = inspect.getattr_static(APPLIES, "apply")

                def apply(cls: object, *args: Any, **kwargs: Any) -> Any:
                    told = self._told.get()
                    if told is None or not records():
                        return inherited.__get__(None, cls)(*args, **kwargs)
                    return told.apply(cls, *args, **kwargs)

                def backward(*args: Any, **kwargs: Any) -> None:
                    told = self._told.get()
                    (own if told is None else told.backward)(*args, **kwargs)

                APPLIES.apply = classmethod(apply)
                for name in SETTINGS_OF_CALLS:
                    setattr(APPLIES, name, Setting(getattr(APPLIES, name), self._told))
                torch.autograd.backward = backward

    def _leave(self) -> None:
        with self._lock:
            self._tracers -= 1
            if self._tracers == 0:
                del APPLIES.apply
                if self._apply is not None:
                    APPLIES.apply = self._apply
                for name in SETTINGS_OF_CALLS:
                    delattr(APPLIES, name)
                torch.autograd.backward = self._backward


SEEN = Seen()
