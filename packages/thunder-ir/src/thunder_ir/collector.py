"""Python's cyclic garbage collector, and why it is kept still while programs are made."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused(lasts: bool = False) -> Iterator[None]:
    """Keep the cyclic garbage collector from running, within a ``with`` block or a decorated function.

    While a program is made or rewritten nearly all new objects live on, and a full collection, which goes over every
    object of the process, takes longer than many a pass. What is unreachable is collected afterwards, as ever.

    Args:
        lasts: whether all that is made is there to stay, as modules are: no collection of what is young goes over it.

    Example:
        >>> import gc
        >>> from thunder_ir import collector_paused
        >>> with collector_paused():
        ...     gc.isenabled()
        False
        >>> gc.isenabled()
        True
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if lasts and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()  # they are among the old ones now
        if enabled:
            gc.enable()
