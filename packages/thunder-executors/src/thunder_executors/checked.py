"""What executors of other people promise, and whether they keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_executors.errors import ExecutorError
from thunder_ir import BoundSymbol, NumberProxy, Proxy, TensorProxy, ThunderError


def checked_meta(executor: str, name: str, meta: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``meta`` with its failures reported under the names of the executor and the operation."""

    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            output = meta(*args, **kwargs)
        except ThunderError:
            raise
        except Exception as error:
            raise ExecutorError(
                f"executor {executor}, operation {name}: its meta function raised {type(error).__name__}: {error}"
            ) from error
        wrong = _not_metadata(output)
        if wrong is not None:
            raise ExecutorError(
                f"executor {executor}, operation {name}: its meta function must return proxies, or containers of "
                f"them, and returned {wrong}"
            )
        return output

    return run


def _not_metadata(output: Any) -> str | None:
    """Describe the first leaf of a meta function's output that is neither proxy nor literal; ``None`` if all are."""
    if isinstance(output, (Proxy, int, float, complex, str, type(None))):
        return None
    if isinstance(output, (tuple, list)):
        return next((wrong for wrong in map(_not_metadata, output) if wrong is not None), None)
    if isinstance(output, dict):
        return next((wrong for wrong in map(_not_metadata, output.values()) if wrong is not None), None)
    return f"a {type(output).__module__}.{type(output).__qualname__}"


class Checked:
    """Runs an implementation and compares what it returns with what was promised.

    Args:
        bound: the call: its symbol, and proxies of what it shall return.
    """

    __slots__ = ("__name__", "expected", "function", "place")

    def __init__(self, bound: BoundSymbol) -> None:
        symbol = bound.symbol
        assert symbol.implementation is not None
        self.__name__ = symbol.name
        self.function = symbol.implementation
        self.expected = bound.output
        self.place = f"executor {symbol.executor.name}, operation {symbol.name}"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            output = self.function(*args, **kwargs)
        except Exception as error:
            raise ExecutorError(f"{self.place}: it raised {type(error).__name__}: {error}") from error
        wrong = difference(self.expected, output)
        if wrong is not None:
            raise ExecutorError(f"{self.place}: {wrong}")
        return output

    def __repr__(self) -> str:
        return f"<checked {self.function!r}>"


def difference(expected: Any, actual: Any) -> str | None:
    """Say what of ``actual``, a value, is not as ``expected``, a proxy, says; ``None`` if all is.

    Example:
        >>> from thunder_executors.checked import difference
        >>> from thunder_ir import Tensor
        >>> difference(Tensor((2,)), 3)
        'expected float32[2], got a builtins.int'
    """
    if isinstance(expected, TensorProxy):
        return _tensor_difference(expected, actual)
    if isinstance(expected, NumberProxy):
        return None if isinstance(actual, (int, float, complex)) else f"expected a number, got {_kind(actual)}"
    if isinstance(expected, (tuple, list)):
        if not isinstance(actual, (tuple, list)):
            return f"expected {len(expected)} values, got {_kind(actual)}"
        if len(actual) != len(expected):
            return f"expected {len(expected)} values, got {len(actual)}"
        found = map(difference, expected, actual)
        return next((f"output {i}: {wrong}" for i, wrong in enumerate(found) if wrong is not None), None)
    return None


def _tensor_difference(expected: TensorProxy, actual: Any) -> str | None:
    shape, dtype = getattr(actual, "shape", None), getattr(actual, "dtype", None)
    if shape is None or dtype is None:
        return f"expected {expected.type_string}, got {_kind(actual)}"
    dtype_name = str(dtype).rpartition(".")[2]
    dtype_name = "bool8" if dtype_name == "bool" else dtype_name
    wanted = tuple([d.value if isinstance(d, NumberProxy) else d for d in expected.shape])
    symbolic = any([isinstance(d, NumberProxy) for d in expected.shape])
    same_shape = len(shape) == len(wanted) if symbolic else tuple(shape) == wanted
    if same_shape and dtype_name == expected.dtype.name:
        return None
    dims = ", ".join([str(d) for d in shape])
    return f"expected {expected.dtype.name}[{', '.join(map(str, wanted))}], got {dtype_name}[{dims}]"


def _kind(value: Any) -> str:
    return f"a {type(value).__module__}.{type(value).__qualname__}"
