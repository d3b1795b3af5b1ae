"""A stand-in for NVIDIA's driver, with which cuDNN makes plans on a machine that has none.

It says that there is no device, and that whatever is loaded is loaded. Nothing can run by it: a test double.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

GIVES_A_POINTER = """
    cuLibraryLoadData cuLibraryLoadFromFile cuLibraryGetKernel cuKernelGetFunction cuModuleLoadData cuModuleLoadDataEx
    cuModuleGetFunction
""".split()
SUCCEEDS = """
    cuLibraryUnload cuKernelGetAttribute cuKernelSetAttribute cuModuleUnload cuFuncGetAttribute cuFuncSetAttribute
""".split()
FAILS = """
    cuInit cuDriverGetVersion cuGetErrorName cuGetErrorString cuGetProcAddress cuGetProcAddress_v2 cuDeviceGet
    cuDeviceGetCount cuDeviceGetAttribute cuDevicePrimaryCtxRetain cuCtxCreate cuCtxCreate_v2 cuCtxDestroy
    cuCtxDestroy_v2 cuCtxGetCacheConfig cuCtxGetCurrent cuCtxGetDevice cuCtxGetLimit cuCtxPopCurrent cuCtxPopCurrent_v2
    cuCtxPushCurrent cuCtxPushCurrent_v2 cuCtxSetCurrent cuCtxSetLimit cuCtxSynchronize cuLaunchKernel cuLaunchKernelEx
    cuLaunchCooperativeKernel cuLibraryGetGlobal cuLibraryGetModule cuLinkAddData cuLinkAddData_v2 cuLinkComplete
    cuLinkCreate cuLinkCreate_v2 cuLinkDestroy cuMemcpyDtoH_v2 cuMemcpyHtoD_v2 cuMemGetInfo_v2 cuModuleGetGlobal_v2
    cuOccupancyMaxActiveBlocksPerMultiprocessor cuOccupancyMaxActiveClusters cuOccupancyMaxPotentialClusterSize
    cuStreamGetCtx cuStreamIsCapturing cuTensorMapEncodeIm2col cuTensorMapEncodeTiled
""".split()
NO_DEVICE = 100  # CUDA_ERROR_NO_DEVICE

LIBRARIES = (
    "cuda_runtime/lib/libcudart.so.12", "cuda_nvrtc/lib/libnvrtc.so.12", "cublas/lib/libcublasLt.so.12",
    "cublas/lib/libcublas.so.12", "cudnn/lib/libcudnn.so.9",
)  # fmt: skip
"""What cuDNN loads by name, in the wheels that bring it; first loaded what others need."""


def source() -> str:
    """Return the stand-in as C."""
    lines = ["static int thing;"]
    lines += [f"int {name}(void **made) {{ *made = &thing; return 0; }}" for name in GIVES_A_POINTER]
    lines += [f"int {name}(void) {{ return 0; }}" for name in SUCCEEDS]
    lines += [f"int {name}(void) {{ return {NO_DEVICE}; }}" for name in FAILS]
    return "\n".join([*lines, ""])


def load(folder: Path) -> None:
    """Compile the stand-in into ``folder`` and load it into this process, and the libraries that look for it.

    Raises:
        RuntimeError: there is no C compiler, or a library is missing.
    """
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))), None)
    if compiler is None:
        raise RuntimeError("the stand-in for the driver is compiled by a C compiler, and there is none: set CC")
    text, made = folder / "driver.c", folder / "libcuda.so.1"
    text.write_text(source(), encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", str(made), str(text)], check=True)
    ctypes.CDLL(str(made), mode=ctypes.RTLD_GLOBAL)
    for name in LIBRARIES:
        ctypes.CDLL(str(_wheel_file(name)), mode=ctypes.RTLD_GLOBAL)


def _wheel_file(name: str) -> Path:
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        if (Path(folder) / name).exists():
            return Path(folder) / name
    raise RuntimeError(f"there is no nvidia/{name}: install the wheels of cuDNN 9 for CUDA 12")


__all__ = ["load", "source"]
