"""Object files come into memory without LLVM, where they are as kernels are; others are left to LLVM."""

import ctypes
import math
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from thunder_executors_llvm import binding, compiler, executor, objects
from thunder_executors_llvm.disk import Disk
from thunder_executors_llvm.loading import in_memory

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"it cannot run: {executor.missing()}")
elf = pytest.mark.skipif(
    not sys.platform.startswith("linux") or os.uname().machine != "x86_64", reason="files are read as Linux has them"
)

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
KERNEL = """
declare double @far(double)
@table = private constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]
define double @helper(double %x) noinline {
  %place = fptosi double %x to i64
  %at = getelementptr [4 x double], ptr @table, i64 0, i64 %place
  %found = load double, ptr %at
  ret double %found
}
define double @kernel(double %x) {
  %listed = call double @helper(double %x)
  %called = call double @far(double %listed)
  %sum = fadd double %called, 0x400921FB54442D18
  ret double %sum
}
"""
WRITES = """
@count = global double 0.0
define double @kernel(double %x) {
  store double %x, ptr @count
  ret double %x
}
"""
FROM_LIBRARY = """
declare double @cos(double)
define double @kernel(double %x) {
  %y = call double @cos(double %x)
  ret double %y
}
"""


COPIES = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @copy(ptr %to, ptr %from, i64 %bytes) {
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 %bytes, i1 false)
  ret void
}
"""


def compiled(text):
    return binding.compile_object(text, binding.host())


def cosine():
    return {"far": ctypes.cast(ctypes.CDLL("libm.so.6").cos, ctypes.c_void_p).value}


@elf
def test_code_finds_its_constants_its_functions_and_those_that_are_far_away():
    found = objects.load_object(compiled(KERNEL), ["kernel", "helper"], cosine())
    assert [FUNCTION(found["helper"])(float(i)) for i in range(4)] == [1, 2, 4, 8]
    assert [FUNCTION(found["kernel"])(float(i)) for i in range(4)] == [math.cos(2**i) + math.pi for i in range(4)]


@elf
def test_code_that_copies_calls_the_c_library():
    address = objects.load_object(compiled(COPIES), ["copy"], {})["copy"]
    copied = ctypes.create_string_buffer(1000)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)(address)(copied, bytes([7]) * 1000, 999)
    assert copied.raw == bytes([7]) * 999 + b"\0"


@elf
def test_code_in_memory_can_be_run_and_not_be_written_to():
    address = objects.load_object(compiled(KERNEL), ["kernel"], cosine())["kernel"]
    with open("/proc/self/maps", encoding="utf-8") as maps:
        for line in maps:
            begin, end = (int(text, 16) for text in line.split()[0].split("-"))
            if begin <= address < end:
                assert line.split()[1] == "r-xp"
                return
    raise AssertionError("nothing is there")


@elf
@pytest.mark.parametrize(("text", "imports"), [(WRITES, {}), (FROM_LIBRARY, {})], ids=["writes", "from a library"])
def test_what_is_not_as_kernels_are_is_left_to_llvm(text, imports):
    image = compiled(text)
    assert objects.load_object(image, ["kernel"], imports) is None
    address = in_memory(text, ["kernel"], imports, binding.host(), None)["kernel"]
    assert FUNCTION(address)(1.0) == (1.0 if text == WRITES else math.cos(1.0))


@elf
def test_files_of_other_machines_are_left_to_llvm():
    image = bytearray(compiled(KERNEL))
    image[18:20] = (183).to_bytes(2, "little")  # of ARM's
    assert objects.load_object(bytes(image), ["kernel"], cosine()) is None


@pytest.mark.parametrize("changed", ["library", "processor"])
def test_what_llvm_said_is_remembered_for_one_library_and_one_processor(tmp_path, changed):
    library, processors, disk = tmp_path / "library", tmp_path / "processors", Disk(tmp_path / "disk")
    library.write_bytes(b"LLVM")
    processors.write_text("processor : 0\nmodel name : a\nflags : fpu avx2\ncpu MHz : 1\n\nprocessor : 1\n")
    said = compiler.Compiler("one", replace(binding.host(), features="+avx2"))
    key = compiler.identity(library, processors)
    assert compiler.remembered(disk, key) is None
    disk.write(key, said.text.encode())
    processors.write_text(processors.read_text().replace("MHz : 1", "MHz : 2"))
    assert compiler.remembered(disk, compiler.identity(library, processors)) == said
    if changed == "library":
        library.write_bytes(b"another")
    else:
        processors.write_text(processors.read_text().replace("avx2", "avx2 avx512f"))
    assert compiler.remembered(disk, compiler.identity(library, processors)) is None


def test_a_processor_that_nothing_describes_is_asked_about(tmp_path):
    (tmp_path / "library").write_bytes(b"LLVM")
    assert compiler.identity(tmp_path / "library", tmp_path / "nothing") is None
    assert compiler.identity(tmp_path / "nothing") is None


PROGRAM = """
import sys
import torch
import thunder_executors_llvm
from thunder_frontend import jit

x = torch.linspace(-3, 3, 1 << 16)
found = jit(lambda x: torch.sin(x) * x.exp(), executors=["llvm", "torch"])(x)
torch.testing.assert_close(found, x.sin() * x.exp())
print("llvmlite.binding" in sys.modules)
"""


@elf
def test_a_process_whose_kernels_are_on_disk_does_not_load_llvm(tmp_path):
    environment = {**os.environ, "THUNDER_LLVM_CACHE": str(tmp_path / "objects")}
    for loads in ("True", "False"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], check=False, timeout=300, capture_output=True, text=True, env=environment
        )
        assert (done.returncode, done.stdout.strip()) == (0, loads), done.stderr[-2000:]
