"""Tensor parallelism: each process has a part of a layer's matrix, and computes with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_distributed.axes import Axis, axis_of
from thunder_distributed.compiled import compiled_again, original_of
from thunder_distributed.experts import run_by_experts
from thunder_distributed.modules import PARTS
from thunder_distributed.parameters import Part, part_of
from thunder_distributed.regions import (
    entered,
    from_first,
    gathered_from_all,
    left,
    part_of_all,
    part_of_sum,
    whole_of,
)
from thunder_distributed.sequences import LAYOUT, run_by, run_on_sequence
from thunder_distributed.styles import Colwise, ExpertParallel, Layout, Rowwise, Style
from thunder_frontend import ThunderModule


def parallelize(
    model: torch.nn.Module,
    device_mesh: Any = None,
    plan: Mapping[str, Style] | None = None,
    *,
    splits_products: bool = False,
) -> ThunderModule:
    """Let processes share the work of single layers, by a plan.

    Every process calls the model with the same batch, and gets the same loss. Apply ``ddp`` or ``fsdp`` after it, over
    another dimension of the mesh, for batches that differ.

    Args:
        model: a module, or what ``thunder.jit`` made of one, equal in all processes. It is changed in place.
        device_mesh: a mesh of one dimension, a group or an axis; all processes if not given.
        plan: how modules are cut, by their names, in which ``*`` stands for anything.
        splits_products: whether products run while parts of the sequence that they gather, or sums that they give parts
            of, go around the ring; see :func:`thunder_distributed.passes.split_products`.

    Returns:
        The compiled module.

    Raises:
        AxisError: ``torch.distributed`` is not initialised, or the mesh has several dimensions.
        KeyError: a name in the plan is that of no module.
        TypeError: a module is of no class that its style takes.
        ValueError: a size is no multiple of the number of processes, or modules that share a parameter would have it
            cut in different ways.

    Example, of two layers between which each process has its own half:
        ``parallelize(model, mesh["tensor"], {"blocks.*.network.0": Colwise(), "blocks.*.network.2": Rowwise()})``
    """
    original = original_of(model, "parallelize")
    axis = axis_of(device_mesh, "tensor")
    if splits_products and not axis.splits_products:
        axis = replace(axis, splits_products=True)
    modules = dict(original.named_modules())
    chosen: list[tuple[str, Style]] = []
    for pattern, style in (plan or {}).items():
        names = [name for name in modules if fnmatchcase(name, pattern)]
        if not names:
            raise KeyError(f"the plan names {pattern!r}, and no module is called so; there are {', '.join(modules)}")
        chosen += [(name, style) for name in names]
    _check_shared(original, dict(cut for name, style in chosen for cut in _cuts(name, modules[name], style)))
    parts: dict[torch.nn.Parameter, torch.nn.Parameter] = {}
    for name, style in chosen:
        _cut(name, modules[name], Layout(axis, style), parts)
    return compiled_again(model, original)


def _check_shared(model: torch.nn.Module, cuts: Mapping[str, int]) -> None:
    """Refuse parameters of several modules of which one has it cut, and another whole or cut in another way."""
    known: dict[torch.nn.Parameter, str] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        first = known.setdefault(parameter, name)
        if cuts.get(first) != cuts.get(name):
            raise ValueError(
                f"{first} and {name} are one parameter, and the plan cuts them in different ways: cut both along the "
                "same dimension, as Rowwise() does an embedding and Colwise() a linear layer, or neither"
            )


def _cuts(name: str, module: torch.nn.Module, style: Style) -> Iterator[tuple[str, int]]:
    """Yield the parameters of a linear layer or an embedding that are cut, and along which dimension."""
    if isinstance(style, (Colwise, Rowwise)):
        embeds, by_column = isinstance(module, torch.nn.Embedding), isinstance(style, Colwise)
        yield f"{name}.weight", int(by_column == embeds)
        if by_column and not embeds:
            yield f"{name}.bias", 0


def column_parallel(model: torch.nn.Module, target_modules: list[str], process_group: Any = None) -> ThunderModule:
    """Cut the outputs of some layers, which all processes get whole; see :func:`parallelize`."""
    return parallelize(model, process_group, dict.fromkeys(target_modules, Colwise(gather_output=True)))


def row_parallel(model: torch.nn.Module, target_modules: list[str], process_group: Any = None) -> ThunderModule:
    """Cut the inputs of some layers, which all processes have whole; see :func:`parallelize`."""
    return parallelize(model, process_group, dict.fromkeys(target_modules, Rowwise(cut_input=True)))


def _cut(
    name: str, module: torch.nn.Module, layout: Layout, made: dict[torch.nn.Parameter, torch.nn.Parameter]
) -> None:
    if isinstance(layout.style, ExpertParallel):
        run_by_experts(name, module, layout)
        return
    if not isinstance(layout.style, (Colwise, Rowwise)):
        run_on_sequence(name, module, layout)
        return
    kind = next((k for k in (torch.nn.Linear, torch.nn.Embedding) if type(module) is k), None)
    if kind is None:
        before = " already cut" if LAYOUT in module.__dict__ else ""
        raise TypeError(f"the plan cuts {name}, a {type(module).__name__}{before}; it takes a Linear or an Embedding")
    embeds, by_column = kind is torch.nn.Embedding, isinstance(layout.style, Colwise)
    if embeds and (module.max_norm is not None or module.sparse):
        raise TypeError(f"the plan cuts {name}, an Embedding with max_norm or sparse gradients, which must stay whole")
    dim = int(by_column == embeds)
    pads = embeds and not by_column
    parts = module.__dict__.setdefault(PARTS, {})
    parts["weight"] = _part(f"{name}.weight", module, "weight", layout.axis, dim, pads, made)
    if not embeds and module.bias is not None and by_column:
        parts["bias"] = _part(f"{name}.bias", module, "bias", layout.axis, 0, False, made)
    forward = {
        (False, True): _linear_by_column, (False, False): _linear_by_row,
        (True, True): _embedding_by_column, (True, False): _embedding_by_row,
    }[embeds, by_column]  # fmt: skip
    run_by(module, forward, layout)


def _part(
    name: str,
    module: torch.nn.Module,
    key: str,
    axis: Axis,
    dim: int,
    pads: bool,
    made: dict[torch.nn.Parameter, torch.nn.Parameter],
) -> Part:
    """Leave a module this process's part of a parameter, and return how it was cut.

    Modules that share the parameter share the part, which ``made`` has by the parameter.
    """
    whole = module._parameters[key]
    assert whole is not None
    size = whole.shape[dim]
    if size % axis.size and not pads:
        raise ValueError(
            f"{name} has {size} entries along dimension {dim}, no multiple of the {axis.size} processes of axis "
            f"{axis.name!r}: choose sizes that are, or leave it out of the plan"
        )
    part = Part(axis, tuple(whole.shape), dim)
    if whole not in made:
        made[whole] = torch.nn.Parameter(part_of(whole.detach(), part, axis.rank), whole.requires_grad)
    module._parameters[key] = made[whole]
    return part


def _linear_by_column(self: Any, x: torch.Tensor) -> Any:
    layout = self._thunder_layout
    at = layout.style.sequence_dim
    x = entered(x, layout.axis) if at is None else gathered_from_all(x, layout.axis, at % x.ndim)
    y = F.linear(x, self.weight, self.bias)
    return whole_of(y, layout.axis, y.ndim - 1) if layout.style.gather_output else y


def _linear_by_row(self: Any, x: torch.Tensor) -> Any:
    layout = self._thunder_layout
    if layout.style.cut_input:
        x = part_of_all(x, layout.axis, x.ndim - 1)
    y = F.linear(x, self.weight)
    at = layout.style.sequence_dim
    if at is None:
        y = left(y, layout.axis)
        return y if self.bias is None else y + self.bias
    y = part_of_sum(y, layout.axis, at % y.ndim)
    return y if self.bias is None else y + entered(self.bias, layout.axis)


def _embedding_by_column(self: Any, tokens: torch.Tensor) -> Any:
    layout = self._thunder_layout
    y = F.embedding(tokens, self.weight, self.padding_idx)
    return whole_of(y, layout.axis, y.ndim - 1) if layout.style.gather_output else y


def _embedding_by_row(self: Any, tokens: torch.Tensor) -> Any:
    layout = self._thunder_layout
    rows = self.weight.shape[0]
    local = from_first(tokens, layout.axis, rows)
    elsewhere = (local < 0) | (local >= rows)
    if self.padding_idx is not None:
        weight = self.weight
        y = F.embedding(local.masked_fill(elsewhere, 0), weight)
        fixed = (tokens == self.padding_idx).unsqueeze(-1)
        y = y.detach() * fixed + y * ~fixed
    else:
        y = F.embedding(local.masked_fill(elsewhere, 0), self.weight)
    y = y.masked_fill(elsewhere.unsqueeze(-1), 0.0)
    at = layout.style.sequence_dim
    return left(y, layout.axis) if at is None else part_of_sum(y, layout.axis, at % y.ndim)


__all__ = ["column_parallel", "parallelize", "row_parallel"]
