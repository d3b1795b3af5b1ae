"""Values as Python source that evaluates to the very same value."""

from __future__ import annotations

import builtins
import dataclasses
import math
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from enum import Enum, Flag
from types import ModuleType
from typing import Any

from thunder_ir import devices, dtypes
from thunder_ir.devices import Device
from thunder_ir.dtypes import DType
from thunder_ir.errors import DuplicateRuleError, TraceFormatError
from thunder_ir.names import Names
from thunder_ir.proxies import Proxy
from thunder_ir.trees import can_construct, flat_proxies, rebuild

LARGEST_DECIMAL = 10**4000  # Python refuses to read longer decimal literals


class Context:
    """The names that a generated program uses, and what they stand for.

    Everything that is not a literal is referred to by a name handed out here, never by text taken from the user,
    so that no string of the user's can become code; and no value of the program that happens to be called ``float`` or
    ``prims`` can take the place of what is meant.

    Args:
        reserved: the names of the program's values.
    """

    __slots__ = ("_aliases", "_by_identity", "_members", "_modules", "globals", "imports", "names")

    def __init__(self, reserved: Names | None = None) -> None:
        self.globals: dict[str, Any] = {}
        self.imports: dict[str, str] = {}
        self.names = reserved if reserved is not None else Names()
        self._by_identity: dict[int, str] = {}
        self._aliases: dict[str, str] = {}
        self._members: dict[str, tuple[Any, str]] = {}
        self._modules: list[ModuleType] = []
        """Each has what the program uses of the module that it stands for. Python finds that in one step in a module,
        but not in PyTorch's own, which has a ``__getattr__``, nor, to call it, in other objects."""

    def imported(self, alias: str, line: str, module: Any) -> str:
        """Refer to what an import brings.

        Args:
            alias: the name for it, unless a value of the program has that name already.
            line: what the printed program says to import it under ``alias``.
            module: what the name stands for.
        """
        name = self._aliases.get(alias)
        if name is None:
            name = self._aliases[alias] = self.names.take(alias)
            self.imports[name] = line if name == alias else f"{line.removesuffix(f' as {alias}')} as {name}"
            self.globals[name] = module
        return name

    def member(self, path: str, value: Any) -> str:
        """Refer to what a module holds by the way to it, and to this very object, should the module be patched later.

        Args:
            path: such as ``"torch.nn.functional.linear"``.
            value: what is there.
        """
        known = self._members.get(path)
        if known is not None and known[0] is value:
            return known[1]
        root, *steps, last = path.split(".")
        name = self._aliases.get(root)
        if name is None:
            name = self.imported(root, f"import {root}", self._module(root))
        here = self.globals[name]
        for step in steps:
            there = vars(here).get(step)
            if there is None:
                there = self._module(step)
                setattr(here, step, there)
            here = there
        if any([here is made for made in self._modules]):
            # not what a part of it was asked for, too, such as a class and its method
            setattr(here, last, value)
        expression = f"{name}{path[len(root) :]}"
        self._members[path] = (value, expression)
        return expression

    def _module(self, name: str) -> ModuleType:
        made = ModuleType(name)
        self._modules.append(made)
        return made

    def builtin(self, name: str) -> str:
        """Refer to a builtin of Python, which needs an import only where a value of the program has its name."""
        if name not in self.names:
            return name
        return self.imported(name, f"from builtins import {name}", getattr(builtins, name))

    def object(self, value: Any, hint: str = "object") -> str:
        """Refer to any object by a name of its own."""
        name = self._by_identity.get(id(value))
        if name is None:
            name = self.names.take(f"_{hint}")
            self._by_identity[id(value)] = name
            self.globals[name] = value
        return name


def register_literal(cls: type, printer: Callable[[Any, Context], str]) -> None:
    """Teach generated programs to write values of a class.

    Args:
        cls: the class, not its subclasses.
        printer: takes a value and the context; returns source. What it refers to by name it must get from the context:
            ``context.member("torch.float32", value)``.

    Raises:
        DuplicateRuleError: the class has another printer already.
    """
    if _PRINTERS.setdefault(cls, printer) is not printer:
        raise DuplicateRuleError(f"values of {cls.__qualname__} have a printer already: {_PRINTERS[cls]}")


def literal(value: Any, context: Context) -> str:
    """Return source for ``value``: a literal where Python has one, else a name in ``context``.

    Example:
        >>> from thunder_ir.literals import Context, literal
        >>> print(literal((1, float("nan"), -0.0, "a'b", slice(None, 2), ...), Context()))
        (1, float('nan'), -0.0, "a'b", slice(None, 2, None), ...)
    """
    if isinstance(value, Proxy):
        return value.name
    printer = _PRINTERS.get(value.__class__)
    if printer is not None:
        return printer(value, context)
    return _other(value, context)


def _int(value: int, context: Context) -> str:
    return repr(value) if -LARGEST_DECIMAL < value < LARGEST_DECIMAL else hex(value)


def _float(value: float, context: Context) -> str:
    if math.isfinite(value):
        return repr(value)
    sign = "-" if value != value and math.copysign(1.0, value) < 0 else ""  # which repr does not tell of NaN
    return f"{context.builtin('float')}('{sign}{value}')"


def _complex(value: complex, context: Context) -> str:
    return f"{context.builtin('complex')}({_float(value.real, context)}, {_float(value.imag, context)})"


def _repr(value: Any, context: Context) -> str:
    return repr(value)


def _str(value: str, context: Context) -> str:
    return repr(value) if value.isprintable() else ascii(value)


def _tuple(value: tuple[Any, ...], context: Context) -> str:
    if len(value) == 1:
        return f"({literal(value[0], context)},)"
    return f"({', '.join([literal(v, context) for v in value])})"


def _list(value: list[Any], context: Context) -> str:
    return f"[{', '.join([literal(v, context) for v in value])}]"


def _dict(value: dict[Any, Any], context: Context) -> str:
    return "{" + ", ".join([f"{literal(k, context)}: {literal(v, context)}" for k, v in value.items()]) + "}"


def _set(value: set[Any] | frozenset[Any], context: Context) -> str:
    items = sorted([literal(v, context) for v in value])
    if isinstance(value, frozenset):
        return f"{context.builtin('frozenset')}([{', '.join(items)}])"
    return "{" + ", ".join(items) + "}" if items else f"{context.builtin('set')}()"


def _slice(value: slice, context: Context) -> str:
    return (
        f"{context.builtin('slice')}({', '.join([literal(v, context) for v in (value.start, value.stop, value.step)])})"
    )


def _ellipsis(value: Any, context: Context) -> str:
    return "..."


def _dtype(value: DType, context: Context) -> str:
    return f"{context.imported('dtypes', 'from thunder_ir import dtypes', dtypes)}.{value.name}"


def _device(value: Device, context: Context) -> str:
    return f"{context.imported('devices', 'from thunder_ir import devices', devices)}.device({str(value)!r})"


def _other(value: Any, context: Context) -> str:
    cls = value.__class__
    if isinstance(value, Enum):
        if value.name in cls.__members__:
            return f"{context.object(cls, cls.__name__)}[{value.name!r}]"
        if isinstance(value, Flag):  # a combination of members
            return f"{context.object(cls, cls.__name__)}({literal(value.value, context)})"
        return context.object(value, cls.__name__)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return f"{context.object(cls, cls.__name__)}({', '.join([literal(v, context) for v in value])})"
    if isinstance(value, (tuple, list)) and _is_plain_subclass(cls):
        return f"{context.object(cls, cls.__name__)}({_list(list(value), context)})"
    if isinstance(value, dict) and _is_plain_subclass(cls):
        return f"{context.object(cls, cls.__name__)}({_dict(value, context)})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass(value, context)
    if flat_proxies(value):
        raise TraceFormatError(
            f"a program cannot write a {cls.__qualname__} that holds its values; teach how with "
            "thunder_ir.register_literal, or return a tuple, list, dict or dataclass"
        )
    return context.object(value, getattr(value, "__name__", cls.__name__))


def _dataclass(value: Any, context: Context) -> str:
    cls = value.__class__
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if can_construct(cls):
        arguments = [f"{name}={literal(item, context)}" for name, item in fields.items()]
        return f"{context.object(cls, cls.__name__)}({', '.join(arguments)})"
    return f"{context.object(rebuild, 'rebuild')}({context.object(cls, cls.__name__)}, {literal(fields, context)})"


def _ordered_dict(value: OrderedDict[Any, Any], context: Context) -> str:
    return f"{context.object(OrderedDict, 'OrderedDict')}({_dict(value, context)})"


def _defaultdict(value: defaultdict[Any, Any], context: Context) -> str:
    factory = literal(value.default_factory, context)
    return f"{context.object(defaultdict, 'defaultdict')}({factory}, {_dict(value, context)})"


def _is_plain_subclass(cls: Any) -> bool:
    return cls.__init__ in (tuple.__init__, list.__init__, dict.__init__, object.__init__)


_PRINTERS: dict[type, Callable[[Any, Context], str]] = {
    type(None): _repr,
    bool: _repr,
    int: _int,
    float: _float,
    complex: _complex,
    str: _str,
    bytes: _repr,
    tuple: _tuple,
    list: _list,
    dict: _dict,
    OrderedDict: _ordered_dict,
    defaultdict: _defaultdict,
    set: _set,
    frozenset: _set,
    slice: _slice,
    type(...): _ellipsis,
    DType: _dtype,
    Device: _device,
}
