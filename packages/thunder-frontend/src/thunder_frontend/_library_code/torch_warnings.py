"""Warnings that functions of PyTorch written in Python give: ``F.mse_loss`` of a target of another size.

Such a function is recorded as a whole. Where it warns it is interpreted instead, so that the warning is the program's:
each call gives it, for the user's line.
"""

from __future__ import annotations

import functools
import sys
import types
import warnings
from _lsprof import Profiler
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_frontend._library_code.beneath_torch import PROTOCOL, looked_up
from thunder_guards.errors import BeginAgain

MODULES = (F, torch.nn._reduction)
"""Whose functions may warn by ``warnings.warn``. What is written in C warns where it runs."""
_NAMES = frozenset([module.__name__ for module in MODULES])


class Warned(BeginAgain):
    """A function of PyTorch warns, so that what was acquired until then does not do what eager does.

    Args:
        function: which is to be interpreted.
    """

    def __init__(self, function: object) -> None:
        super().__init__(function)
        self.function = function


@functools.cache
def may_warn(function: object) -> bool:
    """Whether a function is one of PyTorch's that warns, itself or by those that it calls, of some arguments."""
    if type(function) is not types.FunctionType or function.__globals__["__name__"] not in _NAMES:
        return False
    found = [value for _, _, value in looked_up(function)]
    return any([value is warnings.warn or _names_warn(value) for value in found])


def _names_warn(value: object) -> bool:
    return isinstance(value, types.FunctionType) and warnings.warn.__name__ in value.__code__.co_names


@functools.cache
def asks_for_overrides(function: types.FunctionType) -> bool:
    """Whether a function of PyTorch hands calls on to tensors of classes of their own, by which it is recorded."""
    return any([PROTOCOL in name for name in function.__code__.co_names])


def unless_it_warns(record: Callable[..., Any], function: object, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what ``record`` makes of a call of ``function``.

    Nothing is told to anybody of a warning, nor any filter changed, which are those of all threads: a profiler of this
    thread sees the call that would warn, and that call is not made.

    Raises:
        Warned: eager would warn of the call.
    """
    before = sys.getprofile()
    sys.setprofile(functools.partial(_raise_at_a_warning, function))
    try:
        return record(function, args, kwargs)
    finally:
        if isinstance(before, Profiler):  # which are no functions
            sys.setprofile(None)
            before.enable()
        else:
            sys.setprofile(before)


def _raise_at_a_warning(function: object, frame: types.FrameType, event: str, called: object) -> None:
    if called is warnings.warn or event == "call" and frame.f_code is getattr(warnings.warn, "__code__", None):
        raise Warned(function)
