"""What copies between the memories of a host and of its device, beside what is computed."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch

from thunder_ir import Device
from thunder_torch import to_torch_device


class Copy:
    """A copy that has begun.

    Args:
        result: the tensor that it fills.
        done: when it is there; ``None`` if it is.
        source: what is copied, which must live until then.
    """

    __slots__ = ("done", "result", "source")

    def __init__(self, result: torch.Tensor, done: Any = None, source: torch.Tensor | None = None) -> None:
        self.result, self.done, self.source = result, done, source

    def wait(self) -> torch.Tensor:
        """Return the result: at once on a device, whose own work then waits for it; once it is there on the host."""
        if self.done is not None:
            if self.result.device.type == "cpu":
                self.done.synchronize()
            else:
                current = torch.get_device_module(self.result.device).current_stream(self.result.device)
                current.wait_event(self.done)
                self.result.record_stream(current)
            self.done = self.source = None
        return self.result


def copy_to(a: torch.Tensor, device: Device) -> Copy:
    """Begin to copy a tensor: on a stream of its own, if that is between a host and its device."""
    target = to_torch_device(device)
    streams = [d for d in (a.device, target) if d.type not in ("cpu", "meta")]
    if len(streams) != 1:
        return Copy(a.to(target, copy=True))
    module: Any = torch.get_device_module(streams[0])
    side = _stream(streams[0])
    if target.type == "cpu":
        side.wait_stream(module.current_stream(streams[0]))
        result = torch.empty_like(a, device=target, pin_memory=True)
    with module.stream(side):
        if target.type != "cpu":
            result = torch.empty_like(a, device=target)  # of the stream that writes to it first
        result.copy_(a, non_blocking=True)
        done = module.Event()
        done.record(side)
    if target.type == "cpu":
        a.record_stream(side)
    return Copy(result, done, a)


@cache
def _stream(device: torch.device) -> Any:
    return torch.get_device_module(device).Stream(device)


__all__ = ["Copy", "copy_to"]
