"""What is under way: the result of a collective that has begun and may not have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from thunder_distributed.ledger import Ledger
from thunder_ir import Device, TensorProxy


class InFlight(TensorProxy):
    """Stands for a tensor that other processes still send to; ``wait`` makes it a tensor that can be read."""

    __slots__ = ()

    @property
    def type_string(self) -> str:
        return f"{super().type_string}, in flight"


def in_flight(like: TensorProxy, shape: tuple[Any, ...] | None = None, device: Device | None = None) -> InFlight:
    """Return an unnamed proxy of something under way with the metadata of ``like``, but for what is given."""
    return InFlight(like.shape if shape is None else shape, like.dtype, device or like.device, like.requires_grad)


class CollectiveError(RuntimeError):
    """A collective did not end as it should: another process failed, hangs, or communicates something else."""


class Pending:
    """A collective that has begun.

    Args:
        result: the tensor that it fills.
        works: what to wait for.
        what: the collective in words, for errors.
        held: tensors that it reads, which must live until it has ended.
        ledger: of the axis, to which waiting is put down.
        finish: makes the result of the tensor that was filled.
    """

    __slots__ = ("finish", "held", "ledger", "result", "what", "works")

    def __init__(
        self,
        result: torch.Tensor,
        works: Sequence[Any],
        what: str,
        ledger: Ledger,
        held: Sequence[torch.Tensor] = (),
        finish: Callable[[torch.Tensor], torch.Tensor] | None = None,
    ) -> None:
        self.result, self.works, self.what, self.held = result, works, what, held
        self.ledger, self.finish = ledger, finish

    def wait(self) -> torch.Tensor:
        """Return the result once it is there.

        Raises:
            CollectiveError: it will not come.
        """
        try:
            with self.ledger.waiting():
                for work in self.works:
                    work.wait()
        except RuntimeError as error:
            raise CollectiveError(
                f"{self.what} did not end: {error}. Another process has died, hangs, or runs another program"
            ) from error
        self.held, self.works = (), ()
        return self.result if self.finish is None else self.finish(self.result)


class Waiting(Protocol):
    """What has begun, and is waited for."""

    def wait(self) -> torch.Tensor: ...


def wait(pending: Waiting) -> torch.Tensor:
    """Return the result of a collective, or of a copy, once it is there."""
    return pending.wait()


__all__ = ["CollectiveError", "InFlight", "Pending", "in_flight", "wait"]
