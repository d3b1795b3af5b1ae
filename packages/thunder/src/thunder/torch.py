"""The torch language: symbols of PyTorch's functions by their names, for use in meta functions and decompositions."""

from typing import Any

import thunder_torch
from thunder_torch import *  # noqa: F403


def __getattr__(name: str) -> Any:
    return getattr(thunder_torch, name)
