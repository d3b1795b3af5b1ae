"""The guard of PyTorch's state: grad mode, autocast, default dtype and device, deterministic flags."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import torch
from torch.autograd import forward_ad
from torch.utils._device import DeviceContext

from thunder_guards._guards.base import Told
from thunder_guards._guards.values import ValueGuard
from thunder_guards.sources import Source, held
from thunder_ir import Context
from thunder_torch.torch_versions import default_device, function_modes
from thunder_torch.uncast import AUTOCAST_DEVICES

try:
    from torch._C._dynamo.guards import GlobalStateGuard
except ImportError:  # a PyTorch without it: the comparison in Python serves
    GlobalStateGuard = None  # type: ignore[assignment, misc]


@dataclass(frozen=True, slots=True)
class Environment:
    """PyTorch's state, as far as a program's meaning depends on it."""

    grad_enabled: bool
    inference_mode: bool
    default_dtype: torch.dtype
    default_device: str
    autocast: tuple[Any, ...]
    deterministic: tuple[bool, bool]
    sdpa: tuple[bool, ...]
    matmul_precision: str

    def difference(self, now: Environment) -> str | None:
        """Say in what ``now`` differs; ``None`` if it does not."""
        for f in fields(self):
            old, new = getattr(self, f.name), getattr(now, f.name)
            if old != new:
                return f"torch's {f.name} is {new}, compiled for {old}"
        return None


def attention_kernels() -> tuple[bool, ...]:
    """Return which kinds of kernels of attention are allowed: by matmuls, flash, memory-efficient, cuDNN's."""
    return (
        torch._C._get_math_sdp_enabled(),
        torch._C._get_flash_sdp_enabled(),
        torch._C._get_mem_efficient_sdp_enabled(),
        torch._C._get_cudnn_sdp_enabled(),
    )


def matmul_precision() -> str:
    """Return how precise products of ``float32`` matrices are, in whichever way it was set."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError:  # by fp32_precision of some backend, after which PyTorch does not sum it up any more
        return str([(b.matmul.fp32_precision) for b in (torch.backends.cuda, torch.backends.mkldnn)])


_NATIVE: WeakValueDictionary[Environment, Callable[[], bool]] = WeakValueDictionary()
"""PyTorch's checks, by the state that they were made in, for as long as a program asks them: one that says yes now is
about the same as another one that is made now."""


def native_check(state: Environment) -> Callable[[], bool] | None:
    """Return PyTorch's check that most of its state is as it is now; ``None`` if it has none, or cannot make one.

    Args:
        state: as it is now, as far as a program's meaning depends on it.
    """
    try:
        found = _NATIVE.get(state)
        if found is None or not found():
            found = None if GlobalStateGuard is None else GlobalStateGuard().check
            if found is not None:
                _NATIVE[state] = found
    except RuntimeError:  # it asks for the precision of products in a way that is not the one it was set in
        return None
    return found


def autocast_state() -> tuple[Any, ...]:
    """Return, for the CPU and for CUDA, whether autocast is on and to which dtype."""
    return tuple(
        (torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else None)
        for kind in AUTOCAST_DEVICES
    )


def determinism() -> tuple[bool, bool]:
    """Return whether only deterministic algorithms are to run, and whether others are but warned of."""
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()


_ASKED: dict[str, Callable[[], Any]] = {
    "grad_enabled": torch.is_grad_enabled,
    "inference_mode": torch.is_inference_mode_enabled,
    "default_dtype": torch.get_default_dtype,
    "default_device": lambda: str(default_device()),
    "autocast": autocast_state,
    "deterministic": determinism,
    "sdpa": attention_kernels,
    "matmul_precision": matmul_precision,
}
"""What tells each part of the state."""


def environment() -> Environment:
    """Return PyTorch's state now."""
    return Environment(**{name: ask() for name, ask in _ASKED.items()})


NO_LEVEL = -1
"""What ``forward_ad._current_level`` is outside of all levels of derivatives in forward mode."""


def outside_of_levels() -> ValueGuard:
    """Return the guard that no derivatives in forward mode are computed."""
    source = Source(held(forward_ad, "torch.autograd.forward_ad"), "attribute", "_current_level")
    return ValueGuard(source, NO_LEVEL, (vars(forward_ad), "_current_level"))


def only_choose_devices() -> bool:
    """Whether all modes that functions of PyTorch are dispatched to are those of ``torch.device``."""
    return all([isinstance(mode, DeviceContext) for mode in function_modes()])


class EnvironmentGuard:
    """PyTorch's state is what it was.

    The check on the hit path is one call into PyTorch, with what that leaves out beside it.
    """

    __slots__ = ("_native", "environment", "modes")

    def __init__(self) -> None:
        self.environment = environment()
        self.modes = torch._C._len_torch_function_stack()
        self._native = native_check(self.environment)

    def checker(self, attends: bool) -> Callable[[], bool]:
        """Return a function that says whether the state is what it was when this guard was made.

        Args:
            attends: whether the program has attention, whose kernels PyTorch's own check does not look at.
        """
        now, native = self.environment, self._native
        if self.modes:
            return lambda: only_choose_devices() and now == environment()
        if native is None or now.inference_mode or now.sdpa != _SDPA_DEFAULT:
            return lambda: now == environment()
        return (lambda: native() and attention_kernels() == _SDPA_DEFAULT) if attends else native

    def conditions(self, context: Context, attends: bool) -> list[str]:
        """Return Python expressions that are true while the settings are what they were.

        Args:
            context: takes the names that they use.
            attends: see :meth:`checker`.
        """
        return [f"{context.object(self.checker(attends), 'same_environment')}()"]

    def unwatched(self, context: Context, checks_keys: bool = False) -> list[str]:
        """Return Python expressions that are true while nobody else is to see each operation.

        Args:
            context: takes the names that they use.
            checks_keys: whether a tensor's dispatch keys are checked, those of the thread's state among them: they
                tell of transforms of functorch, of modes that operators are dispatched to, and of tracing.
        """
        modes = context.object(torch._C._len_torch_function_stack, "torch_function_modes")
        asked = [
            f"{modes}() == {self.modes}" if self.modes else f"not {modes}()",
            f"{context.object(forward_ad, 'forward_ad')}._current_level < 0",
        ]
        if checks_keys:
            return asked
        none = [
            ("functorch_active", torch._C._are_functorch_transforms_active),
            ("dispatch_modes", torch._C._len_torch_dispatch_stack),
            ("tracing", torch._C._get_tracing_state),
        ]
        return [*asked, *[f"not {context.object(ask, name)}()" for name, ask in none]]

    def told(self) -> Iterable[Told]:
        """Return what tells programs apart that were compiled for other states."""
        for name, ask in _ASKED.items():
            yield ("environment", name), partial(_asked, ask), getattr(self.environment, name)

    def failure(self, roots: Mapping[str, Any]) -> str | None:
        """Say in what the state differs; ``None`` if it does not."""
        return self.environment.difference(environment())


def _asked(function: Callable[[], Any], context: Context) -> str:
    """Return the Python source that asks a function without arguments."""
    return f"{context.object(function, 'asked')}()"


_SDPA_DEFAULT = (True, True, True, True)
