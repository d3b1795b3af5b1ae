"""From a module, compiled or not, to the same module compiled anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from thunder_frontend import ThunderModule, Transform, compiled_function, jit


def original_of(module: torch.nn.Module, kind: str) -> torch.nn.Module:
    """Return the module that was compiled, or ``module`` itself if it was not.

    Raises:
        TypeError: it is no module.
    """
    if isinstance(module, ThunderModule):
        return compiled_function(module).function  # type: ignore[return-value]
    if not isinstance(module, torch.nn.Module):
        raise TypeError(f"{kind}() takes a module, compiled or not, and this is a {type(module).__name__}")
    return module


def compiled_again(
    module: torch.nn.Module, original: torch.nn.Module, transforms: Sequence[Transform] = ()
) -> ThunderModule:
    """Return ``original`` compiled, with the options of ``module`` if that was compiled, and with more transforms.

    What no program can be made of is refused: run in Python, it would communicate nothing.
    """
    if isinstance(module, ThunderModule):
        options = compiled_function(module).options
        transforms = (*options.transforms, *transforms)
        return ThunderModule(original, replace(options, fallback="error", transforms=transforms))
    return jit(original, fallback="error", transforms=transforms)  # type: ignore[no-any-return]


__all__ = ["compiled_again", "original_of"]
