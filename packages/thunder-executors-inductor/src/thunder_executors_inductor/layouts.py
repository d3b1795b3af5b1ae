"""Results that lie in memory as eager's: some of Inductor's decompositions lay theirs out otherwise.

A ``torch.cat`` of one tensor, say, is a copy there that keeps the strides, where PyTorch's has them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch
from torch._C._dynamo.guards import _reinterpret_tensor  # type: ignore[attr-defined]
from torch.fx import GraphModule

aten = torch.ops.aten

Compiled: TypeAlias = "Callable[[list[Any]], Sequence[Any]]"


def lay_out(module: GraphModule, expected: Sequence[torch.Tensor]) -> None:
    """Let the results of a graph have the strides of fake tensors, where these are dense and the graph has others.

    Args:
        module: whose nodes have fake tensors in ``meta["val"]``; it returns a sequence of tensors.
        expected: one for each result.
    """
    graph = module.graph
    output = graph.output_node()
    results: list[Any] = list(output.args[0])  # type: ignore[arg-type]
    changed = False
    with graph.inserting_before(output):
        for k, (node, like) in enumerate(zip(results, expected, strict=True)):
            value, wanted = node.meta["val"], _order(like)
            if wanted is None or _strides(value) == _strides(like):
                continue
            outwards = [wanted.index(dim) for dim in range(len(wanted))]
            for call, *words in ((aten.permute, wanted), (aten.clone,), (aten.permute, outwards)):
                options: dict[str, Any] = {"memory_format": torch.contiguous_format} if call is aten.clone else {}
                node = graph.call_function(call.default, (node, *words), options)
                value = node.meta["val"] = call(value, *words, **options)
            results[k], changed = node, True
    if changed:
        output.args = (tuple(results),)
        module.recompile()


class LaidOut:
    """What Inductor compiled, with results that have the strides of fake tensors.

    Whether they have is looked at when it first runs: what has other strides in spite of the graph is copied, or given
    the strides where dimensions of one element alone have others. What only a first run needs, Inductor's wrapper with
    its caches of tuning, is not asked again.

    Args:
        compiled: takes a list of inputs.
        expected: a fake tensor of known sizes for each result; ``None`` where sizes are symbolic: nothing is looked at.
    """

    __slots__ = ("_changes", "_run", "compiled", "expected")

    def __init__(self, compiled: Compiled, expected: Sequence[torch.Tensor] | None) -> None:
        self.compiled = compiled
        self.expected = None if expected is None else [tuple(like.stride()) for like in expected]
        self._run: Compiled = self._first
        self._changes: tuple[tuple[int, Callable[..., torch.Tensor]], ...] = ()

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        """Return the results; the list is emptied."""
        results = self._run(inputs)
        if not self._changes:
            return results
        changed = list(results)
        for k, change in self._changes:
            changed[k] = change(changed[k])
        return changed

    def _first(self, inputs: list[Any]) -> Sequence[Any]:
        results = self.compiled(inputs)
        if self.expected is not None:
            changes = [(k, _change(*pair)) for k, pair in enumerate(zip(results, self.expected, strict=True))]
            self._changes = tuple([(k, change) for k, change in changes if change is not None])
        self._run = getattr(self.compiled, "current_callable", None) or self.compiled
        return results


def _change(made: torch.Tensor, strides: tuple[int, ...]) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """Return what gives tensors, of which one is given, these strides; ``None`` if they have them."""
    if made.stride() == strides:
        return None
    if _of_several(made, made.stride()) == _of_several(made, strides):
        return lambda made: _reinterpret_tensor(made, tuple(made.shape), strides)
    return lambda made: torch.empty_strided(made.shape, strides, dtype=made.dtype, device=made.device).copy_(made)


def _order(tensor: torch.Tensor) -> list[int] | None:
    """Return the dimensions from the widest stride to the narrowest; ``None`` where elements do not lie one by one."""
    sizes, strides = _hints(tensor.shape), _hints(tensor.stride())
    order = sorted(range(tensor.ndim), key=lambda dim: (-strides[dim], -sizes[dim]))
    distance = 1
    for dim in reversed(order):
        if sizes[dim] != 1 and strides[dim] != distance:
            return None
        distance *= sizes[dim]
    return order


def _strides(tensor: torch.Tensor) -> list[int]:
    return _of_several(tensor, tensor.stride())


def _of_several(tensor: torch.Tensor, strides: Sequence[Any]) -> list[int]:
    """Return those of the dimensions that have several elements."""
    return [s for n, s in zip(_hints(tensor.shape), _hints(strides), strict=True) if n > 1]


def _hints(integers: Sequence[Any]) -> list[int]:
    """Return integers; for symbols, what they were when the program was made, without a guard on it."""
    return [n if isinstance(n, int) else n.node.hint for n in integers]


__all__ = ["LaidOut", "lay_out"]
