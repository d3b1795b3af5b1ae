"""Guards of values that a program computes of its inputs, and that Python has seen."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards._guards.base import SeveralGuard, Told, shown
from thunder_guards.sources import Source
from thunder_ir import Context, Proxy, TensorProxy, flat_proxies, literal, map_values
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

    def question(self, numbered: Mapping[str, str]) -> Hashable:
        """Return what tells whether two steps compute the same; ``None`` for one that cannot be compared.

        Args:
            numbered: what stands for the values, by name.
        """
        given = (self.args, self.kwargs)
        if any([p.name not in numbered for p in flat_proxies(given)]):
            return None
        context = Context()
        text = literal(map_values(lambda v: v.renamed(numbered[v.name]) if isinstance(v, Proxy) else v, given), context)
        return None if context.globals.keys() - context.imports.keys() else (self.function, text)

    def run(self, values: dict[str, torch.Tensor]) -> None:
        """Make the call on the tensors that are filed under the names of the proxies, and file what it returns."""
        with torch.no_grad(), torch._C.DisableTorchFunction():
            self.compute(values)

    def compute(self, values: dict[str, torch.Tensor]) -> None:
        """Do that where autograd is off already, and functions of PyTorch reach tensors as they are."""
        result = self.function(*on_tensors(self.args, values), **on_tensors(self.kwargs, values))
        pair_outputs(self.outputs, result, values)


def on_tensors(tree: object, values: Mapping[str, torch.Tensor]) -> Any:
    """Return arguments with tensors in place of their proxies.

    Raises:
        KeyError: there is none for a proxy.
    """
    return map_values(lambda v: values[v.name] if isinstance(v, TensorProxy) else v, tree) if tree else tree


def same_tensor(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors are the same for a program: of one kind, and equal with NaN like NaN."""
    if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
        return False
    return torch.equal(a, b) or bool(torch.all((a == b) | ((a != a) & (b != b))))


FEW = 32
"""Elements of which a tuple is made sooner than bytes."""


def contents(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return what a dict finds a tensor by that is the same for a program."""
    inexact = tensor.is_floating_point() or tensor.is_complex()
    if not inexact and tensor.numel() <= FEW:
        return tuple(tensor.shape), tensor.dtype, tuple(tensor.flatten().tolist())
    values = (tensor.detach() + 0 if inexact else tensor.detach()).cpu().contiguous()  # zeros of one sign
    return tuple(tensor.shape), tensor.dtype, values.reshape(-1).view(torch.uint8).numpy().tobytes()


class ComputedValuesGuard(SeveralGuard):
    """What a program computes of some inputs alone is what it was.

    Args:
        inputs: name and source of each.
        steps: how the values are computed.
        expected: the values by their names.
    """

    __slots__ = ("expected", "names", "steps")

    def __init__(
        self, inputs: Sequence[tuple[str, Source]], steps: Sequence[Step], expected: Mapping[str, torch.Tensor]
    ) -> None:
        super().__init__(*[source for _, source in inputs])
        self.names = tuple([name for name, _ in inputs])
        self.steps = tuple(steps)
        self.expected = dict(expected)

    def condition_of(self, values: Sequence[str], context: Context) -> str:
        return f"{context.object(self.difference, 'computed_difference')}({', '.join(values)}) is None"

    def told(self) -> Iterable[Told]:
        """Return what tells programs apart that see values which each computes in the same way."""
        numbered = {name: f"v{i}" for i, name in enumerate(self._computed_in_order())}
        steps = tuple([step.question(numbered) for step in self.steps])
        asked = tuple([source.question for source in self.sources])
        if None not in asked and None not in steps and self.expected.keys() <= numbered.keys():
            question = ("computed", asked, steps, tuple([numbered[name] for name in self.expected]))
            yield question, self._look, tuple(map(contents, self.expected.values()))

    def _computed_in_order(self) -> dict[str, None]:
        """Return the names of the inputs, and of what the steps compute."""
        outputs = [p.name for step in self.steps for p in flat_proxies(step.outputs)]
        return dict.fromkeys([*self.names, *outputs])

    def _look(self, context: Context) -> str:
        sources = ", ".join([source.expression(context) for source in self.sources])
        return f"{context.object(self.seen, 'seen')}({sources})"

    def seen(self, *tensors: torch.Tensor) -> tuple[Any, ...]:
        """Return the contents of what comes of these inputs.

        Raises:
            ValueError: it cannot be computed of them.
        """
        values = self._values(tensors)
        if isinstance(values, str):
            raise ValueError(values)
        return tuple([contents(values[name]) for name in self.expected])

    def difference(self, *tensors: torch.Tensor) -> str | None:
        """Say which of the values is another one for these inputs; ``None`` if none is."""
        values, seen = self._values(tensors), f"a value that Python reads, computed of {self.places},"
        if isinstance(values, str):
            return f"{seen} {values}"
        for name, expected in self.expected.items():
            if not same_tensor(values[name], expected):
                return f"{seen} is {shown(values[name].tolist())}, compiled for {shown(expected.tolist())}"
        return None

    def _values(self, tensors: Sequence[torch.Tensor]) -> dict[str, torch.Tensor] | str:
        """Return the values that come of these inputs, by name; a text that says why there are none."""
        if not all([isinstance(t, torch.Tensor) for t in tensors]):
            return "has no tensors"
        values = dict(zip(self.names, tensors, strict=True))
        try:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                for step in self.steps:
                    step.compute(values)
        except Exception as error:  # inputs of another kind, for which PyTorch raises what it likes
            return f"cannot be computed ({type(error).__name__})"
        return values
