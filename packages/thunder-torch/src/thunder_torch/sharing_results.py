"""Results of one program that view one another: the gradient of one gets what comes from its views."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from thunder_autograd import Split, Traits
from thunder_ir import Trace
from thunder_ir.trees import flatten
from thunder_torch.linked_results import Links, cut


class SharingResults:
    """Gives results that retain their gradients what comes to these from others that share memory with them.

    Args:
        split: the program.
        links: between its results.
        compile, differentiate: see :func:`thunder_torch.bridge.connect_autograd`.
    """

    def __init__(
        self,
        split: Split,
        links: Links,
        compile: Callable[[Trace], Trace] | None,
        differentiate: Callable[..., Split],
    ) -> None:
        self.split, self.compile, self.differentiate = split, compile, differentiate
        self.runs_again = bool(links.sharing) and compile is not None and _runs_again(split)
        self.programs: dict[Any, Callable[..., Any]] = {}

    def look_at(
        self, context: Any, cotangents: Sequence[Any], unchanged_inputs: Callable[[Any, range], Sequence[Any]]
    ) -> None:
        """Complete gradients that are retained.

        Raises:
            RuntimeError: a hook is to be called with such a gradient. It was called with a part.
        """
        for place, reference, others in context.sharing:
            result = reference()
            if result is None or not (result.retains_grad or result._backward_hooks):
                continue
            if all([cotangents[i] is None for i in others]):
                continue
            if result._backward_hooks or torch.is_grad_enabled() or not self.runs_again:
                raise RuntimeError(
                    "the gradient of a result of a compiled function is looked at, which another result views that is "
                    "differentiated, too. Only the compiled function sees what comes from that one, which is found out "
                    "for retain_grad() alone, without create_graph and random numbers: register a hook inside of the "
                    "compiled function, or make the view outside"
                )
            context.saved_tensors  # noqa: B018  (raises PyTorch's error where they are freed or were modified)
            inputs = unchanged_inputs(context, range(len(context.inputs[0])))
            found = self._from_others(place, inputs, result, others, cotangents)
            result.grad = found if result.grad is None else result.grad + found

    def _from_others(
        self, place: int, inputs: Sequence[Any], result: Tensor, others: Sequence[int], cotangents: Sequence[Any]
    ) -> Any:
        present = tuple([i for i in others if cotangents[i] is not None])
        run = self.programs.get((place, present))
        if run is None:
            run = self.programs[place, present] = self._compiled(place, present)
        with torch.no_grad():
            return run(*inputs, result.detach(), *[cotangents[i] for i in present])

    def _compiled(self, place: int, present: tuple[int, ...]) -> Callable[..., Any]:
        assert self.split.program is not None and self.compile is not None
        results = flatten(self.split.program.output)[0]
        program = cut(self.split.program, [results[place].name])
        program = program.replace(output=tuple([results[i] for i in present]))
        split, count = self.differentiate(program, wanted={program.inputs[-1].name}), len(program.inputs)
        forward, backward = [self.compile(trace).python_callable() for trace in split]

        def run(*values: Any) -> Any:
            _, saved = forward(*values[:count])
            return backward(*saved, *values[count:])[-1]

        return run


def _runs_again(split: Split) -> bool:
    """Whether a program computes the same when it runs a second time, and does nothing else."""
    traits, program = Traits(), split.program
    return program is not None and not (split.draws or any(map(traits.has_effects, program.bound_symbols)))


__all__ = ["SharingResults"]
