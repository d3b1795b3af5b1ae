"""What is the same for all kernels: dealing tasks out to PyTorch's threads. Compiled once per process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache

from thunder_executors_llvm.binding import Machine, compile_object, host, load_object
from thunder_executors_llvm.library import address_of

TEXT = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

; { kernel, pointers, numbers, tasks }: each thread takes the tasks from tasks*i/n to tasks*(i+1)/n
define internal void @share(ptr %job) {
  %number = call i32 @omp_get_thread_num()
  %threads = call i32 @omp_get_num_threads()
  %i = sext i32 %number to i64
  %n = sext i32 %threads to i64
  %kernel = load ptr, ptr %job
  %pointers_at = getelementptr i64, ptr %job, i64 1
  %pointers = load ptr, ptr %pointers_at
  %numbers_at = getelementptr i64, ptr %job, i64 2
  %numbers = load ptr, ptr %numbers_at
  %tasks_at = getelementptr i64, ptr %job, i64 3
  %tasks = load i64, ptr %tasks_at
  %before = mul i64 %tasks, %i
  %begin = udiv i64 %before, %n
  %next = add i64 %i, 1
  %until = mul i64 %tasks, %next
  %end = udiv i64 %until, %n
  call void %kernel(ptr %pointers, ptr %numbers, i64 %begin, i64 %end)
  ret void
}

define void @launch(ptr %kernel, ptr %pointers, ptr %numbers, i64 %tasks, i32 %threads) {
  %several = icmp sgt i32 %threads, 1
  br i1 %several, label %shared, label %alone
alone:
  call void %kernel(ptr %pointers, ptr %numbers, i64 0, i64 %tasks)
  ret void
shared:
  %job = alloca [4 x i64]
  store ptr %kernel, ptr %job
  %pointers_at = getelementptr i64, ptr %job, i64 1
  store ptr %pointers, ptr %pointers_at
  %numbers_at = getelementptr i64, ptr %job, i64 2
  store ptr %numbers, ptr %numbers_at
  %tasks_at = getelementptr i64, ptr %job, i64 3
  store i64 %tasks, ptr %tasks_at
  call void @GOMP_parallel(ptr @share, ptr %job, i32 %threads, i32 0)
  ret void
}
"""

NEEDED = ("GOMP_parallel", "omp_get_thread_num", "omp_get_num_threads")
"""Functions of the OpenMP library that PyTorch is linked to: both GNU's and LLVM's have them."""


def missing() -> str | None:
    """Return which function of the OpenMP library is not there, or ``None``."""
    absent = [name for name in NEEDED if address_of(name) is None]
    return f"PyTorch's library leads to no {', '.join(absent)}" if absent else None


@cache
def loaded(machine: Machine) -> Mapping[str, int]:
    """Return the addresses of the functions of this module."""
    imports = {name: address for name in NEEDED if (address := address_of(name)) is not None}
    return load_object(compile_object(TEXT, machine), ["launch"], imports)


Launcher = Callable[[int, int, int, int, int], None]
"""Takes the addresses of a kernel, of its pointers and of its numbers; the number of tasks, and that of threads."""


@cache
def launcher() -> Launcher:
    """Return the function that runs a kernel; other Python threads run meanwhile."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
    return kind(loaded(host())["launch"])
