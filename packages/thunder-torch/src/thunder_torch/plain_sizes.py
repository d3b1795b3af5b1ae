"""What PyTorch's kernels in Python ask of sizes, answered for plain ones without loading what knows symbolic ones.

Kernels for the meta device import functions of ``torch.fx.experimental.symbolic_shapes``, and SymPy, when they run, and
so does ``torch.autograd.grad``. Of plain numbers they learn by these what Python tells; loading the modules takes a
third of a second.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch

PLAIN = (bool, int, float, tuple, list, torch.Size)


def _itself(value: Any, *_: Any) -> Any:
    return value


def _equal(a: Any, b: Any) -> bool:
    return bool(tuple(a) == tuple(b) if isinstance(a, (tuple, list)) else a == b)


OF_PLAIN: Mapping[str, Callable[..., Any]] = {
    "expect_true": _itself,
    "guard_or_false": _itself,
    "guard_or_true": _itself,
    "guard_size_oblivious": _itself,
    "guarding_hint_or_throw": _itself,
    "has_guarding_hint": lambda size: True,
    "is_nested_int": lambda size: False,
    "statically_known_true": _itself,
    "sym_and": lambda *conditions: all(conditions),
    "sym_eq": _equal,
    "sym_or": lambda *conditions: any(conditions),
}
"""What the functions of PyTorch's module return for plain numbers, by their names."""


class _NoExpression:
    """Stands for the class of SymPy's expressions, of which plain numbers are none."""


class _StandIn(ModuleType):
    """Stands for a module that is not loaded; what it cannot answer, and all that is asked later, that module does.

    Args:
        name: of the module.
        answer: returns what a kernel imports under a name; ``None`` for what loads the module.
    """

    def __init__(self, name: str, answer: Callable[[str], Any]) -> None:
        super().__init__(name)
        self._answer = answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python's import asks of each module
            raise AttributeError(name)
        importer = sys._getframe(1).f_code.co_name
        if sys.modules.get(self.__name__) is self and importer != "<module>":  # which keeps what it imports
            found = self._answer(name)
            if found is not None:
                return found
        return getattr(self.loaded(), name)

    def loaded(self) -> ModuleType:
        self.withdraw()
        return importlib.import_module(self.__name__)

    def withdraw(self) -> None:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def _function(name: str) -> Any:
    """Return a function of PyTorch's that is loaded where it is asked of what is not plain."""
    if name not in OF_PLAIN:
        return None

    def ask(*args: Any, **kwargs: Any) -> Any:
        if not kwargs and all(map(_is_plain, args)):
            return OF_PLAIN[name](*args)
        return getattr(_SYMBOLIC.loaded(), name)(*args, **kwargs)

    return ask


def _is_plain(value: Any) -> bool:
    return value.__class__ in PLAIN and (not isinstance(value, (tuple, list)) or all(map(_is_plain, value)))


_SYMBOLIC = _StandIn("torch.fx.experimental.symbolic_shapes", _function)
_SYMPY = _StandIn("sympy", lambda name: _NoExpression if name == "Basic" else None)


@contextmanager
def answered_plainly(on_meta: bool = False) -> Iterator[None]:
    """Answer what is asked of plain sizes while this lasts; what it cannot answer loads PyTorch's module.

    Args:
        on_meta: whether kernels for the meta device run alone, which ask whether numbers are SymPy's, too. To all else
            SymPy is what it is: its modules cannot be imported beside what stands for it.

    Example:
        >>> import torch
        >>> from thunder_torch.plain_sizes import answered_plainly
        >>> with answered_plainly():
        ...     torch._check(2 + 3 == 5)
    """
    modules = (_SYMBOLIC, _SYMPY) if on_meta else (_SYMBOLIC,)
    for module in modules:
        sys.modules.setdefault(module.__name__, module)
    try:
        yield
    finally:
        for module in modules:
            module.withdraw()
