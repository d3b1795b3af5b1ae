"""Where PyTorch keeps a callable, and what a program calls it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from types import BuiltinFunctionType, FunctionType, GetSetDescriptorType, MethodDescriptorType
from typing import Any

import torch
import torch.fft
import torch.linalg
import torch.nn.functional
import torch.nn.init
import torch.special

from thunder_ir import Namespace
from thunder_torch.torch_versions import OpOverload, OpOverloadPacket, names_dimensions

LTORCH = Namespace("ltorch", "thunder_torch")
"""Where generated code finds the symbols of PyTorch's callables."""

PLACES: tuple[tuple[str, Any, str], ...] = (
    ("torch", torch, ""),
    ("torch.nn.functional", torch.nn.functional, ""),
    ("torch.special", torch.special, "special_"),
    ("torch.linalg", torch.linalg, "linalg_"),
    ("torch.fft", torch.fft, "fft_"),
    ("torch._C._nn", torch._C._nn, ""),
    ("torch.nn.init", torch.nn.init, "init_"),
    ("torch._VF", torch._C._VariableFunctions, "VF_"),
    ("torch.Tensor", torch.Tensor, "Tensor_"),
)
"""The public places, as generated code reads them, and what names from there begin with in a program."""


@cache
def _known() -> tuple[dict[Any, str], dict[str, Any], dict[Any, str]]:
    """Return the path of each callable, the callable of each name, and the name of each callable."""
    paths: dict[Any, str] = {}
    callables: dict[str, Any] = {}
    names: dict[Any, str] = {}
    for path, place, prefix in PLACES:
        for key in dir(place):
            value = getattr(place, key, None)
            if not callable(value) or isinstance(value, type) or (key.startswith("__") and place is not torch.Tensor):
                continue
            if not _belongs(value):
                continue
            try:
                known = value in paths
            except TypeError:
                continue
            name = prefix + key
            callables.setdefault(name, value)
            if not known:
                paths[value] = f"{path}.{key}"
                names[value] = name if callables[name] is value else f"{path.rpartition('.')[2]}_{key}"
                callables.setdefault(names[value], value)
    for key, value in vars(torch._C.TensorBase).items():
        if isinstance(value, GetSetDescriptorType) and not key.startswith("__"):
            getter = getattr(torch.Tensor, key).__get__
            paths[getter], names[getter] = f"torch.Tensor.{key}.__get__", key
            callables.setdefault(key, getter)
    return paths, callables, names


def _belongs(value: Any) -> bool:
    """Whether a callable found in one of PyTorch's modules is PyTorch's own."""
    module = getattr(value, "__module__", None) or getattr(getattr(value, "__objclass__", None), "__module__", "torch")
    return str(module).startswith("torch") or module in ("builtins", "")


def path_of(function: object) -> str:
    """Return the dotted path under which code reaches a callable of PyTorch's, or ``""``."""
    if isinstance(function, OpOverload):
        return f"torch.ops.{function.namespace}.{function._opname}.{function._overloadname}"
    if isinstance(function, OpOverloadPacket):
        return f"torch.ops.{function._qualified_op_name.replace('::', '.')}"
    try:
        return _known()[0].get(function, "")
    except TypeError:
        return ""


def name_of(function: Any) -> str:
    """Return what a program calls a callable: ``"linalg_inv"`` for ``torch.linalg.inv``."""
    if isinstance(function, OpOverload):
        return f"{function.namespace}_{function._opname}_{function._overloadname}"
    if isinstance(function, OpOverloadPacket):
        return function._qualified_op_name.replace("::", "_")
    try:
        known = _known()[2].get(function)
    except TypeError:
        known = None
    if known is not None:
        return known
    text = getattr(function, "__qualname__", "") or getattr(function, "__name__", "") or type(function).__name__
    owner = getattr(getattr(function, "__self__", None), "__name__", "")
    if owner and "." not in text:
        text = f"{owner}_{text}"
    return "".join([c if c.isalnum() and c.isascii() else "_" for c in text.replace("<locals>.", "")]).strip("_") or "f"


def callable_named(name: str) -> Any:
    """Return PyTorch's callable of that name in programs, or ``None``."""
    return _known()[1].get(name)


def last_name(function: Any) -> str:
    """Return the bare name of a callable of PyTorch's: ``"relu_"`` for ``torch.nn.functional.relu_``."""
    if isinstance(function, OpOverload):
        return function._opname
    if isinstance(function, OpOverloadPacket):
        return function._qualified_op_name.rpartition("::")[2]
    path = path_of(function).removesuffix(".__get__")
    return path.rpartition(".")[2] if path else getattr(function, "__name__", "")


OPERATORS = {"torch.nn.functional.unfold": "im2col", "torch.nn.functional.fold": "col2im"}
"""The operators of functions whose names others have."""


def schemas_of(function: Any) -> Iterator[Any]:
    """Yield the schemas of PyTorch's operators that a callable of PyTorch's stands for, but for names of dimensions."""
    for overload in overloads_of(function):
        yield overload._schema


def is_tagged(function: Any, tag: torch.Tag) -> bool:
    """Whether PyTorch tags an operator so that a callable of PyTorch's stands for.

    Example:
        >>> import torch
        >>> from thunder_torch.names import is_tagged
        >>> is_tagged(torch.rand, torch.Tag.nondeterministic_seeded), is_tagged(torch.Tensor.t_, torch.Tag.inplace_view)
        (True, True)
    """
    return any([tag in overload.tags for overload in overloads_of(function)])


def overloads_of(function: Any) -> Iterator[Any]:
    """Yield the operators that a callable of PyTorch's stands for, but for those that take names of dimensions."""
    if isinstance(function, OpOverload):
        yield function
        return
    if isinstance(function, OpOverloadPacket):
        packet = function
    else:
        path = path_of(function)
        if not path:
            return
        place, _, name = path.rpartition(".")
        prefix = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}.get(place, "")
        found = getattr(torch.ops.aten, OPERATORS.get(path, prefix + name), None)
        if not isinstance(found, OpOverloadPacket):
            return
        packet = found
    overloads: list[str] = packet.overloads()  # type: ignore[no-untyped-call]
    for overload in overloads:
        if not names_dimensions(overload):
            yield getattr(packet, overload)


_OTHER_NAMES = {"self": ("self", "input", "x", "a", "x1"), "other": ("other", "x2")}
"""How else PyTorch lets its callers name an argument, those who come from NumPy among them."""


@cache
def _argument_names(function: Any) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Return for each form that a callable of PyTorch's has what its arguments may be called, in order."""
    if isinstance(function, FunctionType):
        code = function.__code__
        return (tuple([(name,) for name in code.co_varnames[: code.co_argcount]]),)
    return tuple(
        [
            tuple([_OTHER_NAMES.get(a.name, (a.name,)) for a in schema.arguments if not a.kwarg_only])
            for schema in schemas_of(function)
        ]
    )


def tensors_by_position(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call that names all of them such that the tensors that come first have no names.

    Example:
        >>> import torch
        >>> from thunder_torch.names import tensors_by_position
        >>> tensors_by_position(torch.sum, (), {"input": torch.ones(()), "dim": 0})
        ((tensor(1.),), {'dim': 0})
    """
    if args or not kwargs:
        return args, kwargs
    leading: list[str] = []
    for arguments in _argument_names(function):
        given = [next((name for name in names if name in kwargs), "") for names in arguments]
        tensors = takewhile(lambda name: name and _holds_tensors(kwargs[name]), given)
        leading = max(leading, list(tensors), key=len)
    return tuple([kwargs[name] for name in leading]), {k: v for k, v in kwargs.items() if k not in leading}


OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}
"""NumPy's names of arguments, which PyTorch's functions in C take for their own."""


def in_own_names(function: Any, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return arguments that NumPy's names were used for under those that PyTorch's documentation has; no ``out=None``.

    Example:
        >>> import torch
        >>> from thunder_torch.names import in_own_names
        >>> in_own_names(torch.mean, {"axis": 0})
        {'dim': 0}
        >>> in_own_names(torch.mean, {"dim": 0, "out": None})
        {'dim': 0}
    """
    without = "out" in kwargs and kwargs["out"] is None
    if not without and OF_NUMPY.keys().isdisjoint(kwargs):
        return kwargs
    if not isinstance(function, (BuiltinFunctionType, MethodDescriptorType)):
        return kwargs
    own = {a.name for schema in schemas_of(function) for a in schema.arguments}
    if without and "out" in own and isinstance(function, BuiltinFunctionType):
        kwargs = {k: v for k, v in kwargs.items() if k != "out"}
    return {OF_NUMPY[k] if k not in own and OF_NUMPY.get(k) in own else k: v for k, v in kwargs.items()}


def _holds_tensors(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or isinstance(value, (list, tuple)) and any(map(_holds_tensors, value))
