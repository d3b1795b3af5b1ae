"""What this package's prims are made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from thunder_ir import Namespace, OpTags, register_literal
from thunder_prims.prim import Prim, R, prim

DIST_PRIMS = Namespace("dist_prims", "thunder_distributed.prims")


class Does(Enum):
    """What a call has to do with communication: what passes over collectives ask, on whosever operator it is."""

    REDUCE = auto()  # begins the sum over all processes
    GATHER = auto()  # begins the gathering of shards
    SCATTER = auto()  # begins the sum over all processes, of which each gets its shard
    EXCHANGE = auto()  # begins another collective
    COPY = auto()  # begins a copy between the memories of a host and of its device
    WAIT = auto()  # waits for what was begun
    PACK = auto()  # lays tensors out in one buffer
    UNPACK = auto()  # finds tensors in a buffer
    TAKE = auto()  # takes what was kept of a gradient until it is synchronised
    REST = auto()  # synchronises parts of a model at the end of a program
    COMPARE = auto()  # compares with other processes which program they run

    __hash__ = object.__hash__


def collective(*tags: Any) -> Callable[[Callable[..., R]], Prim[R]]:
    """Make the decorated meta function a prim of this package.

    Args:
        tags: traits that passes rely on.
    """
    return prim(*tags, namespace=DIST_PRIMS)


COMMUNICATES = OpTags.COLLECTIVE

AT_THE_END = frozenset({OpTags.DONT_DCE, OpTags.DEVICE_SYNC, COMMUNICATES, Does.REST})
"""The tags of a call that synchronises parts of a model when the rest of a program has run."""


@dataclass(frozen=True)
class Named:
    """Parts of a model, which are told from others by their names: these are the same in all processes.

    Args:
        names: in the model.
        held: what this process knows of them.
    """

    names: tuple[str, ...]
    held: Any = field(repr=False, compare=False)


register_literal(Named, lambda named, context: context.object(named, "named"))


class Owned(Enum):
    """The tag of a collective whose argument nothing else reads: it may be written to."""

    OWNED = auto()


OWNED = Owned.OWNED


@dataclass(frozen=True)
class Together:
    """The tag of a collective of several tensors.

    Args:
        places: of these tensors in the model.
    """

    places: tuple[int, ...]


__all__ = ["AT_THE_END", "COMMUNICATES", "DIST_PRIMS", "OWNED", "Does", "Named", "Together", "collective"]
