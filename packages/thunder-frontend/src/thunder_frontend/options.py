"""What a user asks for when compiling."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

from thunder_frontend._transforms import Transform


class CACHE_OPTIONS(StrEnum):  # noqa: N801  (the name that its users know)
    """How calls are told apart; the strings do as well."""

    AUTO = "auto"
    NO_CACHING = "no caching"
    SAME_INPUT = "same input"
    CONSTANT_VALUES = "constant values"
    SYMBOLIC_VALUES = "symbolic values"


class FALLBACK_OPTIONS(StrEnum):  # noqa: N801
    """What becomes of calls that no program can be made of; the strings do as well."""

    SPLIT = "split"
    WARN = "warn"
    ERROR = "error"


class SHARP_EDGES_OPTIONS(StrEnum):  # noqa: N801
    """What to do about effects that a compiled program does not repeat; the strings do as well."""

    ALLOW = "allow"
    WARN = "warn"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class DebugOptions:
    """What helps to find out what is the matter with a compiled function.

    Args:
        check_traces: verify what every pass returns.
        record_interpreter_history: keep what was interpreted, for ``thunder.last_interpreter_log`` and
            ``thunder.last_interpreted_instructions``.
        show_interpreter_progress: print how much was interpreted, each time that a program is acquired.
    """

    check_traces: bool | int = False
    record_interpreter_history: bool = False
    show_interpreter_progress: bool = False

    @classmethod
    def list_options(cls) -> str:
        """Return the names of the options with their defaults, one a line."""
        return "\n".join([f"{f.name} = {f.default!r}" for f in fields(cls)])


LANGUAGES = (None, "torch", "ltorch")
DEFAULT_CACHE = "auto"
DEFAULT_FALLBACK = "split"
EXTRA = {
    "check": "``'first-call'``: run eager beside the first call of each specialisation and compare",
    "memory_budget": "how much may be saved for the backward program: a fraction, or bytes",
    "partition": "``'min-cut'`` or ``'save-all'``",
    "log": "keep the interpreter's log",
    "outcomes": "how many programs are made for what Python may see of values that only the run of a program tells",
}
"""Further options, by name, with what they do."""
NAMED = (
    "langctx", "executors", "sharp_edges", "cache", "disable_torch_autograd", "transforms", "debug_options", "fallback",
    "fullgraph",
)  # fmt: skip
"""The options that are parameters of ``thunder.jit``."""
OF_TORCH_COMPILE = {
    "backend": "executors= says what runs programs",
    "dynamic": "cache='auto' leaves sizes open that change, cache='symbolic values' all, cache='constant values' none",
    "mode": "thunder.compile takes it, and so does thunder.jit where executors= names 'inductor'",
    "options": "thunder.jit takes each option as an argument of its own",
}
"""What to write instead of the arguments of ``torch.compile``."""


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
        debug: what to check, keep and show.
        fallback: what becomes of calls that no program can be made of: ``"split"`` runs the smallest frame that a
            program cannot hold in Python, ``"warn"`` the whole callable, and ``"error"`` refuses them.
    """

    executors: Sequence[Any] | None = None
    sharp_edges: str | None = None
    cache: str = DEFAULT_CACHE
    transforms: tuple[Any, ...] = ()
    differentiate: bool = True
    extra: Mapping[str, Any] = field(default_factory=dict)
    debug: DebugOptions = field(default_factory=DebugOptions)
    fallback: str = DEFAULT_FALLBACK

    @property
    def keeps_log(self) -> bool:
        """Whether what the interpreter saw is kept."""
        return bool(self.extra.get("log")) or self.debug.record_interpreter_history

    def __post_init__(self) -> None:
        if not isinstance(self.debug, DebugOptions):
            raise TypeError(f"debug_options takes a thunder.DebugOptions, and {self.debug!r} is none")
        _one_of("cache", self.cache, [c.value for c in CACHE_OPTIONS])
        _one_of("fallback", self.fallback, [f.value for f in FALLBACK_OPTIONS])
        _one_of("sharp_edges", self.sharp_edges, [None, *[s.value for s in SHARP_EDGES_OPTIONS]])
        for name in self.extra:
            if name not in EXTRA:
                raise TypeError(f"thunder.jit knows no option {name!r}; {_way_out(name)}")
        for transform in self.transforms:
            if not isinstance(transform, Transform):
                raise TypeError(f"transforms takes instances of thunder.Transform, and {transform!r} is none")
        _one_of("check", self.extra.get("check", "first-call"), ["first-call", None])
        outcomes = self.extra.get("outcomes", 0)
        if not isinstance(outcomes, int) or outcomes < 0:
            raise ValueError(f"outcomes={outcomes!r} is no number of programs; 0 lets Python go on at once")


def check_language(langctx: object) -> None:
    """Refuse a language that programs do not speak.

    Raises:
        ValueError: it is none of :data:`LANGUAGES`.
    """
    name = getattr(langctx, "name", langctx)
    if not (name is None or isinstance(name, str) and name.lower() in LANGUAGES):
        raise ValueError(
            f"langctx={langctx!r}: programs of thunder.jit speak the torch language ('torch'), and no other; "
            "thunder.numpy's functions may be called in them"
        )


def _one_of(name: str, value: object, choices: Sequence[str | None]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r} is not one of {', '.join(map(repr, choices))}")


def _way_out(name: str) -> str:
    """Return what to write instead of an option that is unknown."""
    known = (*NAMED, *EXTRA)
    if name in OF_TORCH_COMPILE:
        return OF_TORCH_COMPILE[name]
    close = get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it knows {', '.join(known)}, and those of its executors"
