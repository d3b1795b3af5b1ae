"""External tensors that code in C hands to the program, which sees what stands for them, as everywhere."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._external_state.known import Known
from thunder_guards.kinds import NOTHING_INSIDE, is_container
from thunder_tracing.tensors.traced_tensor import TracedTensor

MAKE_CONTAINERS = frozenset({list, tuple, dict, set, frozenset, deque, OrderedDict, defaultdict, sorted})
"""Builtins that return a container of their own, with what others hold."""

RETURN_CONTAINERS = frozenset("copy __copy__ __add__ __mul__ __or__ union difference intersection".split())
"""Methods of containers that do the same."""


class StandIns:
    """Puts traced tensors in the place of those for which they stand.

    Args:
        outside: tells external objects.
        known: returns what stands for a tensor that was read before; ``None`` for any other.
    """

    def __init__(self, outside: Known, known: Callable[[torch.Tensor], Any]) -> None:
        self._outside = outside
        self._known = known

    def of(self, value: Any) -> Any:
        """Return what the program sees of a value that code in C hands to it; a tuple is taken apart."""
        kind = type(value)
        if kind in NOTHING_INSIDE or kind is TracedTensor:
            return value
        if kind is tuple:
            return tuple(map(self.of, value)) if self._has_tensors(value) else value
        if isinstance(value, torch.Tensor):
            known = self._known(value)
            return value if known is None else known
        return value

    def of_result(self, function: object, result: Any) -> Any:
        """Return what the program sees of the result of a function in C: in a container that it made, these, too."""
        kind = type(result)
        if kind not in MAKE_CONTAINERS or kind is tuple:
            return self.of(result)
        makes = (
            function in MAKE_CONTAINERS if isinstance(function, type) or function is sorted else _is_method(function)
        )
        if not makes or not self._has_tensors(result):
            return result
        items = [*map(self.of, result.items() if isinstance(result, dict) else result)]  # of each of a pair
        if kind is frozenset:
            return frozenset(items)
        result.clear()
        (result.extend if kind in (list, deque) else result.update)(items)
        return result

    def _has_tensors(self, container: Any) -> bool:
        """Whether a container of the program's own holds tensors that are not traced, or tuples with such."""
        if self._outside.source_of(container) is not None:
            return False
        values = (*container, *container.values()) if isinstance(container, dict) else container
        for value in values:
            kind = type(value)
            if kind in NOTHING_INSIDE or kind is TracedTensor:
                continue
            if kind is tuple and self._has_tensors(value) or isinstance(value, torch.Tensor):
                return True
        return False


def _is_method(function: Any) -> bool:
    return is_container(getattr(function, "__self__", None)) and function.__name__ in RETURN_CONTAINERS
