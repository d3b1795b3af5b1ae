"""PyTorch's settings that a program changes: it has them while it is acquired, and each call leaves them as it does."""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_frontend._external_state.answers import Answers
from thunder_frontend._external_state.queries import refuse
from thunder_guards.own_code import package_of_callable
from thunder_guards.settings import SETTINGS, Setting, settings_as_text, settings_now, text_of
from thunder_torch.uncast import AUTOCAST_DEVICES

Values = list[tuple[Setting, Any]]
SETS = re.compile("_?(set|use|enable|disable|allow|detect)_.*|.*flags|detect_anomaly|__set__|__setattr__")
"""How functions and classes of PyTorch are called that change settings."""
OF_GRAD_MODE = frozenset({"set_grad_enabled", "enable_grad", "_set_grad_enabled"})
"""Those of them that change what every program is compiled for."""

OF_AUTOCAST: dict[str, tuple[Callable[..., Any], tuple[tuple[str, ...], ...]]] = {
    "set_autocast_dtype": (torch.get_autocast_dtype, tuple([(kind,) for kind in AUTOCAST_DEVICES])),
    "set_autocast_cache_enabled": (torch.is_autocast_cache_enabled, ((),)),
    "set_autocast_enabled": (torch.is_autocast_enabled, ()),
}
"""Those that autocast calls when it is entered, with what tells what they set, and of what."""

UNTOLD = frozenset(
    "set_flush_denormal set_num_interop_threads _set_cached_tensors_enabled _set_throw_on_mutable_data_ptr "
    "_set_default_mobile_cpu_allocator _set_print_stack_traces_on_fatal_signal".split()
)
"""Functions in C that set what none tells, or what can be set once only."""

OF_DERIVATIVES = frozenset({"set_inplace_requires_grad_allowed", "disable_saved_tensors_hooks"})
"""What ``torch.func`` calls for its levels, and what sets none of :data:`SETTINGS`."""

SETTERS = {setting.setter: setting for setting in SETTINGS if setting.setter is not None}
"""For functions in C that set one of them and nothing else, which."""


class ProcessSettings:
    """Knows what PyTorch was set to when the program began.

    Args:
        answers: takes the guards.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._before = settings_now()
        self._asked: set[Any] = set()
        self._set: dict[str, Setting] = {}
        self.calls = 0
        """How many calls were seen that may change any setting."""

    def called(self, fn: object) -> None:
        """Guard what a call, about to be made, depends on: one of code that is not interpreted.

        Raises:
            AcquisitionError: it sets what PyTorch does not tell, so that no call could be left with it.
        """
        name = getattr(fn, "__name__", "")
        if not isinstance(name, str) or not SETS.fullmatch(name) or name in OF_GRAD_MODE or not _is_of_torch(fn):
            return
        if name in OF_DERIVATIVES:
            return
        if isinstance(fn, types.BuiltinFunctionType) and fn in SETTERS:
            self._set[SETTERS[fn].name] = SETTERS[fn]
            return
        if name in OF_AUTOCAST:
            self._autocast(*OF_AUTOCAST[name])
            return
        self.calls += 1
        if isinstance(fn, types.BuiltinFunctionType) and fn.__self__ is torch._C and name in UNTOLD:
            refuse(name)

    def _autocast(self, query: Callable[..., Any], arguments: Sequence[tuple[Any, ...]]) -> None:
        """Guard what autocast was set to before the program sets it, which it may to the very same."""
        for args in arguments:
            if (query, args) not in self._asked:
                self._asked.add((query, args))
                self._answers.result_of(query, args, query(*args))

    def changed(self) -> Values:
        """Return the settings that are not what they were when the program began, and what they are."""
        now = settings_now()
        pairs = zip(SETTINGS, self._before, now, strict=True)
        return [(setting, value) for setting, before, value in pairs if value != before]

    def of_kernels(self) -> tuple[tuple[Setting, Any], ...]:
        """Return those of them that say how operations compute."""
        return tuple([each for each in self.changed() if each[0].of_kernels]) if self.calls else ()

    def restore(self) -> None:
        """Put all settings back."""
        for setting, value in zip(SETTINGS, self._before, strict=True):
            if setting.now() != value:
                setting.set(value)

    def answers(self, query: Callable[..., Any], args: Sequence[Any], result: Any) -> bool:
        """Whether the answer of a query is that of external state, and not what the program set."""
        changed = self.changed() if _is_of_torch(getattr(query, "func", query)) else []
        if not changed:
            return True
        self.restore()
        try:
            return bool(query(*args) == result)
        finally:
            for setting, value in changed:
                setting.set(value)

    def left(self) -> Values:
        """Return what the program leaves other than it was, put that back, and guard what it was."""
        changed = self.changed()
        self.restore()
        if self.calls or any([not setting.guarded and setting.name not in self._set for setting, _ in changed]):
            self._answers.result_of(settings_as_text, (), text_of(self._before))
        else:
            for setting in self._set.values():
                self._answers.result_of(setting.get, (), setting.get())
        return changed


def _is_of_torch(fn: object) -> bool:
    return package_of_callable(fn) == "torch" or isinstance(fn, types.BuiltinFunctionType) and fn.__self__ is torch._C
