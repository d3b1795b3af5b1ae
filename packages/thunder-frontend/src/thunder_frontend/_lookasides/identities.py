"""``id()``: a number that user code may look up where it wrote it down, so that the object is guarded.

Python's own modules and PyTorch's take it to tell the objects of one call apart, which are so on each call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_guards import Guard, SameAsBeforeGuard
from thunder_guards.kinds import is_value
from thunder_guards.sources import Source
from thunder_interpreter import DECLINED
from thunder_tracing.tensors.traced_tensor import TracedTensor

LIBRARIES = tuple([os.path.dirname(str(module.__file__)) + os.sep for module in (os, torch)])
INSTALLED = f"{os.sep}site-packages{os.sep}"


def identities(acquisition: Acquiring) -> dict[Any, Callable[..., Any]]:
    """Return what is run in place of ``id``, and of ``hash``, which is the same of a tensor.

    Args:
        acquisition: knows where objects come from.
    """

    def identity(*args: Any) -> Any:
        if len(args) != 1 or _asked_by_library(acquisition):
            return DECLINED
        (value,) = args
        if isinstance(value, torch.Tensor):  # a container may have given the tensor itself
            traced = value if isinstance(value, TracedTensor) else acquisition.known_input(value)
            found = None if traced is None else traced.__dict__.get("_input")
            if found is None:
                return DECLINED
            acquisition.external.depends_on_identity(found.example)
            _require(acquisition, found.source, found.example, found.slot)
            return id(found.example)
        acquisition.external.depends_on_identity(value)
        source = acquisition.external.source_of(value)
        if source is not None and not source.is_held and not is_value(value):
            _require(acquisition, source, value, None)
        return DECLINED

    def hashed(*args: Any) -> Any:
        return identity(*args) if len(args) == 1 and isinstance(args[0], torch.Tensor) else DECLINED

    return {id: identity, hash: hashed}


def _asked_by_library(acquisition: Acquiring) -> bool:
    locate = acquisition.builder.locate
    place = None if locate is None else locate()
    if place is None:
        return False
    filename = place.filename
    return filename.startswith(LIBRARIES) and (INSTALLED not in filename or filename.startswith(LIBRARIES[1]))


def _require(acquisition: Acquiring, source: Source, value: Any, slot: tuple[Any, Any] | None) -> None:
    """Guard that an object is the very same, without keeping alive what is an argument."""
    guard: Guard = acquisition.external.weakly_held.guard(source, value, slot)
    if slot is None and source.is_of_the_call() and type(value).__weakrefoffset__:
        guard = SameAsBeforeGuard(source, value)
    acquisition.external.require(guard, id(value), "identity")
