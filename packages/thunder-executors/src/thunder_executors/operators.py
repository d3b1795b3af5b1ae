"""The bodies of operators that executors bring along, and the language in which they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from thunder_ir import Language, speaking


class _Default:
    """The language of operators whose author names none; the highest language that is loaded provides it."""

    __slots__ = ("language",)

    def __init__(self) -> None:
        self.language: Language | None = None


_DEFAULT = _Default()


def provide_language_of_operators(language: Language) -> None:
    """Make ``language`` what methods and operators mean where authors of executors name none: in the ``like`` of their
    operators, and in the transforms that they register."""
    _DEFAULT.language = language


def as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function in which methods and operators of proxies mean what is provided when it runs."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if _DEFAULT.language is None:
            return function(*args, **kwargs)
        with speaking(_DEFAULT.language):
            return function(*args, **kwargs)

    return run


def decomposition_of(like: Callable[..., Any], language: Language | None) -> Callable[..., Any]:
    """Return the body of an operator that computes the same as ``like``, a symbol or a function in symbols.

    Args:
        like: what it computes.
        language: what operators mean in it; ``None``: what is provided when it runs.
    """

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        with speaking(language if language is not None else _DEFAULT.language):
            return like(*args, **kwargs)

    return decomposition
