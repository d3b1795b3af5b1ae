"""Compile every kernel for GPUs that are not here, and say what each needs.

Run as ``python -m thunder_executors_triton.offline``. Registers and local memory (where registers spill to) are read
from the compiled code by the tool that Triton brings.
"""

from __future__ import annotations

import argparse
import importlib
import math
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from thunder_executors_triton.fusion.render import Kernel
from thunder_executors_triton.fusion.runner import function_of
from thunder_executors_triton.fusion.tiles import tile_of
from thunder_executors_triton.kernels.launch import warps_of
from thunder_ir import dtypes
from thunder_loops import Buffer

ARCHITECTURES = (80, 90, 100)
SHARED = {80: 166_912, 90: 232_448, 100: 232_448}  # bytes a program may have; NVIDIA's tables of compute capabilities
MOST_SPILLED = 512  # bytes of local memory a thread may need; rows of 16,384 elements are held in them
TYPES = {
    dtypes.bool8: "i1", dtypes.uint8: "u8", dtypes.int8: "i8", dtypes.int16: "i16", dtypes.int32: "i32",
    dtypes.int64: "i64", dtypes.float16: "fp16", dtypes.bfloat16: "bf16", dtypes.float32: "fp32",
    dtypes.float64: "fp64",
}  # fmt: skip
HEAD = """# What each kernel needs

Written by `python -m thunder_executors_triton.offline --out packages/thunder-executors-triton/RESOURCES.md`, which
compiles every kernel with Triton {version} for GPUs of three architectures, on a machine without one. Registers and
bytes of local memory (stack and spilled registers, at most {most}) are those of a thread; bytes of shared memory
those of a program.
"""
NORMS = ((True, True, True), (True, True, False), (True, False, False), (False, True, False), (False, False, False))
"""Whether a norm subtracts the mean, and has a weight and a bias."""
DIVISIBLE = [["tt.divisibility", 16]]  # what the launcher finds of addresses and of most sizes


@dataclass(frozen=True)
class Case:
    """One kernel with one choice of types and constants.

    Args:
        module: below ``thunder_executors_triton.kernels``.
        kernel: its name there.
        types: of the arguments that are no constants, in order, separated by blanks.
        constants: values of the others.
        warps: of a program.
    """

    module: str
    kernel: str
    types: str
    constants: tuple[tuple[str, Any], ...]
    warps: int

    def __str__(self) -> str:
        constants = ", ".join(f"{name}={value}" for name, value in self.constants)
        return f"{self.kernel} ({self.types.split()[0]}, {constants})"


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel needs.

    Args:
        registers: of a thread.
        local: bytes of local memory of a thread: its stack, and what registers spill.
        shared: bytes of shared memory of a program.
    """

    registers: int
    local: int
    shared: int


def cases() -> Iterator[Case]:
    """Every kernel with all that it may be asked for, for short and for long rows."""
    for t in ("*bf16", "*fp16", "*fp32"):
        for block in (1024, 16_384):
            size = (("BLOCK", block),)
            warps = warps_of(block)
            loss = f"{t} *i64 *fp32 {t} *fp32 i32 i32 i32 i32 fp32"
            for gradient in (True, False):
                yield Case("cross_entropy", "cross_entropy_kernel", loss, (("WITH_GRADIENT", gradient), *size), warps)
            yield Case("softmax", "softmax_kernel", f"{t} {t} i32 i32", size, warps)
            yield Case("softmax", "softmax_backward_kernel", f"{t} {t} {t} i32 i32 i32", size, warps)
            for centred, weight, bias in NORMS:
                flags = (("CENTRED", centred), ("HAS_WEIGHT", weight), ("HAS_BIAS", bias), *size)
                forward = f"{t} {t} {t} {t} *fp32 *fp32 i32 i32 i32 fp32"
                backward = f"{t} {t} {t} *fp32 *fp32 {t} *fp32 *fp32 i32 i32 i32 i32"
                summed = f"{t} {t} {t} {t} {t} {t} *fp32 *fp32 i32 fp32 fp32 i32"
                few = (("CENTRED", centred), ("HAS_BIAS", bias), *size)
                yield Case("normalization", "norm_kernel", forward, flags, warps)
                yield Case("normalization", "norm_backward_kernel", backward, flags, warps)
                if weight:
                    yield Case("dropout_add_norm", "dropout_add_norm_kernel", summed, few, warps)
        one = (("BLOCK", 1024),)
        yield Case("gates", "swiglu_kernel", f"{t} {t} {t} i32", one, 4)
        yield Case("gates", "swiglu_backward_kernel", f"{t} {t} {t} {t} {t} i32", one, 4)
        yield Case("dropout_add_norm", "dropout_kernel", f"{t} {t} i32 fp32 i32", one, 4)
        for inverse in (False, True):
            turned = (("INVERSE", inverse), ("BLOCK", 64))
            yield Case("rotary", "rotary_kernel", f"{t} {t} {t} {t}" + " i32" * 7, turned, 1)
        step = f"*i64 *i64 *i64 *i64 *i64 *i64 *i64 {t}" + " fp32" * 7
        yield Case("adamw", "adamw_kernel", step, one, 4)


def compiled(case: Case, architecture: int) -> Resources:
    """Compile for one architecture, such as 90, and read what the code needs.

    Raises:
        triton.compiler.errors.CompilationError: the kernel is no program of Triton's.
        subprocess.CalledProcessError: the tool that reads compiled code failed.
    """
    kernel = getattr(importlib.import_module(f"thunder_executors_triton.kernels.{case.module}"), case.kernel)
    constants = dict(case.constants)
    free = [name for name in kernel.arg_names if name not in constants]
    types = dict(zip(free, case.types.split(), strict=True))
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    attributes = {(i,): DIVISIBLE for i, name in enumerate(kernel.arg_names) if types.get(name, "").startswith("*")}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    return _resources(source, architecture, case.warps, fused=True)


def region_resources(buffers: Mapping[str, Buffer], kernel: Kernel, architecture: int) -> Resources:
    """Compile the kernel of a region, as it is launched for the sizes that are known, and read what it needs.

    Args:
        buffers: of its loop program, by name.
        kernel: as rendered.
        architecture: such as 90.
    """
    points, elements = (
        math.prod([a.size if isinstance(a.size, int) else 1024 for a in axes]) for axes in (kernel.free, kernel.reduced)
    )
    tile = tile_of(kernel, points, elements)
    if tile is None:
        return Resources(0, 0, 0)  # PyTorch runs it
    _, made = function_of(kernel, tile.looped)
    types = {b: f"{'' if buffers[b].is_number else '*'}{TYPES[buffers[b].dtype]}" for b in kernel.buffers}
    blocks = {"POINTS": tile.points, "ELEMENTS": tile.elements, "BLOCK": tile.choices[0].block, "WIDE": False}
    constants = {name: value for name, value in blocks.items() if name in made.arg_names}
    signature = {name: types.get(name, "constexpr" if name in constants else "i32") for name in made.arg_names}
    attributes = {(i,): DIVISIBLE for i, name in enumerate(made.arg_names) if types.get(name, "").startswith("*")}
    source = ASTSource(fn=made, signature=signature, constexprs=constants, attrs=attributes)
    return _resources(source, architecture, tile.choices[0].warps, fused=False)


def _resources(source: ASTSource, architecture: int, warps: int, fused: bool) -> Resources:
    options = {"num_warps": warps, "enable_fp_fusion": fused}
    found = triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options)
    registers, local = _usage(found.asm["cubin"])
    return Resources(registers, local, found.metadata.shared)


def _usage(code: bytes) -> tuple[int, int]:
    tool = triton.knobs.nvidia.cuobjdump.path
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        done = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True)
    text = done.stdout + done.stderr
    numbers = {name: int(value) for name, value in re.findall(r"\b(REG|STACK|LOCAL):(\d+)", text)}
    return numbers["REG"], numbers["STACK"] + numbers["LOCAL"]


def table(architectures: tuple[int, ...] = ARCHITECTURES, most: int | None = None) -> tuple[list[str], list[str]]:
    """Return a table in Markdown of what each kernel needs on each architecture, and what is over a limit."""
    head = "".join(f" sm_{a} registers | local | shared |" for a in architectures)
    lines = [f"| kernel | warps |{head}", "|---|---|" + "---|---|---|" * len(architectures)]
    over = []
    for case in list(cases())[:most]:
        cells = [f"| `{case}` | {case.warps} |"]
        for architecture in architectures:
            needs = compiled(case, architecture)
            cells.append(f" {needs.registers} | {needs.local} | {needs.shared} |")
            if needs.local > MOST_SPILLED or needs.shared > SHARED[architecture]:
                over.append(f"{case} on sm_{architecture}: {needs}")
        lines.append("".join(cells))
    return lines, over


def main() -> int:
    """Print the table, or write it to a file; the exit status says whether all is within the limits."""
    parser = argparse.ArgumentParser(description="Compile every kernel for GPUs that are not here.")
    parser.add_argument("--out", type=Path, help="where the table goes; to the terminal if not given")
    parser.add_argument("--most", type=int, help="kernels to compile; all if not given")
    words = parser.parse_args()
    lines, over = table(most=words.most)
    text = "\n".join([HEAD.format(version=triton.__version__, most=MOST_SPILLED), *lines, ""])
    if words.out:
        words.out.write_text(text, encoding="utf-8")
    else:
        print(text)
    print("\n".join(over) or "all within the limits", file=sys.stderr)
    return bool(over)


if __name__ == "__main__":
    sys.exit(main())
