"""What of ``torch.distributed`` a program cannot hold, with the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._library_code.collectives import WRITTEN_OUT, refuse
from thunder_guards.errors import AcquisitionError

FULLY_SHARDED = (
    "fully_shard gathers the parameters of a module before its forward runs, outside of what is compiled; compile "
    "the forward alone, of each module that is sharded, before that: module.forward = thunder.jit(module.forward), "
    "then fully_shard(module)"
)
_WRAPPERS = {
    "DistributedDataParallel": (
        "DistributedDataParallel synchronises gradients outside of what is compiled; compile the module that it wraps: "
        "DistributedDataParallel(thunder.jit(module))"
    ),
    "FullyShardedDataParallel": (
        "FullyShardedDataParallel gathers parameters outside of what is compiled; compile the module that it wraps: "
        "FullyShardedDataParallel(thunder.jit(module))"
    ),
    "FSDPModule": FULLY_SHARDED,
}
"""What a module that is called may be derived from, by name, with the refusal."""

_COLLECTIVES = (
    "all_gather_object all_to_all all_to_all_single barrier broadcast_object_list gather gather_object irecv isend "
    "recv reduce reduce_scatter scatter scatter_object_list send"
).split()


def refuse_wrappers(module: torch.nn.Module) -> None:
    """Refuse modules around others that do their part outside of any program.

    Raises:
        AcquisitionError: it is one.
    """
    for cls in type(module).__mro__:
        if cls.__name__ in _WRAPPERS and cls.__module__.startswith("torch."):
            raise AcquisitionError(_WRAPPERS[cls.__name__])


def _refusal(name: str) -> Callable[..., Any]:
    def refused(*args: Any, **kwargs: Any) -> None:
        refuse(name)

    return refused


COLLECTIVES: dict[Any, Any] = {
    **WRITTEN_OUT,
    **{
        getattr(torch.distributed, name): _refusal(name)
        for name in _COLLECTIVES
        if torch.distributed.is_available() and hasattr(torch.distributed, name)
    },
}
"""What is called in place of collectives."""
