"""What user code holds in place of a tensor while its program is acquired, and the memory in which it lies."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from torch.overrides import TorchFunctionMode, _pop_mode, _push_mode, handle_torch_function
from torch.utils._device import DeviceContext

from thunder_guards.errors import AcquisitionError, UnknownTensorError
from thunder_ir import NumberProxy, TensorProxy, value_of
from thunder_torch.convert import to_torch_device, to_torch_dtype
from thunder_torch.torch_versions import function_modes


@dataclass(slots=True, eq=False)
class Versions:
    """Autograd's version counter, which a tensor has in common with its views, and not with what ``.data`` returns.

    Args:
        count: how many writes there were through tensors that share it.
    """

    count: int = 0


@dataclass(slots=True, eq=False)
class Storage:
    """Memory that traced tensors share.

    Args:
        root: the tensor that covers all of it.
        version: how many writes there were.
        outside: whether the caller can see it, because its root came from outside of the program.
        inference: whether it was allocated in inference mode, which keeps the tensors in it out of autograd for good.
        views: the views of it that were made, in order.
        lent: whether tensors of other storages may share it, so that it may not be written to.
    """

    root: TracedTensor
    version: int = 0
    outside: bool = False
    inference: bool = False
    views: list[TracedTensor] = field(default_factory=list)
    lent: bool = False


class TracedTensor(torch.Tensor):
    """A fake tensor: everything that user code does with it is handed to the acquisition in progress.

    It is a genuine ``torch.Tensor``, so that ``isinstance``, PyTorch's own helpers and other libraries take it for one.
    Its value is a proxy; which one changes when the program writes to it, or to a tensor that it shares memory with.
    """

    _proxy: TensorProxy
    _first: TensorProxy
    _memory: Storage
    _seen: int
    _made: int
    _versions: Versions
    _has_node: bool
    _viewed_as: Any
    _stands_for: type = torch.Tensor
    _input: Any
    _argument: Any
    _given: torch.Tensor
    _gradient: Any
    _leaf: Any = None
    _recorded: bool = False
    _became: Any = None
    _past: Any = None
    _shown: Any = None
    _hooked: bool = False
    _variable: bool = False
    _retains: bool = False
    _shadow: torch.Tensor | None = None
    _calls: Callable[..., Any]
    _is_param: bool

    OWN = frozenset(__annotations__)
    """Names of the attributes that belong to Thunder."""

    @staticmethod
    def __new__(cls, proxy: TensorProxy, stands_for: type = torch.Tensor) -> TracedTensor:
        shape = tuple([value_of(d) for d in proxy.shape])
        strides = None if proxy.strides is None else tuple([value_of(s) for s in proxy.strides])
        made = torch.Tensor._make_wrapper_subclass(
            cls, shape, strides=strides, dtype=to_torch_dtype(proxy.dtype), device=to_torch_device(proxy.device)
        )
        made._proxy = made._first = proxy
        made._stands_for = stands_for
        made._viewed_as = None
        made._seen = made._made = 0
        made._has_node = proxy.requires_grad
        if issubclass(stands_for, torch.nn.Parameter):
            made._is_param = True
        return made

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class that ``isinstance`` finds, beside that which it has."""
        if self._shadow is not None:
            return type(self._shadow)
        return type(self) if self._stands_for is torch.Tensor else self._stands_for

    @property
    def source(self) -> Any:
        """How to get at the external tensor that this one stands for; ``None`` if it stands for none."""
        if "_input" in self.__dict__:
            return self._input.source
        return self.__dict__.get("_argument")

    @property
    def given(self) -> torch.Tensor | None:
        """The external tensor, in the call that is acquired; ``None`` if there is none."""
        return self._input.example if "_input" in self.__dict__ else self.__dict__.get("_given")

    def attributes(self) -> dict[str, Any]:
        """Return the attributes that user code gave to this tensor."""
        return {name: value for name, value in self.__dict__.items() if name not in self.OWN}

    def set_(self, *args: Any, **kwargs: Any) -> Any:
        """Hand on what PyTorch hands to nobody."""
        return handle_torch_function(torch.Tensor.set_, (self,), self, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Find what the class of the tensor has that this one stands for, and ``torch.Tensor`` has not."""
        cls = self.__dict__.get("_stands_for", torch.Tensor) if name not in TracedTensor.OWN else torch.Tensor
        for owner in cls.__mro__[: cls.__mro__.index(torch.Tensor)]:
            if name in owner.__dict__:
                raw = owner.__dict__[name]
                if self._shadow is not None and isinstance(raw, property):
                    return raw.__get__(self._shadow, cls)
                return raw.__get__(self, cls) if hasattr(raw, "__get__") else raw
        raise AttributeError(f"'{cls.__name__}' object has no attribute '{name}'")

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.Tensor.__repr__:  # by who prints the variables of a traceback
            return f"<{args[0]._proxy.type_string} of a program that was being acquired>"
        raise RuntimeError(
            f"a tensor of a program that was being acquired is used by {func} after the acquisition ended; "
            "was it stored somewhere that outlives the call?"
        )

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        raise UnknownTensorError(
            f"{func} is called in a way that Thunder does not see, on a tensor that has no data while a program is "
            "acquired. Compute it outside of the compiled function and pass it in, or compile the parts before and "
            "after it on their own"
        )


TracedTensor.__name__ = "Tensor"  # what Python and code in C call it where they refuse it, as they would in eager


def _goes_round(name: str) -> Any:
    native = getattr(torch.Tensor, name)
    kinds = (NumberProxy, tuple, list, slice) if name == "__getitem__" else NumberProxy

    def operator(self: TracedTensor, other: object) -> Any:
        if not isinstance(other, kinds):
            return native(self, other)
        with torch._C.DisableTorchFunction():
            return self._calls(native, (self, other), {})

    operator.__name__ = name
    return operator


_OPERATORS = tuple([
    f"__{name}__" for name in (
        "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "floordiv", "rfloordiv", "mod", "rmod",
        "pow", "rpow", "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow",
        "eq", "ne", "lt", "le", "gt", "ge", "getitem",
    )
])  # fmt: skip
_CONVERSIONS = ("__bool__", "__float__", "__int__", "__len__")
AS_THEY_WERE = {name: getattr(torch.Tensor, name) for name in (*_OPERATORS, *_CONVERSIONS)}
"""Methods of tensors that something of ours stands in for, in programs with symbolic numbers."""


def is_replaced(name: str) -> bool:
    """Whether user code gave tensors another method than they had when Thunder was imported."""
    return getattr(torch.Tensor, name) is not AS_THEY_WERE[name]


def symbolic_traced_tensor() -> type[TracedTensor]:
    """Return their class in programs with symbolic numbers: its operators take such numbers without fixing them.

    Operators that user code replaced are the user's.
    """
    return _symbolic_but_for(frozenset(filter(is_replaced, _OPERATORS)))


@functools.cache
def _symbolic_but_for(replaced: frozenset[str]) -> type[TracedTensor]:
    own = {name: _goes_round(name) for name in _OPERATORS if name not in replaced}
    scope = {**own, "__hash__": torch.Tensor.__hash__, "__module__": __name__}
    return type(TracedTensor.__name__, (TracedTensor,), scope)


def _kind(mode: TorchFunctionMode) -> Any:
    return mode.device if isinstance(mode, DeviceContext) else mode


class AcquisitionMode(TorchFunctionMode):
    """Hands every torch function that is called, with or without tensors, to ``call``.

    Args:
        call: takes the function, its positional and its keyword arguments.
    """

    def __init__(self, call: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]) -> None:
        super().__init__()
        self._call = call
        self._around: list[Any] = []

    def __enter__(self) -> Self:
        self._around = function_modes()
        return super().__enter__()  # type: ignore[no-any-return, no-untyped-call]

    def __exit__(self, *exception: object) -> None:
        while torch._C._len_torch_function_stack():
            _pop_mode()  # type: ignore[no-untyped-call]
        for mode in self._around:
            _push_mode(mode)  # type: ignore[no-untyped-call]

    def check(self) -> None:
        """Refuse to go on where the program entered or left a mode, such as a device, and leaves it so.

        Raises:
            AcquisitionError: it does.
        """
        expected, now = [*self._around, self], function_modes()
        if [*map(_kind, now)] != [*map(_kind, expected)]:
            odd = next((mode for mode in (*now, *expected) if mode not in expected or mode not in now), self)
            raise AcquisitionError(
                f"the program enters or leaves {type(odd).__name__}, a mode of PyTorch's functions, and does not undo "
                "that before it returns; do that outside, or use a with statement"
            )

    def __torch_function__(
        self, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self._call(func, args, kwargs or {})


def is_acquiring() -> bool:
    """Whether torch functions are handed to a tracer now, in this thread."""
    return any(isinstance(mode, AcquisitionMode) for mode in function_modes())
