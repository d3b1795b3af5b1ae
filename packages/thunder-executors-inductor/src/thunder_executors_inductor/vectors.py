"""Whether the vector instructions of this machine are known to work, so that Inductor need not try them."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import torch
from torch._inductor.cpp_builder import get_cpp_compiler

from thunder_ir import TensorProxy, Trace

FLAGS = {
    "AVX512": ("-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx512bw", "-mfma"),
    "AVX2": ("-mavx2", "-mfma", "-mf16c"),
}
"""Of the C++ compiler, for each name that PyTorch has for what its kernels use."""


def settings_for(trace: Trace) -> dict[str, bool]:
    """Return the settings of Inductor that spare a program on a CPU its trials of vector instructions.

    In each empty cache, Inductor compiles and loads a program for each kind of instructions, which takes longer than
    the kernels of a model's regions. A user's own setting stays.
    """
    of_cpu = any([isinstance(p, TensorProxy) and p.device.type == "cpu" for p in (*trace.inputs, *trace.outputs)])
    return {"cpp.vec_isa_ok": True} if of_cpu and "TORCHINDUCTOR_VEC_ISA_OK" not in os.environ and known() else {}


@cache
def known() -> bool:
    """Whether PyTorch's library and the C++ compiler both have the widest instructions of this processor.

    What Inductor tries is whether the functions of vectors that its kernels call are in PyTorch's library, and whether
    the compiler knows the instructions. The library says that its own kernels are of the same functions.
    """
    if not hasattr(torch.cpu, "get_capabilities"):  # as in PyTorch 2.9
        return False
    has = torch.cpu.get_capabilities()
    widest = "AVX512" if has.get("avx512_f") else "AVX2" if has.get("avx2") else ""
    if sys.platform != "linux" or torch.backends.cpu.get_cpu_capability() != widest or widest not in FLAGS:
        return False
    command = [get_cpp_compiler(), *FLAGS[widest], "-E", "-x", "c++", os.devnull]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


__all__ = ["FLAGS", "known", "settings_for"]
