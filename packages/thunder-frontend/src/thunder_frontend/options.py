"""What a user asks for when compiling."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from thunder_frontend.transforms import Transform

CACHES = ("constant values", "symbolic values", "same input", "no caching")
SHARP_EDGES = (None, "allow", "warn", "error")
EXTRA = {
    "check": "``'first-call'``: run eager beside the first call of each specialisation and compare",
    "memory_budget": "how much may be saved for the backward program: a fraction, or bytes",
    "partition": "``'min-cut'`` or ``'save-all'``",
    "log": "keep the interpreter's log",
}
"""Further options, by name, with what they do."""


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one compiled function.

    Args:
        executors: in order of priority; ``None`` for the defaults.
        sharp_edges: what to do about effects that a compiled program does not repeat; ``None`` allows them, but for
            values that would be another one on each call.
        cache: how calls are told apart.
        transforms: applied in order.
        differentiate: whether the compiled function takes part in ``torch.autograd``.
        extra: further options.
    """

    executors: Sequence[Any] | None = None
    sharp_edges: str | None = None
    cache: str = "constant values"
    transforms: tuple[Any, ...] = ()
    differentiate: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _one_of("cache", self.cache, CACHES)
        _one_of("sharp_edges", self.sharp_edges, SHARP_EDGES)
        for name in self.extra:
            if name not in EXTRA:
                warnings.warn(f"thunder.jit knows no option {name!r}; it knows {', '.join(EXTRA)}", stacklevel=4)
        for transform in self.transforms:
            if not isinstance(transform, Transform):
                raise TypeError(f"transforms takes instances of thunder.Transform, and {transform!r} is none")
        check = self.extra.get("check")
        if check is not None:
            _one_of("check", check, ("first-call",))


def _one_of(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}")
