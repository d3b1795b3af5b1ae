"""Tables of the signatures of libraries that are not here, and stand-ins that hold every call to them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

Kinds = Mapping[str, "type | tuple[type, ...]"]
PLAIN: Kinds = {"bool": bool, "float": (float, int), "int": int, "str": str, "complex": (complex, float, int)}


class SignatureError(TypeError):
    """A call does not match what the table says of a function; the message names both."""


@dataclass(frozen=True)
class Table:
    """What a library's functions take, as its source says.

    Args:
        library: its name.
        version: release or commit that was read.
        source: repository and files that were read.
        text: Python declarations, ``def name(a: Tensor, eps: float = 1e-6) -> Tensor: ...``, a line each; a name that
            is declared several times has that many forms. Annotations are made of ``None``, ``Any``, ``bool``,
            ``int``, ``float``, ``complex``, ``str``, ``list[...]``, ``tuple[...]``, ``|``, and the names in ``kinds``.
        kinds: classes for the names that annotations use beside those.

    Example:
        >>> from thunder_testing import Table
        >>> table = Table("doc", "1.0", "nowhere", "def scale(a: list[float], by: float = 2.0) -> list[float]: ...")
        >>> table.bind("scale", ([1.0],), {}).arguments
        {'a': [1.0], 'by': 2.0}
        >>> table.bind("scale", ([1.0],), {"by": "3"})
        Traceback (most recent call last):
        thunder_testing.signatures.SignatureError: doc 1.0: scale(a: list[float], by: float=2.0): by is the str '3'
    """

    library: str
    version: str
    source: str
    text: str
    kinds: Kinds = field(default_factory=dict)
    forms: Mapping[str, tuple[ast.FunctionDef, ...]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found: dict[str, tuple[ast.FunctionDef, ...]] = {}
        for node in ast.parse(self.text).body:
            if not isinstance(node, ast.FunctionDef):
                raise ValueError(f"the table of {self.library} holds more than declarations, at line {node.lineno}")
            found[node.name] = (*found.get(node.name, ()), node)
        object.__setattr__(self, "forms", MappingProxyType(found))

    def bind(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        """Return the arguments of a call under their names, defaults included.

        Raises:
            SignatureError: there is no such function, or no form of it takes these arguments.
        """
        reasons = []
        for form in self.forms.get(name, ()):
            try:
                bound = _signature(form).bind(*args, **kwargs)
            except TypeError as error:
                reasons.append(f"{_shown(form)}: {error}")
                continue
            wrong = self._misfit(form, bound.arguments)
            if wrong is None:
                bound.apply_defaults()
                return bound
            reasons.append(f"{_shown(form)}: {wrong}")
        raise SignatureError(f"{self.library} {self.version}: {'; '.join(reasons) or f'it has no {name}'}")

    def check_result(self, name: str, value: Any) -> None:
        """Hold what a function returns to its declaration.

        Raises:
            SignatureError: it is something else.
        """
        wanted = [form.returns for form in self.forms[name]]
        if not any([r is None or _fits(r, value, self.kinds) for r in wanted]):
            raise SignatureError(f"{self.library} {self.version}: {name} returned {_described(value)}")

    def _misfit(self, form: ast.FunctionDef, arguments: Mapping[str, Any]) -> str | None:
        spec = form.args
        for parameter in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            annotation = parameter.annotation
            if parameter.arg in arguments and annotation is not None:
                value = arguments[parameter.arg]
                if not _fits(annotation, value, self.kinds):
                    return f"{parameter.arg} is {_described(value)}"
        return None


def _signature(form: ast.FunctionDef) -> inspect.Signature:
    spec, kinds = form.args, inspect.Parameter
    positional = [*spec.posonlyargs, *spec.args]
    defaults = [None] * (len(positional) - len(spec.defaults)) + list(spec.defaults)
    made = []
    for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
        kind = kinds.POSITIONAL_ONLY if index < len(spec.posonlyargs) else kinds.POSITIONAL_OR_KEYWORD
        made.append(kinds(argument.arg, kind, default=_default(default)))
    for argument, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        made.append(kinds(argument.arg, kinds.KEYWORD_ONLY, default=_default(default)))
    return inspect.Signature(made)


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return inspect.Parameter.empty
    return node.id if isinstance(node, ast.Name) else ast.literal_eval(node)


def _fits(annotation: ast.expr, value: Any, kinds: Kinds) -> bool:
    match annotation:
        case ast.Constant(value=None):
            return value is None
        case ast.BinOp(left=left, right=right):
            return _fits(left, value, kinds) or _fits(right, value, kinds)
        case ast.Subscript(value=ast.Name(id="list"), slice=item):
            return isinstance(value, (list, tuple)) and all([_fits(item, v, kinds) for v in value])
        case ast.Subscript(value=ast.Name(id="tuple"), slice=ast.Tuple(elts=items)):
            fitting = isinstance(value, (list, tuple)) and len(value) == len(items)
            return fitting and all([_fits(i, v, kinds) for i, v in zip(items, value, strict=True)])
        case ast.Name(id="Any"):
            return True
        case ast.Name(id="bool"):
            return isinstance(value, bool)
        case ast.Name(id=name):
            return isinstance(value, kinds.get(name) or PLAIN[name]) and not isinstance(value, bool)
    raise ValueError(f"a table cannot say {ast.unparse(annotation)}")


def _shown(form: ast.FunctionDef) -> str:
    return f"{form.name}({ast.unparse(form.args)})"


def _described(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"the {type(value).__name__} of {', '.join(sorted({type(v).__name__ for v in value})) or 'nothing'}"
    return f"the {type(value).__name__} {value!r}" if isinstance(value, (str, int, float)) else _kind(value)


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


@dataclass(frozen=True)
class Call:
    """A call that a stand-in took.

    Args:
        name: of the function.
        arguments: by name, defaults included.
    """

    name: str
    arguments: Mapping[str, Any]


class StandIn:
    """Stands for a module that is not here: calls are held to a table, recorded, and answered by references.

    Args:
        table: the signatures.
        references: functions that compute the same, by name; they take the arguments by position.

    Example:
        >>> from thunder_testing import StandIn, Table
        >>> table = Table("doc", "1.0", "nowhere", "def double(a: int, /) -> int: ...")
        >>> module = StandIn(table, {"double": lambda a: 2 * a})
        >>> module.double(4), module.calls
        (8, [Call(name='double', arguments={'a': 4})])
    """

    def __init__(self, table: Table, references: Mapping[str, Callable[..., Any]]) -> None:
        unknown = sorted(references.keys() - table.forms.keys())
        if unknown:
            raise ValueError(f"the table of {table.library} declares no {', '.join(unknown)}")
        self.table = table
        self.calls: list[Call] = []
        self._references = references

    def __getattr__(self, name: str) -> Callable[..., Any]:
        table, references = self.table, self._references
        if name not in table.forms:
            raise AttributeError(f"{table.library} {table.version} has no {name}")

        def call(*args: Any, **kwargs: Any) -> Any:
            bound = table.bind(name, args, kwargs)
            self.calls.append(Call(name, dict(bound.arguments)))
            value = references[name](*bound.arguments.values())
            table.check_result(name, value)
            return value

        return call


__all__ = ["Call", "SignatureError", "StandIn", "Table"]
