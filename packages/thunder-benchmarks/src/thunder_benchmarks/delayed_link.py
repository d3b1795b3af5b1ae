"""A link between two network namespaces that has a rate and a delay, on kernels whose ``tc`` has no ``netem``, too.

python -m thunder_benchmarks.delayed_link FIRST SECOND --rate 200mbit --delay 2ms

Makes a TUN device in each namespace, says so in a line, and forwards packets between both until it is ended; the
devices go with it. Takes Linux and its superuser.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import fcntl
import os
import re
import select
import struct
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

MTU = 9000
"""Bytes of a packet at most: few enough packets for a process in Python to keep up with a gigabit in a second."""

HELD = 4 << 20
"""Bytes on their way in one direction beyond which no more are taken; the sender's queue fills up instead."""

_TUNSETIFF, _IFF_TUN, _IFF_NO_PI = 0x400454CA, 0x0001, 0x1000  # linux/if_tun.h
_RATES = {"kbit": 1e3, "mbit": 1e6, "gbit": 1e9}
_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def quantity(text: str, units: dict[str, float]) -> float:
    """Return what a number with a unit says.

    Example:
        >>> quantity("200mbit", {"kbit": 1e3, "mbit": 1e6})
        200000000.0

    Raises:
        ValueError: it is no number with one of the units.
    """
    found = re.fullmatch(r"([0-9.]+)([a-z]+)", text)
    if found is None or found[2] not in units:
        raise ValueError(f"{text!r} is no number with a unit: one of {', '.join(units)}")
    return float(found[1]) * units[found[2]]


def bits_per_second(rate: str) -> float:
    """Return what a rate such as ``"1gbit"`` says; raises :class:`ValueError` as :func:`quantity` does."""
    return quantity(rate, _RATES)


def seconds(delay: str) -> float:
    """Return what a time such as ``"2ms"`` says; raises :class:`ValueError` as :func:`quantity` does."""
    return quantity(delay, _TIMES)


@dataclass(slots=True)
class Direction:
    """Packets on their way from one device to the other.

    Args:
        source, target: file descriptors of the devices.
        rate: in bits a second.
        delay: of every packet, in seconds.
    """

    source: int
    target: int
    rate: float
    delay: float
    packets: deque[tuple[float, bytes]] = field(default_factory=deque)
    bytes: int = 0
    free: float = 0.0
    """When the last packet has left the sender."""

    def take(self, now: float) -> None:
        """Take packets that were sent."""
        while self.bytes < HELD:
            try:
                packet = os.read(self.source, MTU)
            except BlockingIOError:
                return
            self.free = max(now, self.free) + len(packet) * 8 / self.rate
            self.packets.append((self.free + self.delay, packet))
            self.bytes += len(packet)

    def deliver(self, now: float) -> None:
        """Hand over the packets whose time has come."""
        while self.packets and self.packets[0][0] <= now:
            packet = self.packets.popleft()[1]
            self.bytes -= len(packet)
            try:
                os.write(self.target, packet)
            except OSError as error:
                if error.errno != errno.EIO:  # the other end is down: the packet is lost
                    raise


def device(namespace: str, name: str) -> int:
    """Make a TUN device in a namespace, where this thread is afterwards; return its file descriptor.

    Raises:
        OSError: no such namespace, or not the superuser.
    """
    with open(f"/var/run/netns/{namespace}", "rb") as entry:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(entry.fileno(), 0):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(made, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return made


def forward(first: int, second: int, rate: float, delay: float) -> None:
    """Forward packets between two devices without end.

    Args:
        first, second: file descriptors.
        rate: of each direction, in bits a second.
        delay: of every packet, in seconds.
    """
    directions = (Direction(first, second, rate, delay), Direction(second, first, rate, delay))
    while True:
        due = [d.packets[0][0] for d in directions if d.packets]
        wait = max(min(due) - time.monotonic(), 0.0) if due else None
        select.select([d.source for d in directions if d.bytes < HELD], [], [], wait)
        now = time.monotonic()
        for direction in directions:
            direction.take(now)
            direction.deliver(now)


def main(words: Sequence[str] | None = None) -> None:
    """Make the link, and keep it up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("namespaces", nargs=2)
    parser.add_argument("--device", default="tun0", help="the name of both devices")
    parser.add_argument("--rate", required=True)
    parser.add_argument("--delay", required=True)
    options = parser.parse_args(words)
    try:
        rate, delay = bits_per_second(options.rate), seconds(options.delay)
    except ValueError as error:
        parser.error(str(error))
    first, second = (device(namespace, options.device) for namespace in options.namespaces)
    print("devices made", flush=True)
    forward(first, second, rate, delay)


if __name__ == "__main__":
    main()
