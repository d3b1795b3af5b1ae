"""Compiling in several threads: one at a time is inside of Inductor, the others wait for compilers of kernels."""

from __future__ import annotations

import contextlib
import contextvars
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, TypeVar
from unittest import mock

import torch
from torch._inductor.async_compile import AsyncCompile
from torch._inductor.codecache import LambdaFuture

Result = TypeVar("Result")
_turn: contextvars.ContextVar[threading.Lock | None] = contextvars.ContextVar("turn", default=None)


def in_parallel(jobs: Sequence[Callable[[], Result]], threads: int) -> list[Result | None]:
    """Call functions that compile by Inductor, in some threads, and return their results; ``None`` for one that raised.

    A module of kernels, once written, starts the compilers of all its kernels, and waits for them by
    ``AsyncCompile.wait``. There the turn goes to another thread.

    Args:
        jobs: what is called; Inductor's lock and its settings are the caller's.
        threads: how many there are at most.
    """
    turn = threading.Lock()
    inside = _on_this_device()

    def run(job: Callable[[], Result]) -> Result:
        _turn.set(turn)
        with turn, inside():
            return job()

    with _turns_at_waiting(), ThreadPoolExecutor(min(threads, len(jobs))) as pool:
        futures = [pool.submit(contextvars.copy_context().run, run, job) for job in jobs]
        try:
            return [None if future.exception() is not None else future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _on_this_device() -> Callable[[], contextlib.AbstractContextManager[Any]]:
    """Return a context in which a thread has the GPU of this one."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return contextlib.nullcontext
    index = torch.cuda.current_device()
    return lambda: torch.cuda.device(index)


@contextlib.contextmanager
def _turns_at_waiting() -> Iterator[None]:
    whole = AsyncCompile.wait

    def wait_in_turns(self: AsyncCompile, scope: dict[str, Any]) -> None:
        turn = _turn.get()
        if turn is not None:
            turn.release()
            try:
                _settle(scope)
            finally:
                turn.acquire()
        whole(self, scope)

    with mock.patch.object(AsyncCompile, "wait", wait_in_turns):
        yield


def _settle(scope: dict[str, Any]) -> None:
    """Wait until the compilers of a module's kernels have ended; what they made, or raised, is taken in a turn."""
    for value in list(scope.values()):
        if isinstance(value, LambdaFuture):
            if value.future is not None:
                wait([value.future])
            else:
                value.result()  # of a C++ compiler: it loads the library, and returns the same when asked again


__all__ = ["in_parallel"]
