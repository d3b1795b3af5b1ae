"""PyTorch's modes for fake tensors: one made without loading its compilers; and what is asked of them.

A mode asks the settings of ``torch._dynamo`` for a few things, and for these alone Python would import all of it.
"""

from __future__ import annotations

import builtins
import importlib
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any

import torch
from torch._prims_common import suggest_memory_format
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode

from thunder_torch.uncast import without_autocast
from thunder_torch.without_compilers import leave_compilers_alone

aten = torch.ops.aten
IN_FORMAT = frozenset({aten.native_batch_norm.default, aten.channel_shuffle.default})
"""Operators whose kernels for the CPU lay the first result out in the memory format that the input suggests, where
PyTorch's fake tensors keep the input's strides, or none."""

ASKED_FOR = "torch._dynamo.config"
SYMBOLS = "torch.fx.experimental.symbolic_shapes"
CALLED = frozenset({"compute_unbacked_bindings", "free_unbacked_symbols"})
"""Functions of that module that a mode imports at each operator, and calls where it computes with real tensors."""
UNDER = "_meta_under"
_FAKE_LOG = logging.getLogger("torch._subclasses.fake_tensor")


class _Settings:
    """The settings of ``torch._dynamo`` that a mode asks for; any other is looked up where it stands."""

    fake_tensor_cache_enabled = False  # whoever asks remembers the answers
    fake_tensor_cache_crosscheck_enabled = False
    _custom_ops_profile = None

    def __getattr__(self, name: str) -> Any:
        return getattr(torch._dynamo.config, name)


class _Compilers:
    """Stands for ``torch._dynamo``."""

    config = _Settings()

    def __getattr__(self, name: str) -> Any:
        return getattr(torch._dynamo, name)


class _Torch:
    """PyTorch, with the settings above in place of those of its compilers."""

    _dynamo = _Compilers()

    def __getattr__(self, name: str) -> Any:
        return getattr(torch, name)


class _Later:
    """Stands for a module that is loaded when something of it is used.

    Args:
        name: of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


class _CalledLater(_Later):
    """Stands for a module that is loaded when a function of it is called."""

    def __getattr__(self, name: str) -> Any:
        return lambda *args, **kwargs: getattr(importlib.import_module(self._name), name)(*args, **kwargs)


_TORCH, _SYMPY, _SYMBOLS = _Torch(), _Later("sympy"), _CalledLater(SYMBOLS)


def _imported(name: str, *args: Any) -> Any:
    """Do what an ``import`` statement does, but for the settings of PyTorch's compilers where they are not loaded, and
    for what is imported at each operator and used for real tensors alone, which loads SymPy.
    """
    if name == "sympy":
        return _SYMPY
    if name == SYMBOLS and CALLED.issuperset(args[2]):
        return _SYMBOLS
    if name != ASKED_FOR:
        found = builtins.__import__(name, *args)
        return _TORCH if found is torch else found
    return _TORCH


@cache
def _quick(method: str) -> Any:
    """Return a method of PyTorch's mode with imports and settings as above."""
    original: Any = getattr(FakeTensorMode, method)
    if not isinstance(original, FunctionType):
        return original
    around = {**original.__globals__, "torch": _TORCH, "__builtins__": {**vars(builtins), "__import__": _imported}}
    made = FunctionType(original.__code__, around, original.__name__, original.__defaults__, original.__closure__)
    made.__kwdefaults__ = original.__kwdefaults__
    return made


class QuickMode(FakeTensorMode):  # type: ignore[no-untyped-call]
    """A mode for fake tensors that takes real ones among them, and remembers nothing.

    Args:
        shape_env: keeps the symbols of sizes, where there are any.

    Example:
        >>> import torch
        >>> from thunder_torch.fake_modes import QuickMode
        >>> with QuickMode():
        ...     (torch.ones(2, 3) @ torch.ones(3, 4)).shape
        torch.Size([2, 4])
    """

    def __init__(self, shape_env: Any = None) -> None:
        if ASKED_FOR in sys.modules:
            super().__init__(shape_env=shape_env, allow_non_fake_inputs=True)
            self.cache_enabled = False
        else:
            leave_compilers_alone()
            _quick("__init__")(self, shape_env=shape_env, allow_non_fake_inputs=True)

    def _dispatch_impl(self, *given: Any) -> Any:
        if ASKED_FOR in sys.modules:
            return super()._dispatch_impl(*given)
        return _quick("_dispatch_impl")(self, *given)

    def dispatch(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """Return what PyTorch's mode does, laid out as by the kernel."""
        found = super().dispatch(func, types, args, kwargs)
        return self._laid_out(found, args[0]) if func in IN_FORMAT else found

    def _laid_out(self, found: Any, given: torch.Tensor) -> Any:
        first = found[0] if isinstance(found, tuple) else found
        if given.device.type != "cpu":
            return found
        with self:
            first = torch.empty_like(first, memory_format=suggest_memory_format(given))
        return (first, *found[1:]) if isinstance(found, tuple) else first


def faked(meta: torch.Tensor, device: torch.device, mode: FakeTensorMode) -> FakeTensor:
    """Return a fake tensor of a device in the memory of a tensor of the meta device, which it knows: see
    :func:`meta_under`.

    Example:
        >>> import torch
        >>> from thunder_torch.fake_modes import QuickMode, faked
        >>> faked(torch.ones(2, 3, device="meta").t(), torch.device("cpu"), QuickMode()).stride()
        (1, 3)
    """
    with torch._C._DisableTorchDispatch():
        made: FakeTensor = FakeTensor(mode, meta, device)
    vars(made)[UNDER] = meta
    return made


def meta_under(fake: torch.Tensor) -> torch.Tensor | None:
    """Return the tensor that :func:`faked` made a fake one of; ``None`` for others.

    What is asked of it does not go through PyTorch's Python code for fake tensors, which loads SymPy.
    """
    return vars(fake).get(UNDER)


def fake_outputs(function: Callable[..., Any], inputs: Sequence[Any]) -> list[torch.Tensor]:
    """Return what a function returns without its data: with the sizes, and strides, that PyTorch would give it.

    Args:
        function: returns tensors; it is run on fake tensors, which keep their devices. Where PyTorch asks for a value,
            such as that of ``torch.addcdiv(..., value=tensor)``, it is run on the tensors themselves.
        inputs: tensors, and numbers; fake tensors stay as they are.

    Example:
        >>> import torch
        >>> from thunder_torch.fake_modes import fake_outputs
        >>> [t.stride() for t in fake_outputs(lambda x: (x.t() + 1, x), [torch.ones(2, 3)])]
        [(1, 3), (3, 1)]
    """
    given = next((t.fake_mode for t in inputs if isinstance(t, FakeTensor)), None)
    mode = given or QuickMode()
    try:
        with mode:
            return list(function(*[_without_data(t, mode) if isinstance(t, torch.Tensor) else t for t in inputs]))
    except DataDependentOutputException:
        if given is not None:
            raise
        return list(function(*inputs))


def _without_data(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    """Return a fake tensor that lies like a tensor; what a mode makes of one loads PyTorch's compilers."""
    if isinstance(tensor, FakeTensor) or tensor.layout is not torch.strided:
        return mode.from_tensor(tensor)
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)


@contextmanager
def plainly() -> Iterator[None]:
    """Switch off autocast, whose casts are recorded before a call, and inference mode.

    In inference mode PyTorch does not take operations apart for fake tensors.
    """
    with without_autocast():
        if torch.is_inference_mode_enabled():
            with torch.inference_mode(False), torch.no_grad():
                yield
        else:
            yield


@contextmanager
def unlogged() -> Iterator[None]:
    """Keep what fake kernels refuse out of the log: the error is raised, in PyTorch's own words."""
    before = _FAKE_LOG.disabled
    _FAKE_LOG.disabled = True
    try:
        yield
    finally:
        _FAKE_LOG.disabled = before
