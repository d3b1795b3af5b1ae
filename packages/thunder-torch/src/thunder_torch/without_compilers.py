"""PyTorch's functions in Python that switch its compilers off while they run, without loading them for that.

Kernels for fake tensors are such functions. At its first call each of them asks for ``torch._dynamo``, which takes more
than a second to load; as long as nobody has loaded it, there is nothing to switch off.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from types import FunctionType
from typing import Any

from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from thunder_ir import reached

LOADED = "torch._dynamo"
WHERE = ("torch._decomp", "torch._meta_registrations", "torch._prims", "torch._refs")
"""Modules that have such functions, with those below them; modes of dispatch have them, too."""

KEPT = "__dynamo_disable"
"""The attribute of a function under which PyTorch keeps what it calls in its place."""


@cache
def leave_compilers_alone() -> None:
    """Let PyTorch's functions run as they are until its compilers are loaded; from then on, as PyTorch has it.

    Example:
        >>> import torch
        >>> from thunder_torch.without_compilers import leave_compilers_alone
        >>> leave_compilers_alone()
    """
    for guarded in _guarded():
        plain = dict(zip(guarded.__code__.co_freevars, _enclosed(guarded), strict=True)).get("fn")
        if isinstance(plain, FunctionType) and not hasattr(plain, KEPT):
            setattr(plain, KEPT, _until_loaded(plain, guarded))


def _until_loaded(plain: Any, guarded: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        if LOADED not in sys.modules:
            return plain(*args, **kwargs)
        vars(plain).pop(KEPT, None)
        return guarded(*args, **kwargs)

    return run


def _guarded() -> Iterator[Any]:
    """Yield the functions that switch compilers off, be they called under their names or within what wraps them."""
    example: Any = FakeTensorMode.__torch_dispatch__
    if not hasattr(example, "__wrapped__"):  # as in versions whose modes do not
        return
    modules = [m for name, m in list(sys.modules.items()) if name.startswith(WHERE)]
    modes = reached([TorchDispatchMode], lambda mode: mode.__subclasses__())
    waiting = [vars(mode).get("__torch_dispatch__") for mode in modes]
    waiting += [value for m in modules for value in list(vars(m).values())]
    seen: set[int] = set()
    while waiting:
        function = waiting.pop()
        if type(function) is not FunctionType or function.__closure__ is None or id(function) in seen:
            continue
        seen.add(id(function))
        if function.__code__ is example.__code__:
            yield function
        waiting += _enclosed(function)


def _enclosed(function: FunctionType) -> list[Any]:
    """Return what is in the cells of a function's closure; ``None`` for what is in empty ones."""
    return [_inside(cell) for cell in function.__closure__ or ()]


def _inside(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # it is empty yet
        return None
