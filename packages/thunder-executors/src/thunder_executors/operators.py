"""The bodies of operators that executors bring along, and the language in which they are written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_ir import Language, speaking


class _Default:
    """The language of operators whose author names none; the highest language that is loaded provides it."""

    __slots__ = ("language",)

    def __init__(self) -> None:
        self.language: Language | None = None


_DEFAULT = _Default()


def provide_language_of_operators(language: Language) -> None:
    """Make ``language`` what operators mean in the ``like`` of operators whose author names none."""
    _DEFAULT.language = language


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
