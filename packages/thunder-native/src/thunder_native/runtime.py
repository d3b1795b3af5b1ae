"""The native code in memory: brought there once per process, when a program first wants it."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch

from thunder_executors_llvm import binding, compiler, library
from thunder_executors_llvm.disk import default_disk
from thunder_executors_llvm.loading import in_memory, is_on_disk
from thunder_native import machine_code
from thunder_native.layout import Layout, layout

_FASTCALL = 0x0080
"""``METH_FASTCALL`` of Python's C interface."""


class _Method(ctypes.Structure):
    """``PyMethodDef`` of Python's C interface."""

    _fields_ = (
        ("name", ctypes.c_char_p), ("function", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Runtime:
    """The functions in memory.

    Args:
        addresses: of the exports of :mod:`thunder_native.machine_code`.
        layout: of tensors in this process.
    """

    addresses: Mapping[str, int]
    layout: Layout
    _methods: Mapping[str, _Method] = field(repr=False)

    def callable_of(self, name: str, head: int | object, memory: object) -> Callable[..., Any]:
        """Return a function of Python.

        Args:
            name: of the export that it calls, by ``METH_FASTCALL``: ``"enter"`` and ``"run"`` run a program.
            head: address of the words that it reads, for a program those of
                :data:`thunder_native.machine_code.PROGRAM`; or what :func:`capsule_of` made of it.
            memory: whose memory these and what they point to are in; the function keeps it.
        """
        capsule = capsule_of(head) if isinstance(head, int) else head
        made: Callable[..., Any] = _FUNCTION_NEW(ctypes.byref(self._methods[name]), capsule, (self, memory))
        return made


def address_of(words: array[int]) -> int:
    """Return where words are in memory."""
    return words.buffer_info()[0]


def capsule_of(head: int) -> object:
    """Return what functions in native code find words by."""
    return _CAPSULE_NEW(head, None, None)


def point_to(capsule: object, head: int) -> None:
    """Have functions in native code find other words from now on; calls that are running go on with those before."""
    _CAPSULE_SET(capsule, head)


_CAPSULE_NEW = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)
_CAPSULE_SET = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(
    ("PyCapsule_SetPointer", ctypes.pythonapi)
)
_FUNCTION_NEW = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.POINTER(_Method), ctypes.py_object, ctypes.py_object)(
    ("PyCFunction_NewEx", ctypes.pythonapi)
)


def python_address(name: str) -> int:
    """Return where a function of Python's C interface is in memory."""
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    return address


def torch_address(name: str) -> int | None:
    """Return where a function of PyTorch's is in memory, or ``None``."""
    return library.address_of(name) or library.address_of(name, "torch_python")


@cache
def module() -> str:
    """Return the native code as LLVM's text, for this PyTorch."""
    return machine_code.text(has_boxes=torch_address("torch_new_stable_ivalue") is not None)


@cache
def missing() -> str | None:
    """Why native code cannot run here, or ``None``; LLVM is not loaded for this."""
    if (reason := binding.missing()) is not None:
        return reason
    absent = [name for name in machine_code.imports(module()) if torch_address(name) is None]
    if absent:
        return f"PyTorch {torch.__version__} does not export {', '.join(absent)}"
    if not hasattr(torch._C, "_aoti"):
        return f"PyTorch {torch.__version__} hands over no tensors"
    found = layout()
    return found if isinstance(found, str) else None


def is_at_hand() -> bool:
    """Return whether the native code is in memory, or on disk, from where it comes in a few milliseconds."""
    return bool(runtime.cache_info().currsize) or _is_on_disk()


@cache
def _is_on_disk() -> bool:
    """LLVM, which takes longer to load, is not asked for this."""
    able = compiler.is_remembered() and missing() is None
    return able and is_on_disk(module(), compiler.host(), default_disk())


@cache
def runtime() -> Runtime:
    """Return the native code: from disk, or compiled if this is the first time.

    Raises:
        RuntimeError: it cannot run here; the message says why.
    """
    reason = missing() or compiler.load_error()
    found = layout()
    if reason is not None or isinstance(found, str):
        raise RuntimeError(f"native code cannot run here: {reason}")
    wanted = machine_code.imports(module())
    imports = {name: address for name in wanted if (address := torch_address(name)) is not None}
    imports |= {name: python_address(name) for name in machine_code.PYTHON}
    addresses = in_memory(module(), machine_code.EXPORTS, imports, compiler.host(), default_disk())
    methods = {
        n: _Method(b"native", addresses[n], _FASTCALL, None) for n in ("enter", "run", "unchanged", "as_found", "apart")
    }
    return Runtime(addresses, found, methods)
