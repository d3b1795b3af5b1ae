"""What is the same for all kernels: dealing tasks out to PyTorch's threads. In memory once per process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache

from thunder_executors_llvm.binding import Machine
from thunder_executors_llvm.compiler import host
from thunder_executors_llvm.disk import default_disk
from thunder_executors_llvm.library import address_of
from thunder_executors_llvm.loading import in_memory

TEXT = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

; { jobs, number of jobs, pointers, tasks }, jobs of { kernel, place of its pointers, numbers, tasks }: does the tasks
; from begin to end, counted over all jobs
define internal void @go_through(ptr %several, i64 %begin, i64 %end) {
entry:
  %jobs = load ptr, ptr %several
  %count_at = getelementptr i64, ptr %several, i64 1
  %count = load i64, ptr %count_at
  %pointers_at = getelementptr i64, ptr %several, i64 2
  %pointers = load ptr, ptr %pointers_at
  br label %next
next:
  %job_number = phi i64 [ 0, %entry ], [ %following, %after ]
  %first = phi i64 [ 0, %entry ], [ %last, %after ]
  %more = icmp slt i64 %job_number, %count
  br i1 %more, label %look, label %done
look:
  %words = mul i64 %job_number, 4
  %job = getelementptr i64, ptr %jobs, i64 %words
  %tasks_at = getelementptr i64, ptr %job, i64 3
  %tasks = load i64, ptr %tasks_at
  %last = add i64 %first, %tasks
  %from = call i64 @llvm.smax.i64(i64 %begin, i64 %first)
  %to = call i64 @llvm.smin.i64(i64 %end, i64 %last)
  %any = icmp slt i64 %from, %to
  br i1 %any, label %work, label %after
work:
  %kernel = load ptr, ptr %job
  %place_at = getelementptr i64, ptr %job, i64 1
  %place = load i64, ptr %place_at
  %its_pointers = getelementptr i64, ptr %pointers, i64 %place
  %numbers_at = getelementptr i64, ptr %job, i64 2
  %numbers = load ptr, ptr %numbers_at
  %low = sub i64 %from, %first
  %high = sub i64 %to, %first
  call void %kernel(ptr %its_pointers, ptr %numbers, i64 %low, i64 %high)
  br label %after
after:
  %following = add i64 %job_number, 1
  br label %next
done:
  ret void
}

declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)

; each thread takes the tasks from tasks*i/n to tasks*(i+1)/n
define internal void @share(ptr %several) {
  %number = call i32 @omp_get_thread_num()
  %threads = call i32 @omp_get_num_threads()
  %i = sext i32 %number to i64
  %n = sext i32 %threads to i64
  %tasks_at = getelementptr i64, ptr %several, i64 3
  %tasks = load i64, ptr %tasks_at
  %before = mul i64 %tasks, %i
  %begin = udiv i64 %before, %n
  %next = add i64 %i, 1
  %until = mul i64 %tasks, %next
  %end = udiv i64 %until, %n
  call void @go_through(ptr %several, i64 %begin, i64 %end)
  ret void
}

define void @launch_several(ptr %jobs, i64 %count, ptr %pointers, i64 %tasks, i32 %threads) {
  %several = alloca [4 x i64]
  store ptr %jobs, ptr %several
  %count_at = getelementptr i64, ptr %several, i64 1
  store i64 %count, ptr %count_at
  %pointers_at = getelementptr i64, ptr %several, i64 2
  store ptr %pointers, ptr %pointers_at
  %tasks_at = getelementptr i64, ptr %several, i64 3
  store i64 %tasks, ptr %tasks_at
  %shared = icmp sgt i32 %threads, 1
  br i1 %shared, label %together, label %alone
alone:
  call void @go_through(ptr %several, i64 0, i64 %tasks)
  ret void
together:
  call void @GOMP_parallel(ptr @share, ptr %several, i32 %threads, i32 0)
  ret void
}

define void @launch(ptr %kernel, ptr %pointers, ptr %numbers, i64 %tasks, i32 %threads) {
  %job = alloca [4 x i64]
  store ptr %kernel, ptr %job
  %place_at = getelementptr i64, ptr %job, i64 1
  store i64 0, ptr %place_at
  %numbers_at = getelementptr i64, ptr %job, i64 2
  store ptr %numbers, ptr %numbers_at
  %tasks_at = getelementptr i64, ptr %job, i64 3
  store i64 %tasks, ptr %tasks_at
  call void @launch_several(ptr %job, i64 1, ptr %pointers, i64 %tasks, i32 %threads)
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
    return in_memory(TEXT, ["launch", "launch_several"], imports, machine, default_disk())


Kernel = Callable[[int, int, int, int], None]
"""Takes the addresses of its pointers and of its numbers, and the tasks from which to which it goes."""

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
"""Makes a :data:`Kernel` of its address; other Python threads run meanwhile."""

Launcher = Callable[[int, int, int, int, int], None]
"""Takes the addresses of a kernel, of its pointers and of its numbers; the number of tasks, and that of threads."""


@cache
def launcher() -> Launcher:
    """Return the function that runs a kernel; other Python threads run meanwhile."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
    return kind(loaded(host())["launch"])


SeveralLauncher = Callable[[int, int, int, int, int], None]
"""Takes the addresses of jobs, their number, the address of all pointers, and the numbers of tasks and of threads."""


@cache
def several_launcher() -> SeveralLauncher:
    """Return the function that runs several kernels, none of which needs what another one writes.

    A job is four words: the addresses of the kernel, of its first pointer among those of all, counted in pointers, of
    its numbers; and the number of its tasks.
    """
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32)
    return kind(loaded(host())["launch_several"])
