"""Devices, without asking any of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from thunder_ir.errors import DeviceError


class DeviceType(Enum):
    """The kinds of device that a tensor can live on."""

    CPU = "cpu"
    CUDA = "cuda"
    META = "meta"
    MPS = "mps"
    XPU = "xpu"


@dataclass(frozen=True, slots=True)
class Device:
    """A device: its type and, where there are several of it, which one.

    Example:
        >>> from thunder_ir import device
        >>> device("cuda:1"), device("cpu").type
        (cuda:1, 'cpu')
    """

    devicetype: DeviceType
    index: int | None = None

    @property
    def type(self) -> str:
        """Name of the device's type, ``"cuda"``."""
        return self.devicetype._value_  # which enumerations look up in some ten times the time of this

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        return str(self)


cpu = Device(DeviceType.CPU)
meta = Device(DeviceType.META)


def device(what: str | Device, index: int | None = None) -> Device:
    """Return the device that a text such as ``"cuda:0"`` names.

    Args:
        what: ``"<type>"`` or ``"<type>:<index>"``, or a device, which is returned as it is.
        index: which one of its type; only where ``what`` does not say.

    Raises:
        DeviceError: the text names no device, or an index is given twice or not as a number.
    """
    if isinstance(what, Device):
        return what if index is None else Device(what.devicetype, index)
    kind, colon, number = what.partition(":")
    names = [t.value for t in DeviceType]
    if kind not in names or (colon and not number.isdecimal()):
        raise DeviceError(f"{what!r} names no device; a device is '<type>' or '<type>:<index>' with a type of {names}")
    if colon and index is not None:
        raise DeviceError(f"the index of {what!r} is given twice")
    if colon:
        index = int(number)
    if kind == "cuda" and index is None:
        index = 0
    if kind == "cpu" and index is None:
        return cpu  # the one that is looked for by identity first
    return Device(DeviceType(kind), index)
