"""Code in memory runs wherever there was room for it, and as long as anybody may call it."""

import subprocess
import sys

import pytest

from thunder_executors_llvm import executor

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"it cannot run: {executor.missing()}")

FAR = """
import ctypes
import math
from thunder_executors_llvm import binding

TEXT = '''
declare double @cosine(double)
define double @kernel(double %x) {{
  %scaled = fmul double %x, 0x3FF91EB851EB851F
  %found = call double @cosine(double %scaled)
  %sum = fadd double %found, 0x400921FB54442D18
  ret double %sum
}}
'''
PAGE, NOBODY_MAY_TOUCH, PRIVATE = 4096, 0, 0x4022
libc, libm = ctypes.CDLL(None), ctypes.CDLL("libm.so.6")
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *3 * [ctypes.c_int], ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]

def reserve(size):
    return libc.mmap(None, size, NOBODY_MAY_TOUCH, PRIVATE, -1, 0)

image = binding.compile_object(TEXT, binding.host())
imports = {{"cosine": ctypes.cast(libm.cos, ctypes.c_void_p).value}}
function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
first = function(binding.load_object(image, ["kernel"], imports)["kernel"])

large = reserve(8 * 2**30)
gaps = iter(lambda: max(reserve(PAGE), large), large)  # until there is no room above
for page in sorted(gaps)[-{pages}:]:
    libc.munmap(page, PAGE)
second = function(binding.load_object(image, ["kernel"], imports)["kernel"])
assert first(1.0) == second(1.0) == math.cos(1.57) + math.pi
print("the same")
"""

AT_ONCE = """
import ctypes
import threading
from concurrent.futures import ThreadPoolExecutor
from thunder_executors_llvm import binding, support

binding.host()
in_memory, both = support.in_memory, threading.Barrier(2)
support.in_memory = lambda *given: (both.wait(), in_memory(*given))[1]
with ThreadPoolExecutor(2) as threads:
    launchers = [f.result() for f in [threads.submit(support.launcher) for _ in range(2)]]

seen = []
kernel = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(
    lambda pointers, numbers, begin, end: seen.append((begin, end))
)
for launch in (*launchers, support.launcher()):
    launch(ctypes.cast(kernel, ctypes.c_void_p).value, 0, 0, 3, 1)
assert seen == [(0, 3)] * 3
print("the same")
"""


def check(program):
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=300, capture_output=True, text=True)
    assert done.returncode == 0 and "the same" in done.stdout, (done.returncode, done.stderr[-2000:])


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reserves memory by Linux's C library")
@pytest.mark.parametrize("pages", [1, 2])
def test_code_finds_its_constants_and_what_it_calls_where_memory_is_full_of_holes(pages):
    check(FAR.format(pages=pages))


def test_code_that_two_threads_bring_into_memory_at_once_stays_there_twice():
    check(AT_ONCE)
