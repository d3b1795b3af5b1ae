"""``id()``: a number that user code may look up where it wrote it down, so that the object is guarded.

Python's own modules and PyTorch's take it to tell the objects of one call apart, which are so on each call.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_interpreter import DECLINED
from thunder_tracing.tensors.traced_tensor import TracedTensor

LIBRARIES = tuple([os.path.dirname(str(module.__file__)) + os.sep for module in (os, torch)])
INSTALLED = f"{os.sep}site-packages{os.sep}"


def identities(acquisition: Acquiring) -> dict[Any, Callable[..., Any]]:
    """Return what is run in place of ``id``, and of ``hash``, which tells the same of a tensor, and of most objects.

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
            acquisition.external.fix_identity(found.example, found.slot, found.source)
            return id(found.example)
        acquisition.external.depends_on_identity(value)
        acquisition.external.fix_identity(value)
        return DECLINED

    def hashed(*args: Any) -> Any:
        if len(args) != 1:
            return DECLINED
        if isinstance(args[0], torch.Tensor):
            return identity(*args)
        acquisition.external.fix_hash(args[0])
        return DECLINED

    return {id: identity, hash: hashed}


def _asked_by_library(acquisition: Acquiring) -> bool:
    locate = acquisition.builder.locate
    place = None if locate is None else locate()
    if place is None:
        return False
    filename = place.filename
    return filename.startswith(LIBRARIES) and (INSTALLED not in filename or filename.startswith(LIBRARIES[1]))
