"""Programs of gradients that have gradients in turn, so that derivatives of any order exist."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_autograd import Split, differentiable_gradients
from thunder_ir import BoundSymbol, Proxy, Trace
from thunder_ir.passes import dead_code_elimination
from thunder_ir.trees import flatten
from thunder_torch.linked_results import cut


@dataclass(frozen=True, slots=True)
class Gradients:
    """Gradients as a function that has gradients.

    Args:
        run: from inputs, results that are given and cotangents to gradients.
        reads: places of the inputs that it reads.
    """

    run: Callable[..., Any]
    reads: frozenset[int]


class SecondDerivatives:
    """Compiles the programs of the gradients of a program, connected to autograd, at the first occasion.

    Args:
        split: the program.
        wanted: for each input, whether it has a gradient.
        differentiate, rule_of: see :func:`thunder_torch.bridge.connect_autograd`.
        connect: returns a function that runs a split and whose results have gradients.
    """

    def __init__(
        self,
        split: Split,
        wanted: Sequence[bool],
        differentiate: Callable[..., Split],
        rule_of: Callable[[BoundSymbol], Any] | None,
        connect: Callable[[Split], Callable[..., Any]],
    ) -> None:
        self.split, self.wanted = split, wanted
        self.differentiate, self.rule_of, self.connect = differentiate, rule_of, connect
        self.programs: dict[Any, Gradients] = {}

    def program(self, given: tuple[int, ...] = (), sought: tuple[int, ...] | None = None) -> Gradients:
        """Return the program of the gradients.

        Args:
            given: the places of results that others are computed of, and which this program is given.
            sought: the places of those of them whose gradients are sought; by default, those of the inputs.
        """
        known = self.programs.get((given, sought))
        if known is None:
            program, wanted = self._in_part(given, sought) if given else self._as_a_whole()
            known = self.programs[given, sought] = self._connected(program, wanted)
        return known

    def _as_a_whole(self) -> tuple[Trace, set[str]]:
        return differentiable_gradients(self.split, self.rule_of)

    def _in_part(self, given: tuple[int, ...], sought: tuple[int, ...] | None) -> tuple[Trace, set[str]]:
        assert self.split.program is not None
        count, results = len(self.wanted), flatten(self.split.program.output)[0]
        names = [results[i].name for i in given]
        around = cut(self.split.program, names)
        inputs = [p.name for p, is_wanted in zip(around.inputs, self.wanted, strict=False) if is_wanted]
        split = self.differentiate(around, wanted={*inputs, *[p.name for p in around.inputs[count:]]})
        program, wanted = differentiable_gradients(split, self.rule_of)
        known = dict(zip(names, program.inputs[count:], strict=False))  # what computes a result may read it afterwards
        calls = tuple([bound.substituted(known) for bound in program.bound_symbols])
        made = program.output
        output = made[:count] if sought is None else tuple([made[count + given.index(i)] for i in sought])
        return dead_code_elimination(program.replace(bound_symbols=calls, output=output)), wanted

    def _connected(self, program: Trace, wanted: set[str]) -> Gradients:
        run = self.connect(self.differentiate(program, wanted=wanted))
        return Gradients(run, places_read(program, program.inputs))


def places_read(program: Trace, values: Sequence[Proxy]) -> frozenset[int]:
    """Return the places of those of some values that a program reads."""
    read = {p.name for b in program.bound_symbols for p in b.inputs} | {p.name for p in program.outputs}
    return frozenset([i for i, p in enumerate(values) if p.name in read])
