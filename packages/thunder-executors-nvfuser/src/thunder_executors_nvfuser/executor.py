"""The executor: what it takes, and what it makes of it."""

from __future__ import annotations

from typing import Any

from thunder_executors import Declined, FusionExecutor, Implementation, Region, takes_tensors, to_callable
from thunder_executors_nvfuser._version import __version__
from thunder_executors_nvfuser.availability import missing
from thunder_executors_nvfuser.definition import why_not
from thunder_executors_nvfuser.fusions import Fusion
from thunder_executors_nvfuser.settings import PEER, Settings
from thunder_ir import BoundSymbol, Proxy, TensorProxy, Trace
from thunder_ir.passes import expand
from thunder_loops import moves_only, parts_of

DEVICES = ("cuda",)
NOTHING_MORE = Settings()


class NvFuserExecutor(FusionExecutor):
    """Compiles regions by nvFuser.

    Args:
        name: under which it is asked for.
        settings: what belongs into regions, and how they are executed.
        devices: the types of devices whose tensors it takes.

    Example:
        >>> from thunder_executors_nvfuser import NvFuserExecutor
        >>> NvFuserExecutor("mine").configured(nv_enable_matmul=True).settings.matmul
        True
    """

    options = tuple(PEER)

    def __init__(self, name: str, settings: Settings = NOTHING_MORE, *, devices: tuple[str, ...] = DEVICES) -> None:
        super().__init__(
            name,
            version=__version__,
            missing=missing,
            install="pip install nvfuser-cu128-torch29, or as your CUDA and PyTorch are",
            default=False,
            priority=15,
            checks=False,
        )
        self.settings = settings
        self.devices = devices
        self._taken = Implementation(self)
        self._variants: dict[Settings, NvFuserExecutor] = {settings: self}

    def configured(self, **options: Any) -> NvFuserExecutor:
        """Return the executor as options of ``jit`` set it; the same one for the same settings."""
        settings = self.settings.with_options(options)
        if settings not in self._variants:
            return self._variants.setdefault(settings, NvFuserExecutor(self.name, settings, devices=self.devices))
        return self._variants[settings]

    def find(self, bound: BoundSymbol) -> Implementation | Declined:
        """Return that a region takes this call, or why not."""
        tensors = [p for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)]
        for p in tensors:
            answer = takes_tensors(p.like(shape=()), on=self.devices)
            if isinstance(answer, Declined):
                return answer
        reason = why_not(bound, self.settings)
        return self._taken if reason is None else reason

    def fuse(self, region: Region, name: str) -> list[BoundSymbol] | None:
        """Return the call of a region's fusion, and the views of its results; ``None`` where fusing saves nothing."""
        parts = parts_of(region)
        least = 1 if self.settings.moves else self.smallest_region
        counted = [b for b in parts.inside if self.settings.moves or not moves_only(b)]
        if not parts.outputs or len(counted) < least:
            return None
        made = {p.name for b in parts.inside for p in b.outputs}
        inputs: dict[str, Proxy] = {p.name: p for b in parts.inside for p in b.inputs if p.name not in made}
        inner = Region(parts.inside, tuple(inputs.values()), parts.outputs)
        trace = inner.trace(name)
        fusion = Fusion(expand(trace), to_callable(trace, []), settings=self.settings)
        return [self.fused(inner, name, fusion), *parts.views]


def fusions_of(trace: Trace) -> dict[str, Fusion]:
    """Return the fusions that a program calls, by the names of the calls."""
    found: dict[str, Any] = {b.symbol.name: b.symbol.implementation for b in trace.bound_symbols}
    return {name: fusion for name, fusion in found.items() if isinstance(fusion, Fusion)}


def get_fusion_source(trace: Trace, name: str) -> str:
    """Return how a fusion of a program is defined: the Python text, for each layout of inputs that it was run with.

    Args:
        trace: the last stage of a compiled function.
        name: of the fusion, as the program shows it.

    Raises:
        KeyError: the program calls no such fusion.
    """
    return "\n\n".join(_named(trace, name).sources())


def get_nvfuser_fusion_definition(trace: Trace, name: str) -> Any:
    """Return the ``FusionDefinition`` by which a fusion was run last; ``None`` where it was not run yet.

    Args:
        trace: the last stage of a compiled function.
        name: of the fusion, as the program shows it.

    Raises:
        KeyError: the program calls no such fusion.
    """
    return _named(trace, name).latest


def get_nvfuser_repro(trace: Trace, name: str) -> str:
    """Return a Python program that defines a fusion and runs it, for each layout of inputs that it was run with.

    Args:
        trace: the last stage of a compiled function.
        name: of the fusion, as the program shows it.

    Raises:
        KeyError: the program calls no such fusion.
    """
    return "\n\n".join(_named(trace, name).reproducers())


def _named(trace: Trace, name: str) -> Fusion:
    found = fusions_of(trace)
    if name not in found:
        raise KeyError(f"the program calls no fusion {name!r}; it calls {', '.join(found) or 'none'}")
    return found[name]


executor = NvFuserExecutor("nvfuser")

__all__ = [
    "NvFuserExecutor", "executor", "fusions_of", "get_fusion_source", "get_nvfuser_fusion_definition",
    "get_nvfuser_repro",
]  # fmt: skip
