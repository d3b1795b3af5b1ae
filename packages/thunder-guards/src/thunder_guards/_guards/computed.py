"""Guards of values that a program computes of its inputs, and that Python has seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards._guards.base import GONE, Guard, shown
from thunder_guards.sources import Source
from thunder_ir import Context, TensorProxy, map_values
from thunder_ir.passes import pair_outputs


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A call of a function of PyTorch.

    Args:
        function, args, kwargs: the call, on proxies.
        outputs: what it returns, in a structure of proxies.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Any

    def run(self, values: dict[str, torch.Tensor]) -> None:
        """Make the call on the tensors that are filed under the names of the proxies, and file what it returns."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            result = self.function(*on_tensors(self.args, values), **on_tensors(self.kwargs, values))
        pair_outputs(self.outputs, result, values)


def on_tensors(tree: object, values: Mapping[str, torch.Tensor]) -> Any:
    """Return arguments with tensors in place of their proxies.

    Raises:
        KeyError: there is none for a proxy.
    """
    return map_values(lambda v: values[v.name] if isinstance(v, TensorProxy) else v, tree)


def same_tensor(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are the same for a program: of one kind, and equal with NaN like NaN."""
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    return torch.equal(a, b) or bool(torch.all((a == b) | ((a != a) & (b != b))))


class ComputedValuesGuard(Guard):
    """What a program computes of some inputs alone is what it was.

    Args:
        inputs: name and source of each.
        steps: how the values are computed.
        expected: the values by their names.
    """

    __slots__ = ("expected", "inputs", "steps")

    def __init__(
        self, inputs: Sequence[tuple[str, Source]], steps: Sequence[Step], expected: Mapping[str, torch.Tensor]
    ) -> None:
        super().__init__(inputs[0][1])
        self.inputs = tuple(inputs)
        self.steps = tuple(steps)
        self.expected = dict(expected)

    def condition(self, context: Context) -> str:
        sources = ", ".join([source.expression(context) for _, source in self.inputs])
        return f"{context.object(self.difference, 'computed_difference')}({sources}) is None"

    def difference(self, *tensors: torch.Tensor) -> str | None:
        """Say which of the values is another one for these inputs; ``None`` if none is."""
        if not all([isinstance(t, torch.Tensor) for t in tensors]):
            return "has no tensors"
        values = {name: tensor for (name, _), tensor in zip(self.inputs, tensors, strict=True)}
        try:
            for step in self.steps:
                step.run(values)
        except Exception as error:  # inputs of another kind, for which PyTorch raises what it likes
            return f"cannot be computed ({type(error).__name__})"
        for name, expected in self.expected.items():
            if not same_tensor(values[name], expected):
                return f"is {shown(values[name].tolist())}, compiled for {shown(expected.tolist())}"
        return None

    def problem(self, value: object) -> str | None:
        return None

    def failure(self, roots: Mapping[str, Any]) -> str | None:
        try:
            problem = self.difference(*[source.evaluate(dict(roots)) for _, source in self.inputs])
        except GONE as error:
            return f"{self.source} is gone ({type(error).__name__}: {error})"
        sources = ", ".join([str(source) for _, source in self.inputs])
        return None if problem is None else f"a value that Python reads, computed of {sources}, {problem}"
