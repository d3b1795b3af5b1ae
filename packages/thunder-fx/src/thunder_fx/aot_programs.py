"""The programs of a function of flat arguments: one for each kind of call, made when that first comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from thunder_fx.aot_running import Compiled, Compilers, compiled_program
from thunder_fx.symbolic_inputs import SymbolicInputs
from thunder_guards import MISSED, missed
from thunder_ir import ThunderError
from thunder_tracing import SymbolicNumbers, trace_program


class Programs:
    """Runs a function of tensors and objects by graphs.

    Args:
        function: of flat arguments.
        compilers: make the graphs ready.
        dynamic: whether sizes are dynamic.
    """

    def __init__(self, function: Callable[..., Any], compilers: Compilers, dynamic: bool = False) -> None:
        self.function = function
        self.compilers = compilers
        self.dynamic = dynamic
        self._made: dict[Hashable, tuple[Compiled, ...]] = {}
        self._lock = threading.RLock()

    def __call__(self, leaves: tuple[Any, ...]) -> Any:
        """Call the function."""
        symbolic_inputs = SymbolicInputs.of_tensors(leaves) if self.dynamic else SymbolicInputs()
        key = symbolic_inputs.kind_of(leaves)
        result = self._found(key, leaves)
        if result is MISSED:
            with self._lock:
                made = self._compile(leaves, symbolic_inputs.numbers(leaves))
                self._made[key] = (made, *self._made.get(key, ()))
            result = made(leaves, _refuse)
        return result

    def _compile(self, leaves: tuple[Any, ...], numbers: SymbolicNumbers | None) -> Compiled:
        """Return a program for a call; one for its very sizes where none can be for others, too."""
        if numbers is not None:
            try:
                return compiled_program(trace_program(self.function, leaves, numbers), self.compilers)
            except (ThunderError, TypeError):  # such as PyTorch's own functions raise for numbers of a program
                pass
        return compiled_program(trace_program(self.function, leaves), self.compilers)

    def _found(self, key: Hashable, leaves: tuple[Any, ...]) -> Any:
        for made in self._made.get(key, ()):
            result = made(leaves, missed)
            if result is not MISSED:
                return result
        return MISSED


def _refuse(args: Any, kwargs: Any) -> Any:
    raise RuntimeError("a program is not right for the call that it was made for: the call changed PyTorch's state")


__all__ = ["Programs"]
