"""Results that lie in memory as eager's: some of Inductor's decompositions lay theirs out otherwise.

A ``torch.cat`` of one tensor, say, is a copy there that keeps the strides, where PyTorch's has them in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

aten = torch.ops.aten


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

    Whether they have is looked at when it first runs: what has other strides in spite of the graph is copied.

    Args:
        compiled: takes a list of inputs.
        expected: a fake tensor for each result, of known sizes.
    """

    __slots__ = ("_wrong", "compiled", "expected")

    def __init__(self, compiled: Callable[[list[Any]], Sequence[Any]], expected: Sequence[torch.Tensor]) -> None:
        self.compiled = compiled
        self.expected = [tuple(like.stride()) for like in expected]
        self._wrong: tuple[int, ...] | None = None

    def __call__(self, inputs: list[Any]) -> Sequence[Any]:
        """Return the results; the list is emptied."""
        results = self.compiled(inputs)
        if self._wrong is None:
            pairs = enumerate(zip(results, self.expected, strict=True))
            self._wrong = tuple(
                [k for k, (made, like) in pairs if _of_several(made, made.stride()) != _of_several(made, like)]
            )
        if not self._wrong:
            return results
        copied = list(results)
        for k in self._wrong:
            made = copied[k]
            copied[k] = torch.empty_strided(made.shape, self.expected[k], dtype=made.dtype, device=made.device).copy_(
                made
            )
        return copied


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
