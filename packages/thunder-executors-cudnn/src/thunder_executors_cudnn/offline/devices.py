"""Devices that are not here, described as the library describes one."""

from __future__ import annotations

import json

from thunder_executors_cudnn.plans import Target

KIB = 1024
# What NVIDIA's tables of compute capabilities and its data sheets say of A100 (80 GB), H100 (SXM) and B200.
_DIFFERENT = {
    80: {
        "deviceName": "A100", "multiProcessorCount": 108, "maxSharedMemoryPerBlockOptin": 163 * KIB,
        "totalGlobalMem": 80 << 30, "smClockRateKHz": 1_410_000, "memClockRateKHz": 1_593_000,
        "memoryBusWidth": 5120, "l2CacheSize": 40 << 20,
    },
    90: {
        "deviceName": "H100", "multiProcessorCount": 132, "maxSharedMemoryPerBlockOptin": 227 * KIB,
        "totalGlobalMem": 80 << 30, "smClockRateKHz": 1_980_000, "memClockRateKHz": 2_619_000,
        "memoryBusWidth": 5120, "l2CacheSize": 50 << 20,
    },
    100: {
        "deviceName": "B200", "multiProcessorCount": 148, "maxSharedMemoryPerBlockOptin": 227 * KIB,
        "totalGlobalMem": 180 << 30, "smClockRateKHz": 1_965_000, "memClockRateKHz": 3_996_000,
        "memoryBusWidth": 8192, "l2CacheSize": 126 << 20,
    },
}  # fmt: skip
_SAME = {
    "driverVer": 12090,
    "cudaDeviceId": 0,
    "maxGridSize": [2**31 - 1, 65_535, 65_535],
    "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65_536,
    "smCountOrigin": 0,
    "warpSize": 32,
    "maxSharedMemoryPerBlock": 48 * KIB,
    "oversizedSharedMemoryPerBlock": 0,
    "reservedSharedMemoryPerBlock": KIB,
    "maxRegistersPerSM": 65_536,
    "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "pciDeviceId": 1,
    "isTccDriver": 0,
    "supportCoopLaunch": 1,
}
CAPABILITIES = tuple(_DIFFERENT)


def described(capability: int) -> Target:
    """Return the device of a compute capability, times ten: 80, 90 or 100."""
    properties = {"deviceVer": capability * 10, **_SAME, **_DIFFERENT[capability]}
    processors = properties["multiProcessorCount"]
    assert isinstance(processors, int)
    return Target(capability, processors, properties=json.dumps(properties))


__all__ = ["CAPABILITIES", "described"]
