"""What Python sees of values that a program computes: it is compiled for what it is, and checks that where it is seen.

Of what a program computes nothing reaches the caller before it is complete. So a call of which Python would see
something else ends where that is found out, and begins anew with the program of what it saw, which is made when that is
first met. The programs of one kind of call thus form a tree: each is known by all that Python saw in it, in order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from thunder_guards.errors import DataDependentError
from thunder_ir import ComplexProxy, FloatProxy, NumberProxy, TensorProxy, is_unknown, map_values
from thunder_ir.unknown import described, terms_of
from thunder_torch import opaque_call
from thunder_tracing.bailouts import TAGS, Bailout
from thunder_tracing.tensors.comparisons import Comparison
from thunder_tracing.tracer import Tracer

Path = tuple[Any, ...]
"""What Python saw in a program, in order; see :func:`encoded`."""

LONGEST = 256
"""How often Python may look at values within one program."""
LARGEST = 4096
"""How many elements a tensor may have that Python looks at as a whole."""


class OtherOutcome(Bailout):
    """Python would see something else than what the program was compiled for.

    Args:
        path: what it saw before, and what it would see now.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path


def encoded(value: object) -> Any:
    """Return a value, which is no float, as what can be compared and is equal for what Python cannot tell apart."""
    if isinstance(value, torch.Tensor):
        return ("tensor", value.dtype, tuple(value.shape), tuple(map(encoded, value.flatten().tolist())))
    return value if isinstance(value, bool) else ("int", value)


def decoded(seen: Any) -> Any:
    """Return what :func:`encoded` was given."""
    if isinstance(seen, bool):
        return seen
    kind, *parts = seen
    if kind == "tensor":
        dtype, shape, items = parts
        return torch.tensor([decoded(item) for item in items], dtype=dtype).reshape(shape)
    return parts[0]


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Checks, when a program runs, that Python would see what it was compiled for.

    Args:
        expected: that.
        as_truth: whether it is the truth of the value rather than the value.
        earlier: what Python saw before.
    """

    expected: Any
    as_truth: bool
    earlier: Path = field(repr=False)
    __name__ = "look"

    def __call__(self, value: object) -> None:
        seen = bool(value) if self.as_truth else encoded(value)
        if seen != self.expected:
            raise OtherOutcome((*self.earlier, seen))

    def metadata(self, values: tuple[Any, ...]) -> None:
        """Return what it returns."""


class Outcomes:
    """What Python sees while a program is acquired.

    Args:
        calls: the acquisition.
        given: what it is to see first.
        evaluate: computes the value of a proxy for the call at hand.
    """

    def __init__(self, calls: Tracer, given: Path, evaluate: Callable[[Any], Any]) -> None:
        self._calls, self._given, self._evaluate = calls, given, evaluate
        self._known: dict[tuple[bool, str], Any] = {}
        self.met: list[Any] = []

    def truth(self, proxy: object) -> bool:
        """Return the truth of a value."""
        return bool(self._seen(proxy, True))

    def value(self, proxy: object) -> Any:
        """Return a value: a number, or a tensor."""
        if isinstance(proxy, TensorProxy) and (any(map(is_unknown, proxy.shape)) or proxy.numel > LARGEST):
            raise DataDependentError(f"Python needs the values of {proxy.type_string}, which are too many")
        inexact = isinstance(proxy, (FloatProxy, ComplexProxy))
        if inexact or isinstance(proxy, TensorProxy) and proxy.dtype.is_inexact:
            raise DataDependentError(
                f"Python needs the value of {described(proxy)}, known only when the program runs and hardly ever "
                "the same twice. Keep the choice in tensors (torch.where, masks), or pass the number as an argument"
            )
        return decoded(self._seen(proxy, False))

    def known(self, number: Any) -> int:
        """Return an integer, which may be a sum of products of others."""
        if not is_unknown(number):
            return int(number)
        if number.name or number.unknown.terms is None:
            return int(self.value(number))
        return sum([count * math.prod(map(self.known, factors)) for factors, count in terms_of(number)])

    def compare(self, relation: str, left: object, right: object) -> bool:
        """Return how a comparison of numbers comes out."""
        with torch._C.DisableTorchFunction():
            return self.truth(opaque_call(Comparison(relation), left, right))

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Tell nothing, within a ``with`` block: it is not the user's code that asks."""
        builder = self._calls.builder
        before, builder.oracle = builder.oracle, None
        try:
            yield
        finally:
            builder.oracle = before

    def fixed(self, tree: object, tensor: Callable[[torch.Tensor], torch.Tensor]) -> Any:
        """Return arguments with values in place of numbers that only the run of the program tells.

        Args:
            tree: the arguments.
            tensor: returns what takes the place of a tensor.

        Returns:
            ``None`` if nothing is replaced.
        """
        replaced = []

        def known(value: Any) -> Any:
            found = value
            if isinstance(value, torch.Tensor):
                found = tensor(value)
            elif isinstance(value, NumberProxy) and is_unknown(value):
                found = self.value(value)
            if found is not value:
                replaced.append(value)
            return found

        found = map_values(known, tree)
        return found if replaced else None

    def _seen(self, proxy: Any, as_truth: bool) -> Any:
        known = self._known.get((as_truth, proxy.name)) if proxy.name else None
        if known is not None:
            return known
        if not proxy.name or self._calls.levels.stack:
            raise DataDependentError(
                "Python needs the value of a tensor within a function that torch.func transforms, which is one for "
                "each example; keep the choice in tensors (torch.where, masks)"
            )
        if len(self.met) == LONGEST:
            raise DataDependentError(f"Python looks at values of tensors more than {LONGEST} times")
        if len(self.met) < len(self._given):
            seen = self._given[len(self.met)]
        else:
            value = self._evaluate(proxy)
            seen = bool(value) if as_truth else encoded(value)
        self._calls.changes += 1  # other modules called in the same way may be told otherwise
        with torch._C.DisableTorchFunction(), self._calls.builder.tagged(*TAGS):
            opaque_call(Look(seen, as_truth, tuple(self.met)), proxy)
        self.met.append(seen)
        self._known[as_truth, proxy.name] = seen
        return seen


def is_prefix(path: Sequence[Any], whole: Sequence[Any]) -> bool:
    """Whether Python sees all of a path in a program, in order, before anything else."""
    return tuple(whole[: len(path)]) == tuple(path)
