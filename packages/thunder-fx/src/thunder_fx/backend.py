"""The backend of ``torch.compile``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.fx import GraphModule

from thunder_fx.dynamo import ThunderCompiler

OPTIONS = ("executors", "fallback")


def thunder(
    module: GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph that dynamo found: ``torch.compile(model, backend="thunder")``.

    Args:
        module: the graph.
        example_inputs: for it.
        options: ``executors``, in order of priority; ``fallback``, as :class:`ThunderCompiler` takes it.
        mode: of ``torch.compile``; there is but one here.

    Raises:
        ValueError: there is no such option or mode.
    """
    given = dict(options or {})
    if mode not in (None, "default") or set(given) - set(OPTIONS):
        raise ValueError(
            f"backend 'thunder' takes the options {', '.join(OPTIONS)} and no mode, got {sorted(given)} and {mode!r}"
        )
    return ThunderCompiler(**given)(module, example_inputs)


__all__ = ["thunder"]
