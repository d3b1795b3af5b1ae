"""Dynamo finds graphs, Thunder compiles them: a backend, and ``thunderfx``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.fx import GraphModule

from thunder_fx.splits import Part, Specialised
from thunder_ir import Trace


class ThunderCompiler:
    """A backend of ``torch.compile`` that remembers what it compiled, and what it left to PyTorch and why.

    Args:
        executors: in order of priority; ``None`` for the defaults.
        fallback: ``"split"`` leaves what cannot be recorded to PyTorch, ``"error"`` raises.

    Raises:
        ValueError: there is no such fallback.

    Example:
        >>> import torch
        >>> from thunder_fx import ThunderCompiler
        >>> backend = ThunderCompiler()
        >>> model = torch.compile(lambda x: x.sin() + 1, backend=backend)
        >>> model(torch.zeros(2))
        tensor([1., 1.])
        >>> print(backend.report())
        graph 1: 2 calls compiled
    """

    def __init__(self, executors: Sequence[Any] | None = None, fallback: str = "split") -> None:
        if fallback not in ("split", "error"):
            raise ValueError(f"fallback is 'split' or 'error', got {fallback!r}")
        self.executors = executors
        self.splits = fallback == "split"
        self.graphs: list[Specialised] = []

    def __call__(self, module: GraphModule, example_inputs: Sequence[Any]) -> Callable[..., Any]:
        """Compile a graph that dynamo found."""
        made = Specialised(module, self.executors, self.splits)
        self.graphs.append(made)
        return made

    @property
    def parts(self) -> list[Part]:
        """The parts of all graphs, as they were compiled."""
        return [part for graph in self.graphs for part in graph.parts]

    def report(self) -> str:
        """Return what was compiled, and what was left to PyTorch and why, a line for each part."""
        lines = []
        for i, graph in enumerate(self.graphs, 1):
            for part in graph.parts:
                told = f"{part.nodes} calls compiled" if part.compiled is not None else f"PyTorch runs {part.reason}"
                lines.append(f"graph {i}: {told}")
            if graph.fixed:
                lines.append(f"graph {i}: a program for each size, as {graph.fixed}")
        return "\n".join(lines)


class ThunderFX:
    """A callable or a module whose graphs dynamo finds and Thunder compiles; see :func:`thunderfx`.

    Args:
        function: what is compiled.
        backend: what compiles its graphs.
        options: of ``torch.compile``.
    """

    def __init__(self, function: Any, backend: ThunderCompiler, options: Mapping[str, Any]) -> None:
        self.function = function
        self.backend = backend
        self._compiled = torch.compile(function, backend=backend, **options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call it."""
        return self._compiled(*args, **kwargs)  # type: ignore[no-untyped-call]

    def report(self) -> str:
        """Return what was compiled, and what was left to PyTorch and why."""
        return self.backend.report()

    @property
    def last_traces(self) -> list[Trace]:
        """The stages of the programs that were compiled, or of their forward parts."""
        return [t for p in self.backend.parts if p.compiled is not None for t in p.compiled.ready.traces]

    @property
    def last_backward_traces(self) -> list[Trace]:
        """The stages of their backward parts."""
        return [t for p in self.backend.parts if p.compiled is not None for t in p.compiled.ready.backward_traces]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)


def thunderfx(
    function: Any,
    /,
    *,
    executors: Sequence[Any] | None = None,
    fallback: str = "split",
    compile_options: Mapping[str, Any] | None = None,
) -> ThunderFX:
    """Compile a callable or a module whose graphs dynamo finds; between them Python runs.

    Args:
        function: what is compiled.
        executors: in order of priority; ``None`` for the defaults.
        fallback: ``"split"`` leaves what cannot be recorded to PyTorch, ``"error"`` raises.
        compile_options: of ``torch.compile``, such as ``dynamic`` and ``fullgraph``.

    Example:
        >>> import torch
        >>> from thunder_fx import thunderfx
        >>> model = thunderfx(torch.nn.Linear(3, 2))
        >>> model(torch.ones(4, 3)).shape
        torch.Size([4, 2])
        >>> print(model.report())
        graph 1: 1 calls compiled
    """
    return ThunderFX(function, ThunderCompiler(executors, fallback), dict(compile_options or {}))


__all__ = ["ThunderCompiler", "ThunderFX", "thunderfx"]
