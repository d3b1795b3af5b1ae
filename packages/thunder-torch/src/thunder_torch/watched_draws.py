"""Whether what runs on fake tensors draws random numbers: noted while it does, and remembered of callables."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from thunder_torch.memo import Memo
from thunder_torch.names import path_of


class Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes whether an operation that runs draws random numbers."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags and not self.found:
            names = [a.name for a in func._schema.arguments]
            given = {**dict(zip(names, args, strict=False)), **(kwargs or {})}
            # attention is tagged for the sake of its dropout
            self.found = "dropout_p" not in names or bool(given.get("dropout_p"))
        return func(*args, **(kwargs or {}))


_DREW = Memo()


@contextmanager
def watching(function: Any) -> Iterator[None]:
    """Find out whether a callable that is not PyTorch's own draws random numbers."""
    if path_of(function):
        yield
        return
    with Draws() as draws:
        yield
    if draws.found:
        _DREW.keep(function, True)


def drew(function: Any) -> bool:
    """Whether a callable that is not PyTorch's own was seen to draw random numbers, when its metadata were asked."""
    try:
        return function in _DREW
    except TypeError:
        return False
