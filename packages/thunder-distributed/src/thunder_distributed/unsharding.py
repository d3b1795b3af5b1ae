"""Parameters that are whole for a while."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from thunder_distributed.cuts import CUT, load_part, whole_of_part
from thunder_distributed.modules import PARALLEL, parallel_of
from thunder_distributed.sequences import LAYOUT


@contextmanager
def unshard_params(model: torch.nn.Module, *, writeback: bool = True) -> Iterator[None]:
    """Let all processes have whole parameters, to look at or to write to.

    All processes enter and leave together. The model is not called meanwhile, and optimizers keep this process's parts.

    Args:
        model: what ``fsdp``, ``ddp`` or ``parallelize`` returned, or was applied to.
        writeback: whether what was written to whole parameters becomes that of the parts: each process takes its part
            of what it has itself.

    Raises:
        RuntimeError: the model is called meanwhile.
    """
    hows = parallel_of(model)
    places: dict[int, list[tuple[dict[str, Any], str]]] = {}
    parts: dict[int, tuple[torch.nn.Parameter, Any]] = {}
    for name, parameter in model.named_parameters():
        if name in hows and isinstance(hows[name], CUT):
            parts[id(parameter)] = parameter, hows[name]
    for module in model.modules():
        for key, own in module._parameters.items():
            if own is not None and id(own) in parts:
                places.setdefault(id(own), []).append((module._parameters, key))
    whole = {
        i: torch.nn.Parameter(whole_of_part(part.detach(), how), part.requires_grad) for i, (part, how) in parts.items()
    }
    cut = [m for m in model.modules() if LAYOUT in m.__dict__]
    layouts = [m.__dict__[LAYOUT] for m in cut]
    parallel = model.__dict__.get(PARALLEL)
    _put(places, whole, parallel, True)
    for module in cut:
        module.__dict__[LAYOUT] = _Whole()
    try:
        yield
    finally:
        _put(places, {i: part for i, (part, _) in parts.items()}, parallel, False)
        for module, layout in zip(cut, layouts, strict=True):
            module.__dict__[LAYOUT] = layout
    if writeback:
        with torch.no_grad():
            for i, (part, how) in parts.items():
                load_part(part, whole[i], how)


class _Whole:
    """Stands for how a module is run in parts while it has none."""

    @property
    def axis(self) -> Any:
        raise RuntimeError("the model was called within unshard_params(), while its parameters are whole")

    style = axis


def _put(
    places: dict[int, list[tuple[dict[str, Any], str]]], tensors: dict[int, torch.nn.Parameter], parallel: Any, on: bool
) -> None:
    for i, found in places.items():
        for parameters, key in found:
            parameters[key] = tensors[i]
    if parallel is not None:
        parallel.unsharded = on


__all__ = ["unshard_params"]
