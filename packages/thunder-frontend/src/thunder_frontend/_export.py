"""``export``: a callable as an ``ExportedProgram``."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.export import ExportedProgram


def export(
    fn: Callable[..., Any] | torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: object = None,
) -> ExportedProgram:
    """Return a callable or a module as an ``ExportedProgram``, which PyTorch saves, loads and runs without Thunder.

    What the program relies on of the state around it is fixed in it, and what it changes there is left out: both are
    listed as text, in ``graph_module.meta["assumed"]`` and ``graph_module.meta["left_out"]``.

    Args:
        fn: a function or a module that returns tensors and numbers, in tuples, lists and dicts; it writes to no tensor.
        args, kwargs: example arguments.
        dynamic_shapes: which sizes are dynamic: a tuple for ``args``, in the way of ``torch.export.export``: for each
            ``None``, or for a tensor a dict from dimensions to ``torch.export.Dim``.

    Raises:
        ValueError: there are both ``kwargs`` and symbolic sizes.
        AcquisitionError: ``fn`` cannot be acquired, or writes to tensors.
        FXError: it returns what cannot be loaded without the classes around it.

    Example:
        >>> import torch
        >>> from thunder_frontend import export
        >>> program = export(torch.nn.Linear(3, 2), (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim("n")},))
        >>> program.module()(torch.ones(7, 3)).shape
        torch.Size([7, 2])
    """
    exported = importlib.import_module("thunder_frontend._exported")  # here: loads PyTorch's compilers
    return exported.exported(fn, args, kwargs, dynamic_shapes)  # type: ignore[no-any-return]
