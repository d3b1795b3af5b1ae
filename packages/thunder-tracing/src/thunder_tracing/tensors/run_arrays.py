"""Arrays and scalars of NumPy's that only the run of a program brings, such as those that it draws.

In the program each is a tensor on the CPU that shares its memory. What NumPy computes of them it computes when the
program runs, on arrays; their views are views of the tensor, and writes to them are writes to it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from thunder_guards.errors import DataDependentError
from thunder_guards.kinds import NumPyScalar, is_array, is_value
from thunder_guards.templates import Built
from thunder_ir import FloatProxy, NumberProxy, is_unknown, map_values
from thunder_torch import opaque_call
from thunder_torch.convert import proxy_of
from thunder_torch.opaque import Call, call_of
from thunder_tracing.one_way import TAGS, OtherWay
from thunder_tracing.tensors._handlers import answers
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.metadata_calls import fixed

T = torch.Tensor
OF_ARRAYS = (torch.tensor, torch.as_tensor, torch.asarray)


def as_tensor(value: Any) -> T:
    """Return the tensor in whose place a program has an array or a scalar, with its memory if it is an array.

    Raises:
        TypeError: tensors have no such elements, or no such layout.
    """
    return torch.from_numpy(value if is_array(value) else sys.modules["numpy"].asarray(value))


def of_tensor(tensor: T) -> Any:
    """Return the array that a tensor is in the place of."""
    return tensor.numpy()


def scalar_of_tensor(tensor: T) -> Any:
    """Return the scalar that a tensor is in the place of."""
    return tensor.numpy()[()]


INDEX = (T.__getitem__, T.__setitem__)
EXAMPLES = 2
"""How many examples there are of each: where they are not alike, what comes of them is not known."""


@dataclass(frozen=True, slots=True, eq=False)
class OnArrays:
    """Calls a function, when a program runs, with arrays and scalars in the place of tensors.

    Args:
        call: the function, with what it is given besides.
        scalars: which of its values are scalars.
        example: of what it returns.
    """

    call: Call
    scalars: tuple[bool, ...]
    example: Any

    @property
    def __name__(self) -> str:
        return self.call.__name__

    def __call__(self, *values: Any) -> T:
        pairs = zip(values, self.scalars, strict=True)
        given = [v if not isinstance(v, T) else scalar_of_tensor(v) if scalar else of_tensor(v) for v, scalar in pairs]
        made = self.call(*given)
        tensor, like = as_tensor(made), as_tensor(self.example)
        if (tensor.shape, tensor.dtype, tensor.stride()) != (like.shape, like.dtype, like.stride()):
            raise OtherWay  # the program is one for another shape
        return tensor

    def metadata(self, values: tuple[Any, ...]) -> Any:
        """Return a proxy for what it returns."""
        return proxy_of(as_tensor(self.example), "")

    def connected(self, values: tuple[Any, ...]) -> tuple[set[str], tuple[bool, ...]]:
        """No derivative flows through it."""
        return set(), (False,)


@dataclass(frozen=True, slots=True)
class Method:
    """Calls a method.

    Args:
        name: of the method.
    """

    name: str

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(owner, self.name)(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Written:
    """Returns a copy of its first argument that a function has written to.

    Args:
        function: writes to its first argument.
    """

    function: Callable[..., Any]

    def __call__(self, owner: Any, *args: Any, **kwargs: Any) -> Any:
        copied = owner.copy()
        self.function(copied, *args, **kwargs)
        return copied


def built(value: RunArray, tensor: Callable[[T], Any]) -> Built:
    """Return how each call builds what a :class:`RunArray` stands for."""
    return Built(scalar_of_tensor if value.is_scalar else of_tensor, (tensor(value.tensor),))


class RunArray:
    """Stands for an array or a scalar of NumPy's while a program is acquired.

    Args:
        calls: the acquisition.
        tensor: holds the elements.
        examples: arrays or scalars that it may turn out to be; where they are not alike, no program is made.
        root: what it is a view of.
    """

    def __init__(self, calls: Calls, tensor: Any, examples: tuple[Any, ...], root: RunArray | None = None) -> None:
        self._calls, self._examples = calls, examples
        self.tensor = tensor
        self.root = self if root is None else root

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(self._examples[0])

    @property
    def is_scalar(self) -> bool:
        """Whether it stands for a scalar."""
        return not is_array(self._examples[0])

    @property
    def example(self) -> Any:
        """What it may turn out to be."""
        return self._examples[0]

    def number(self) -> Any:
        """Return the one element as a number of the program."""
        return self.do(T.item, self.tensor)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._examples[0], name)
        if name.startswith("__") or name in ("flags", "ctypes", "data", "base", "flat"):
            raise self._refused(f"Python asks an array that only the run of the program brings for its {name}")
        if not callable(found):
            is_of_elements = is_array(found) or isinstance(found, NumPyScalar)
            return self._computed(operator.attrgetter(name)) if is_of_elements else found
        return lambda *args, **kwargs: self._called(Method(name), args, kwargs)

    def _refused(self, why: str) -> DataDependentError:
        """Return why there is no program: whoever asks may not hand it on."""
        self._calls.refusal = DataDependentError(why)
        return self._calls.refusal

    def item(self, *index: Any) -> Any:
        """Return one element as a number of the program."""
        found = self[index] if index else self
        if found._examples[0].size != 1:
            return found._examples[0].item()  # which raises what NumPy raises
        return found.number()

    def tolist(self) -> Any:
        """Return the elements as numbers of the program, in lists."""
        return [part.tolist() for part in self] if self._examples[0].ndim else self.number()

    def do(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Record a call of a torch function."""
        with torch._C.DisableTorchFunction():
            return self._calls(function, args, kwargs)

    def _called(self, method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        try:
            return self._computed(method, *args, **kwargs)
        except _ReadOnlyError:
            self._write(method, *args, **kwargs)
            return None

    def _computed(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self.do(on_arrays, function, (self, *args), kwargs)

    def _write(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        made = self.do(on_arrays, Written(function), (self, *args), kwargs)
        if made.example.dtype != self.example.dtype or made.example.shape != self.example.shape:
            raise DataDependentError("an array that only the run of the program brings becomes one of another shape")
        self.do(T.copy_, self.tensor, made.tensor)
        for example, now in zip(self._examples, made._examples, strict=True):
            example[...] = now

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise self._refused(
            "code in C asks for the elements of an array of NumPy that only the run of the program brings; make a "
            "tensor of it by torch.from_numpy, or compute with tensors (torch.rand, torch.randperm)"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if any([isinstance(a, T) for a in args]):
            return NotImplemented
        return self.do(on_arrays, getattr(ufunc, method), args, kwargs)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return self.do(on_arrays, function, args, kwargs)

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if function not in OF_ARRAYS:
            first = next(a for a in args if type(a) is cls)
            as_argument = index_of if function in INDEX and args[1] is first else _number
            return first.do(function, *[as_argument(a) if type(a) is cls else a for a in args], **kwargs)
        calls, read = args[0]._calls, args[0].tensor
        requires_grad = kwargs.pop("requires_grad", False)
        kwargs["copy"] = function is torch.tensor or kwargs.get("copy") is True
        made = args[0].do(T.to, read, **{k: v for k, v in kwargs.items() if v is not None})
        if requires_grad:
            calls.leaves.begin(made)
        return made

    def __getitem__(self, key: Any) -> Any:
        return self._computed(operator.getitem, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._write(operator.setitem, key, value)

    def __iter__(self) -> Iterator[Any]:
        iter(self._examples[0])
        return iter([self[index] for index in range(len(self))])

    def __len__(self) -> int:
        return len(self._examples[0])

    def __contains__(self, value: Any) -> Any:
        return bool(self._computed(operator.eq, value).any())

    def __bool__(self) -> bool:
        if self._examples[0].size != 1:
            return bool(self._examples[0])  # which raises what NumPy raises
        return bool(self.tensor)

    def __int__(self) -> int:
        int(self._examples[0])
        return int(self.tensor)

    def __float__(self) -> float:
        float(self._examples[0])
        raise self._refused("code in C asks for a number of NumPy's that only the run of the program brings")

    def __index__(self) -> int:
        operator.index(self._examples[0])
        return operator.index(self.tensor)

    def __hash__(self) -> int:
        hash(self._examples[0])
        raise self._refused("Python needs the hash of a number that only the run of the program brings")

    def __repr__(self) -> str:
        raise self._refused("Python makes text of an array that only the run of the program brings")

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __copy__(self) -> Any:
        return self._computed(Method("copy"))

    def __deepcopy__(self, memo: Any) -> Any:
        return self._computed(Method("copy"))

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise self._refused("an array that only the run of the program brings is pickled")


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(operator, f"__{name}__")

    def method(self: RunArray, *others: Any) -> Any:
        return NotImplemented if any([isinstance(o, T) for o in others]) else self._computed(function, *others)

    return method


def _reflected(name: str) -> Callable[..., Any]:
    function = getattr(operator, f"__{name}__")

    def method(self: RunArray, other: Any) -> Any:
        return NotImplemented if isinstance(other, T) else self.do(on_arrays, function, (other, self), {})

    return method


def _in_place(name: str) -> Callable[..., Any]:
    function = getattr(operator, f"__i{name}__")

    def method(self: RunArray, other: Any) -> Any:
        if self.is_scalar or isinstance(other, T):
            return NotImplemented
        self._write(function, other)
        return self

    return method


for _name in (
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
    "lshift",
    "rshift",
):
    setattr(RunArray, f"__{_name}__", _operator(_name))
    setattr(RunArray, f"__r{_name}__", _reflected(_name))
    setattr(RunArray, f"__i{_name}__", _in_place(_name))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"):
    setattr(RunArray, f"__{_name}__", _operator(_name))


class _ReadOnlyError(DataDependentError):
    """A function writes to an array that it is given."""


def _number(value: RunArray) -> Any:
    if not value.is_scalar:
        raise DataDependentError(
            "a function of PyTorch's is given an array of NumPy that only the run of the program brings; make a tensor "
            "of it by torch.from_numpy"
        )
    return value.number()


def index_of(value: RunArray) -> Any:
    """Return what tensors are indexed with in place of an array or a scalar."""
    return value.number() if value.is_scalar else value.tensor


def run_arrays_in(tree: Any) -> list[RunArray]:
    """Return the arrays in the arguments of a call that only the run of the program brings."""
    found: list[RunArray] = []
    map_values(lambda v: found.append(v) if type(v) is RunArray else None, tree)
    return found


def on_arrays(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Stand for a call of a function with such arrays, where it is recorded."""
    return function(*args, **kwargs)


@answers(on_arrays)
def _on_arrays(calls: Calls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    args, kwargs = map_values(_settled, (args, kwargs))
    given = run_arrays_in((args, kwargs))
    made = tuple([_example(function, args, kwargs, index) for index in range(EXAMPLES)])
    calls.changes += 1  # a module that does the same may be given others
    for one in given:
        if not one.is_scalar and is_array(made[0]) and _numpy().may_share_memory(one.example, made[0]):
            return _view(calls, one.root, made)
    scalars = [v for v in _flat((args, kwargs)) if isinstance(v, (RunArray, NumberProxy))]
    call, values = call_of(
        function, *map_values(lambda v: calls.value(v.tensor) if type(v) is RunArray else v, (args, kwargs))
    )
    kinds = tuple([type(v) is RunArray and v.is_scalar for v in scalars])
    return recorded(calls, OnArrays(call, kinds, made[0]), values, made)


def recorded(calls: Calls, call: Any, values: Sequence[Any], examples: tuple[Any, ...]) -> Any:
    """Record a call that brings an array, a scalar or a number; return what stands for it.

    Args:
        calls: the acquisition.
        call: what is called.
        values: it is given when it runs.
        examples: of what it may return.

    Raises:
        DataDependentError: they are not alike.
    """
    try:
        with torch._C.DisableTorchFunction():
            tensors = [as_tensor(e) for e in examples]
            alike = {(type(e), t.shape, t.dtype, t.stride()) for e, t in zip(examples, tensors, strict=True)}
    except (TypeError, ValueError) as error:
        raise DataDependentError(f"only the run of the program brings what no tensor holds: {error}") from error
    if (
        len(alike) > 1
        or not isinstance(examples[0], (bool, int, float, NumPyScalar))
        and type(examples[0]) is not _numpy().ndarray
    ):
        raise DataDependentError(
            "NumPy computes of numbers that only the run of the program brings what is another kind of value, or of "
            "another shape, for others"
        )
    with torch._C.DisableTorchFunction(), calls.builder.tagged(*TAGS):
        tensor = calls.wrap(opaque_call(call, *values))
    made = RunArray(calls, tensor, tuple([e.copy("K") if is_array(e) else e for e in examples]))
    return made.number() if type(examples[0]) in (bool, int, float) else made


def _numpy() -> Any:
    return sys.modules["numpy"]


def _flat(tree: Any) -> list[Any]:
    found: list[Any] = []
    map_values(found.append, tree)
    return found


def _settled(value: Any) -> Any:
    """Return what a call may be given that is recorded."""
    if type(value) is RunArray or isinstance(value, FloatProxy) and value.value is not None:
        return value
    if isinstance(value, NumberProxy):
        if is_unknown(value):
            raise DataDependentError("NumPy is given a number that only the run of the program tells")
        return fixed(value)
    if type(value) is _numpy().ndarray:
        return value.copy("K")
    if value is None or is_value(value) or isinstance(value, (type, _numpy().dtype)):
        return value
    raise DataDependentError(
        f"NumPy is given a {type(value).__name__} beside numbers that only the run of the program brings"
    )


def _example(function: Callable[..., Any], args: Any, kwargs: Any, index: int) -> Any:
    """Return what a function returns for one of the examples of what it is given, none of which it may write to."""

    def given(value: Any) -> Any:
        if type(value) is RunArray:
            value = value._examples[index]
        if is_array(value):
            value = value.view()
            value.flags.writeable = False
        return value.value if isinstance(value, NumberProxy) else value

    args, kwargs = map_values(given, (args, kwargs))
    try:
        with _numpy().errstate(all="ignore"):
            return function(*args, **kwargs)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        kind = _ReadOnlyError if "read-only" in str(error) else DataDependentError
        raise kind(f"NumPy may refuse what only the run of the program brings: {error}") from error


def _view(calls: Calls, root: RunArray, made: tuple[Any, ...]) -> Any:
    """Return what stands for a view of an array."""
    first, size = made[0], root.example.itemsize
    bounds = {_place(m, r) for m, r in zip(made, root._examples, strict=True)}
    shape, dtype, strides, offset = bounds.pop()
    in_order = root.example.flags.forc and all([s >= 0 and s % size == 0 for s in (*strides, offset)])
    if bounds or dtype != root.example.dtype or not in_order or type(first) is not _numpy().ndarray:
        raise DataDependentError("the program views an array that only its run brings in a way that tensors cannot")
    place = (shape, tuple([s // size for s in strides]), offset // size)
    examples = [_numpy().ndarray(shape, dtype, r.ravel("K"), offset, strides) for r in root._examples]
    return RunArray(calls, calls(torch.as_strided, (root.tensor, *place), {}), tuple(examples), root)


def _place(view: Any, root: Any) -> tuple[Any, ...]:
    offset = view.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return view.shape, view.dtype, view.strides, offset


__all__ = [
    "EXAMPLES",
    "OF_ARRAYS",
    "OnArrays",
    "RunArray",
    "as_tensor",
    "built",
    "index_of",
    "on_arrays",
    "recorded",
    "run_arrays_in",
]
