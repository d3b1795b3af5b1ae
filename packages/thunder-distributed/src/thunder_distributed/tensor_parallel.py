"""Tensor parallelism: each process has a part of a layer's matrix, and computes with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, get_args

import torch
import torch.nn.functional as F  # noqa: N812

from thunder_distributed.axes import Axis, axis_of
from thunder_distributed.checks import check_backend, check_devices, check_memory, check_plain, check_same
from thunder_distributed.compiled import compiled_again, original_of
from thunder_distributed.experts import check_experts, run_by_experts
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
from thunder_distributed.sequences import LAYOUT, check_on_sequence, dimension, run_by, run_on_sequence
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
        DisagreementError: the processes' models have other parameters.
        KeyError: a name in the plan is that of no module.
        TypeError: a module is of no class that its style takes, or cut already.
        ValueError: the plan is empty; a size is no multiple of the number of processes; modules that share a parameter,
            or memory, would have it cut in different ways; the model is on several devices, or trained in parallel
            already.

    Example, of two layers between which each process has its own half:
        ``parallelize(model, mesh["tensor"], {"blocks.*.network.0": Colwise(), "blocks.*.network.2": Rowwise()})``
    """
    original = original_of(model, "parallelize")
    axis = axis_of(device_mesh, "tensor")
    if splits_products and not axis.splits_products:
        axis = replace(axis, splits_products=True)
    check_plain(original, "parallelize", "apply parallelize() first, and ddp() or fsdp() to what it returns")
    devices = [p.device for p in original.parameters()]
    check_devices(devices, "parallelize")
    check_backend(devices, axis, "parallelize")
    chosen = _chosen(original, {} if plan is None else plan)
    for one in chosen:
        _check(one, axis)
    cuts = {f"{name}.{key}" if name else key: dim for one in chosen for name in one.names for key, dim in _cuts(one)}
    _check_shared(original, cuts)
    check_memory(original, cuts, "parallelize")
    check_same(original, axis, "parallelize")
    parts: dict[torch.nn.Parameter, torch.nn.Parameter] = {}
    for one in chosen:
        _cut(one, axis, parts)
    return compiled_again(model, original)


@dataclass(frozen=True)
class Chosen:
    """A module that a plan names.

    Args:
        names: that it has in the model; several if it is at several places.
        module: itself.
        style: how it is run in parts.
    """

    names: tuple[str, ...]
    module: torch.nn.Module
    style: Style

    @property
    def described(self) -> str:
        """It, for messages."""
        return f"{self.names[0] or 'the model'}, a {type(self.module).__name__}"


def _chosen(model: torch.nn.Module, plan: Mapping[str, Style]) -> list[Chosen]:
    """Return the modules that a plan names, in its order.

    Raises:
        KeyError: a name in the plan is that of no module.
        TypeError: the plan is no mapping to styles.
        ValueError: it gives a module two styles, or names none.
    """
    if not isinstance(plan, Mapping):
        raise TypeError(f"a plan gives names of modules their styles, as a dict does, and this is a {type(plan)}")
    if not plan:
        raise ValueError(
            "parallelize() cuts the layers that its plan names, and this one names none: pass one such as "
            "{'blocks.*.up': Colwise(), 'blocks.*.down': Rowwise()}"
        )
    names: dict[torch.nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(module, []).append(name)
    found: dict[torch.nn.Module, tuple[str, Style]] = {}
    for pattern, style in plan.items():
        if not isinstance(style, Style):
            there = ", ".join([f"{kind.__name__}()" for kind in get_args(Style)])
            raise TypeError(
                f"the plan gives {pattern!r} the style {style!r}: styles are {there} of thunder_distributed; what "
                "parallelize_module() of PyTorch made is compiled by thunder.jit alone"
            )
        named = [module for module, own in names.items() if any([fnmatchcase(name, pattern) for name in own])]
        if not named:
            there = ", ".join([name for own in names.values() for name in own if name])
            raise KeyError(f"the plan names {pattern!r}, and no module is called so; there are {there}")
        for module in named:
            before, first = found.setdefault(module, (pattern, style))
            if first != style:
                raise ValueError(
                    f"the plan gives {names[module][0]} two styles, {first} by {before!r} and {style} by {pattern!r}: "
                    "let one name match it"
                )
    return [Chosen(tuple(names[module]), module, style) for module, (_, style) in found.items()]


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


def _cuts(one: Chosen) -> Iterator[tuple[str, int]]:
    """Yield a module's own parameters that are cut, and along which dimension."""
    own = [key for key, parameter in one.module._parameters.items() if parameter is not None]
    if isinstance(one.style, ExpertParallel):
        yield from [(key, 0) for key in own]
    elif isinstance(one.style, (Colwise, Rowwise)):
        embeds, by_column = isinstance(one.module, torch.nn.Embedding), isinstance(one.style, Colwise)
        dims = {"weight": int(by_column == embeds)} | ({"bias": 0} if by_column else {})
        yield from [(key, dims[key]) for key in own if key in dims]


def _check(one: Chosen, axis: Axis) -> None:
    """Refuse a module that its style cannot run in parts over an axis.

    Raises:
        TypeError: it is of no class that the style takes, or is run in parts already.
        ValueError: a size is no multiple of the number of processes.
    """
    if LAYOUT in one.module.__dict__:
        raise TypeError(f"the plan names {one.described} already cut: name modules that are whole")
    if isinstance(one.style, ExpertParallel):
        check_experts(one.described, one.module, Layout(axis, one.style))
        return
    if not isinstance(one.style, (Colwise, Rowwise)):
        check_on_sequence(one.described, one.module, one.style)
        return
    module: Any = one.module
    if type(module) not in (torch.nn.Linear, torch.nn.Embedding):
        raise TypeError(f"the plan cuts {one.described}; it takes a Linear or an Embedding")
    embeds = isinstance(module, torch.nn.Embedding)
    if embeds and (module.max_norm is not None or module.sparse):
        raise TypeError(f"the plan cuts {one.described} with max_norm or sparse gradients, which must stay whole")
    if embeds and isinstance(one.style, Rowwise):
        return  # rows are padded
    for key, dim in _cuts(one):
        size = module._parameters[key].shape[dim]
        if size % axis.size:
            name = f"{one.names[0]}.{key}" if one.names[0] else key
            raise ValueError(
                f"{name} has {size} entries along dimension {dim}, no multiple of the {axis.size} processes of axis "
                f"{axis.name!r}: choose sizes that are, or leave it out of the plan"
            )


def column_parallel(model: torch.nn.Module, target_modules: list[str], process_group: Any = None) -> ThunderModule:
    """Cut the outputs of some layers, which all processes get whole; see :func:`parallelize`."""
    return parallelize(model, process_group, dict.fromkeys(target_modules, Colwise(gather_output=True)))


def row_parallel(model: torch.nn.Module, target_modules: list[str], process_group: Any = None) -> ThunderModule:
    """Cut the inputs of some layers, which all processes have whole; see :func:`parallelize`."""
    return parallelize(model, process_group, dict.fromkeys(target_modules, Rowwise(cut_input=True)))


def _cut(one: Chosen, axis: Axis, made: dict[torch.nn.Parameter, torch.nn.Parameter]) -> None:
    """Leave a module this process's parts of its parameters, and let it run with them.

    Args:
        one: the module.
        axis: over which processes.
        made: the parts by the parameters: modules that share a parameter share the part.
    """
    layout, module = Layout(axis, one.style), one.module
    for key, dim in _cuts(one):
        whole = module._parameters[key]
        assert whole is not None
        part = Part(axis, tuple(whole.shape), dim, batches_differ=isinstance(one.style, ExpertParallel))
        module.__dict__.setdefault(PARTS, {})[key] = part
        if whole not in made:
            made[whole] = torch.nn.Parameter(part_of(whole.detach(), part, axis.rank), whole.requires_grad)
        module._parameters[key] = made[whole]
    if isinstance(one.style, ExpertParallel):
        run_by_experts(module, layout)
    elif not isinstance(one.style, (Colwise, Rowwise)):
        run_on_sequence(module, layout)
    else:
        forward = {
            (False, True): _linear_by_column, (False, False): _linear_by_row,
            (True, True): _embedding_by_column, (True, False): _embedding_by_row,
        }[isinstance(module, torch.nn.Embedding), isinstance(one.style, Colwise)]  # fmt: skip
        run_by(module, forward, layout)


def _linear_by_column(self: Any, x: torch.Tensor) -> Any:
    layout = self._thunder_layout
    at = layout.style.sequence_dim
    x = entered(x, layout.axis) if at is None else gathered_from_all(x, layout.axis, dimension(x, at))
    y = F.linear(x, self.weight, self.bias)
    return whole_of(y, layout.axis, y.ndim - 1) if layout.style.gather_output else y


def _linear_by_row(self: Any, x: torch.Tensor) -> Any:
    layout = self._thunder_layout
    if layout.style.cut_input:
        x = part_of_all(x, layout.axis, x.ndim - 1)
    if x.shape[-1] != self.weight.shape[1]:
        raise ValueError(
            f"a row-wise Linear of {self.in_features} inputs, of which each of {layout.axis.size} processes has "
            f"{self.weight.shape[1]}, gets {x.shape[-1]}: Rowwise(cut_input=True) takes all inputs, and Rowwise() "
            "those that a column-wise layer before it leaves"
        )
    y = F.linear(x, self.weight)
    at = layout.style.sequence_dim
    if at is None:
        y = left(y, layout.axis)
        return y if self.bias is None else y + self.bias
    y = part_of_sum(y, layout.axis, dimension(y, at))
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
    known = (tokens >= 0) & (tokens < self.num_embeddings)  # others are out of range in every process, as in one
    local = torch.where(known, local.masked_fill(elsewhere, 0), tokens)
    if self.padding_idx is not None:
        weight = self.weight
        y = F.embedding(local, weight)
        fixed = (tokens == self.padding_idx).unsqueeze(-1)
        y = y.detach() * fixed + y * ~fixed
    else:
        y = F.embedding(local, self.weight)
    y = y.masked_fill(elsewhere.unsqueeze(-1), 0.0)
    at = layout.style.sequence_dim
    return left(y, layout.axis) if at is None else part_of_sum(y, layout.axis, dimension(y, at))


__all__ = ["column_parallel", "parallelize", "row_parallel"]
