"""What this package's prims are made with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from enum import Enum, auto
from typing import Any

from thunder_ir import Namespace, OpTags, Symbol
from thunder_prims import strict

DIST_PRIMS = Namespace("dist_prims", "thunder_distributed.prims")


class Does(Enum):
    """What a call has to do with communication: what passes over collectives ask, on whosever operator it is."""

    REDUCE = auto()  # begins the sum over all processes
    GATHER = auto()  # begins the gathering of shards
    SCATTER = auto()  # begins the sum over all processes, of which each gets its shard
    EXCHANGE = auto()  # begins another collective
    WAIT = auto()  # waits for what was begun
    PACK = auto()  # lays tensors out in one buffer
    UNPACK = auto()  # finds tensors in a buffer

    __hash__ = object.__hash__


class CollectivePrim(Symbol):
    """A symbol whose calls are recorded with all arguments, positional ones only, however they are written."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Record a call and return its output proxies.

        Raises:
            TypeError: an argument is missing, given twice or not known.
        """
        assert self.meta is not None, "a prim has a meta function"
        bound = inspect.signature(self.meta).bind(*args, **kwargs)
        bound.apply_defaults()
        return super().__call__(*bound.args)


def collective(*tags: Any) -> Callable[[Callable[..., Any]], CollectivePrim]:
    """Make the decorated meta function a prim of this package.

    Args:
        tags: traits that passes rely on.
    """

    def make(meta: Callable[..., Any]) -> CollectivePrim:
        return CollectivePrim(
            meta.__name__, DIST_PRIMS, meta=meta, tags=frozenset(tags), language=strict, doc=meta.__doc__ or ""
        )

    return make


COMMUNICATES = OpTags.COLLECTIVE


class Owned(Enum):
    """The tag of a collective whose argument nobody else reads, and is scaled already."""

    OWNED = auto()


OWNED = Owned.OWNED

__all__ = ["COMMUNICATES", "DIST_PRIMS", "OWNED", "CollectivePrim", "Does", "collective"]
