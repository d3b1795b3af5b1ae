"""Re-exports :mod:`thunder_ir.devices`, with the conversions from and to PyTorch's."""

from typing import Any

from thunder_ir.devices import *  # noqa: F403
from thunder_ir.devices import Device, device
from thunder_torch import from_torch_device
from thunder_torch import to_torch_device as to_torch_device


def to_device(what: Any) -> Device:
    """Return Thunder's device for a name, for PyTorch's, or for itself."""
    return device(what) if isinstance(what, str | Device) else from_torch_device(what)
