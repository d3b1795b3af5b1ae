"""Values that Python asks for and that a program computes of integers among its inputs alone: known, and guarded.

Sizes of images in a batch, lengths of sequences or places of special tokens often come as tensors of integers, which
Python then loops over and branches on. Where a program cannot be acquired without such values, they are computed when
it is acquired, and compared with what they were before every later call.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from thunder_guards import ComputedValuesGuard, Step
from thunder_guards.program import Input
from thunder_ir import BoundSymbol, Symbol, TensorProxy, flat_proxies, is_unknown, reached
from thunder_ir.passes.traits import is_repeatable
from thunder_torch.convert import contiguous_strides
from thunder_torch.traits import Trait, has_trait
from thunder_tracing.tensors._view_writes import laid_out
from thunder_tracing.tensors.symbolic_numbers import at_hand


class ValueSpecialisation(enum.Enum):
    """What a program may be specialised on of the values of its inputs, where user code looks at them."""

    NONE = enum.auto()
    TRUTHS = enum.auto()
    """What it branches on; numbers and sizes are dynamic."""
    ALL = enum.auto()


T = torch.Tensor
LARGEST = 1 << 20
"""How many elements an input may have whose values are looked at."""
WRITTEN_OUT = 1 << 14
"""How many elements a result may have that is written into the program."""


class KnownValues:
    """Values that a program computes of integers among its inputs, and of constants.

    Args:
        inputs: returns those of the program.
    """

    def __init__(self, inputs: Callable[[], Sequence[Input]]) -> None:
        self._inputs = inputs
        self._values: dict[str, torch.Tensor] = {}
        self._steps: dict[str, Step] = {}
        self._asked: dict[str, torch.Tensor] = {}

    def note(
        self,
        function: object,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        output: object,
        bounds: Sequence[BoundSymbol],
    ) -> None:
        """Take notice of a call that was recorded; compute what it returns if all that it takes is known.

        Args:
            function, args, kwargs: the call, on proxies.
            output: what it returns, proxies.
            bounds: how it was recorded.
        """
        made = [p for p in flat_proxies(output) if isinstance(p, TensorProxy)]
        given = flat_proxies((args, kwargs))
        if not made or isinstance(function, Symbol) or has_trait(function, Trait.UNSET) or not callable(function):
            return
        if any([not isinstance(p, TensorProxy) or self.find(p) is None for p in given]):
            return
        if not all([is_repeatable(bound) for bound in bounds]) or all([p.name in self._values for p in made]):
            return
        if any([p.dtype.is_inexact for p in made]) and torch.is_autocast_enabled("cpu"):
            return  # what it computes depends on where it stands
        if sum([math.prod(at_hand(p.shape)) for p in made if not any([is_unknown(d) for d in p.shape])]) > LARGEST:
            return
        step = Step(function, args, kwargs, output)
        try:
            step.run(self._values)
        except Exception:  # whatever PyTorch raises here, it raises when the program runs
            return
        self._steps.update({p.name: step for p in made})

    def find(self, proxy: TensorProxy) -> torch.Tensor | None:
        """Return the value of a proxy, ``None`` if it is not known."""
        known = self._values.get(proxy.name)
        if known is None:
            for given in self._inputs():
                fits = given.proxy is proxy and not proxy.dtype.is_inexact and given.example.numel() <= LARGEST
                if fits and given.example.device.type != "meta":
                    known = self._values[proxy.name] = given.example.detach().clone()
        return known

    def ask(self, proxy: TensorProxy) -> torch.Tensor | None:
        """Return the value of a proxy for Python to look at, ``None`` if it is not known."""
        known = self.find(proxy)
        if known is not None:
            self._asked[proxy.name] = known
        return known

    def guard(self) -> ComputedValuesGuard | None:
        """Return the guard of all values that Python has seen; ``None`` if they depend on no input."""
        needed = set(reached(self._asked, self._read_for, key=str))
        inputs = [(i.proxy.name, i.source) for i in self._inputs() if i.proxy.name in needed]
        if not inputs:
            return None
        steps = dict.fromkeys([step for name, step in self._steps.items() if name in needed])
        return ComputedValuesGuard(inputs, list(steps), self._asked)

    def _read_for(self, name: str) -> list[str]:
        """Return the names of what a value is computed of."""
        step = self._steps.get(name)
        return [] if step is None else [p.name for p in flat_proxies((step.args, step.kwargs))]

    def written_out(self, output: object, record: Callable[..., Any]) -> Any:
        """Return a result with constants in place of tensors of unknown sizes, where their values are known.

        Args:
            output: proxies.
            record: records a call.
        """
        if isinstance(output, TensorProxy):
            if not any([is_unknown(d) for d in output.shape]):
                return output
            known = self.find(output)
            if known is None or known.numel() > WRITTEN_OUT or known.dtype.is_complex:
                return output
            self.ask(output)
            return _constant(known, record)
        if isinstance(output, (tuple, list)):
            items = [self.written_out(item, record) for item in output]
            return output._make(items) if hasattr(output, "_make") else output.__class__(items)
        return output


def _constant(value: torch.Tensor, record: Callable[..., Any]) -> Any:
    """Record a tensor of these values, laid out as they are."""
    made = record(torch.tensor, (value.flatten().tolist(),), {"dtype": value.dtype, "device": value.device})
    if value.ndim != 1:
        made = record(torch.reshape, (made, tuple(value.shape)), {})
    in_order = value.stride() == contiguous_strides(tuple(value.shape))
    return made if in_order else record(laid_out, (made, value.stride()), {})
