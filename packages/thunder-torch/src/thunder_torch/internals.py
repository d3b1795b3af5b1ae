"""What the packages use of PyTorch that is not public: where the installed PyTorch lacks it, it is refused when used.

A name that is missing gets a stand-in, so that importing a package never fails for it: what needs the name raises
:class:`MissingInternalError` when it runs, which names it, and all else works. PyTorch has all names in the versions
that Thunder is tested on, and nothing is put anywhere then.
"""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import torch

from thunder_ir import ThunderError
from thunder_torch._supported import range_text


class MissingInternalError(ThunderError, NotImplementedError):
    """Something needs what the installed PyTorch does not have."""


class _Contents(dict[str, Any]):
    """The ``__dict__`` of a stand-in, which has everything."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def __missing__(self, name: str) -> Any:
        return stand_in(f"{self.path}.{name}")


class _Missing(type):
    """Makes stand-ins: each may be imported, named, derived from and caught, and refuses to do anything."""

    def _refuse(cls) -> NoReturn:
        raise MissingInternalError(
            f"PyTorch {torch.__version__} has no {cls.__qualname__}, which this needs; update Thunder, or install a "
            f"PyTorch of {range_text()}"
        )

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        cls._refuse()

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls.__subclasscheck__(type(instance))

    def __subclasscheck__(cls, subclass: type) -> bool:
        """Whether something is of a class that is not known: certainly not, unless it is of PyTorch's classes."""
        if any([base.__module__.partition(".")[0] == "torch" for base in subclass.__mro__]):
            cls._refuse()
        return False

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{cls.__qualname__}.{name}")

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    @property  # type: ignore[misc]
    def __dict__(cls) -> _Contents:  # type: ignore[override]
        return _Contents(cls.__qualname__)


class _Module(types.ModuleType):
    """Stands for a module, and has a stand-in for everything."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(f"{self.__name__}.{name}")


def stand_in(path: str) -> Any:
    """Return what stands for a name that PyTorch lacks.

    Args:
        path: the dotted name.

    Example:
        >>> from thunder_torch.internals import stand_in
        >>> stand_in("torch._C._gone")()
        Traceback (most recent call last):
        thunder_torch.internals.MissingInternalError: PyTorch ... has no torch._C._gone, which this needs; ...
    """
    return _Missing(path.rpartition(".")[2], (Exception,), {"__qualname__": path, "__module__": __name__})


def fill(names: Iterable[str]) -> list[str]:
    """Put a stand-in where a name is missing.

    Args:
        names: dotted, in any order.

    Returns:
        those that are missing.
    """
    missing = []
    for name in sorted(names, reverse=True):  # what is in a module before the module
        if not _is_there(name):
            missing.append(name)
            _put(name)
    return missing


def _is_there(name: str) -> bool:
    parts = name.split(".")
    for count in range(len(parts), 0, -1):  # of the module; a package may have a function of a module's name
        found = _module(".".join(parts[:count]))
        try:
            for part in parts[count:]:
                found = getattr(found, part)
        except AttributeError:
            continue
        if found is not None:
            return True
    return False


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def _put(name: str) -> None:
    """Make modules as far as there are none, and put the stand-in into the last."""
    *places, last = name.split(".")
    place: Any = torch
    for i, part in enumerate(places[1:], 2):
        path = ".".join(places[:i])
        inner = _module(path) or getattr(place, part, None)
        if inner is None:
            inner = sys.modules[path] = _Module(path, "Made by Thunder, for PyTorch has no such module.")
            inner.__path__ = []
            setattr(place, part, inner)
        place = inner
    setattr(place, last, stand_in(name))
