"""Arrays and scalars of NumPy's that only the run of a program brings: those that it draws, and those that it is given.

In the program each is a tensor on the CPU that shares its memory. What NumPy computes of them it computes when the
program runs, on arrays; their views are views of the tensor, and writes to them are writes to it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import torch

from thunder_guards.errors import DataDependentError
from thunder_guards.kinds import NumPyScalar, is_array
from thunder_guards.templates import Built
from thunder_ir import NumberProxy, map_values, values_in
from thunder_tracing.tensors.array_calls import At, Method, numpy, of_tensor, on_arrays, scalar_of_tensor
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.scalar_numbers import by_ufunc, can_be_exact, exactly
from thunder_tracing.tensors.sizes import fixed

T = torch.Tensor
OF_ARRAYS = (torch.tensor, torch.as_tensor, torch.asarray)


INDEX = (T.__getitem__, T.__setitem__)


def built(value: RunArray, tensor: Callable[[T], Any]) -> Built:
    """Return how each call builds what a :class:`RunArray` stands for."""
    return Built(scalar_of_tensor if value.is_scalar else of_tensor, (tensor(value.tensor),))


class RunArray:
    """Stands for an array or a scalar of NumPy's while a program is acquired.

    Args:
        calls: the acquisition.
        tensor: holds the elements, or makes what does when it is wanted.
        examples: arrays or scalars that it may turn out to be; where they are not alike, no program is made.
        root: what it is a view of.
        symbolic: of a scalar that follows from those that the program is given, the symbolic number that is the same.
            Code in C that looks at it sees the first example, to which the program is fixed then.
        given: the array that others hold which it stands for, if it does.
    """

    def __init__(
        self,
        calls: Calls,
        tensor: Any,
        examples: tuple[Any, ...],
        root: RunArray | None = None,
        symbolic: Any = None,
        given: object = None,
    ) -> None:
        self._calls, self._examples = calls, examples
        self._tensor = tensor
        self.symbolic, self.given = symbolic, given
        self.root = self if root is None else root

    @property
    def tensor(self) -> Any:
        """What holds the elements."""
        if not isinstance(self._tensor, T):
            self._tensor = self._tensor()
        return self._tensor

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
        return self.do(T.item, self.tensor) if self.symbolic is None else self.symbolic

    def _looked_at(self) -> bool:
        """Fix the program to a scalar that it is given; return whether it is one."""
        if self.symbolic is not None:
            fixed(self.symbolic)
        return self.symbolic is not None

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._examples[0], name)
        if name.startswith("__") or name in ("flags", "ctypes", "data", "base", "flat"):
            raise self._refused(f"Python asks an array that only the run of the program brings for its {name}")
        if not callable(found):
            is_of_elements = is_array(found) or isinstance(found, NumPyScalar)
            return self._computed(operator.attrgetter(name)) if is_of_elements else found
        return lambda *args, **kwargs: self._computed(Method(name), *args, **kwargs)

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

    def _computed(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return self.do(on_arrays, function, (self, *args), kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        if self._looked_at():
            return self._examples[0].__array__(*args, **kwargs)
        raise self._refused(
            "code in C asks for the elements of an array of NumPy that only the run of the program brings; make a "
            "tensor of it by torch.from_numpy, or compute with tensors (torch.rand, torch.randperm)"
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        if any([isinstance(a, T) for a in args]):
            return NotImplemented
        if len(kwargs.get("out", ())) == 1:
            kwargs = {**kwargs, "out": kwargs["out"][0]}
        return self.do(on_arrays, At(ufunc) if method == "at" else getattr(ufunc, method), args, kwargs)

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
        self._computed(operator.setitem, key, value)

    def __iter__(self) -> Iterator[Any]:
        iter(self._examples[0])
        return iter([self[index] for index in range(len(self))])

    def __len__(self) -> int:
        return len(self._examples[0])

    def __contains__(self, value: object) -> Any:
        return bool(self._computed(operator.eq, value).any())

    def __bool__(self) -> bool:
        if self._examples[0].size != 1:
            return bool(self._examples[0])  # which raises what NumPy raises
        return bool(self.tensor if self.symbolic is None else self.symbolic)

    def __int__(self) -> int:
        if self._looked_at():
            return int(self._examples[0])
        int(self._examples[0])
        return int(self.tensor)

    def __float__(self) -> float:
        number = float(self._examples[0])
        if self._looked_at():
            return number
        raise self._refused("code in C asks for a number of NumPy's that only the run of the program brings")

    def __index__(self) -> int:
        operator.index(self._examples[0])
        if self.symbolic is None:
            self._calls.hand_out_number()  # which PyTorch's own code would not get from a list
        return operator.index(self.tensor if self.symbolic is None else self.symbolic)

    def __hash__(self) -> int:
        found = hash(self._examples[0])
        if self._looked_at():
            return found
        if self.example.dtype.kind in "iub":
            return hash(int(self))
        raise self._refused("Python needs the hash of a number that only the run of the program brings")

    def __repr__(self) -> str:
        return self._as_text(repr)

    def __str__(self) -> str:
        return self._as_text(str)

    def __format__(self, spec: str) -> str:
        return self._as_text(format, spec)

    def _as_text(self, function: Callable[..., str], *args: str) -> str:
        if self._looked_at():
            return function(self._examples[0], *args)
        raise self._refused("Python makes text of an array that only the run of the program brings")

    def __copy__(self) -> Any:
        return self._computed(Method("copy"))

    def __deepcopy__(self, memo: Any) -> Any:
        return self._computed(Method("copy"))

    def __reduce_ex__(self, protocol: object) -> Any:
        raise self._refused("an array that only the run of the program brings is pickled")


def _operator(name: str) -> Callable[..., Any]:
    function = getattr(operator, f"__{name}__")

    def method(self: RunArray, *others: Any) -> Any:
        return NotImplemented if any([isinstance(o, T) for o in others]) else _done(function, self, self, *others)

    return method


def _reflected(name: str) -> Callable[..., Any]:
    function = getattr(operator, f"__{name}__")

    def method(self: RunArray, other: Any) -> Any:
        return NotImplemented if isinstance(other, T) else _done(function, self, other, self)

    return method


def _done(function: Callable[..., Any], owner: RunArray, *operands: object) -> Any:
    """Do what an operator does; of symbolic scalars, in symbolic numbers where these come out as NumPy's."""

    def computed() -> Any:
        return owner.do(on_arrays, function, operands, {})

    scalars = [o for o in operands if type(o) is RunArray]
    numbers = [o.symbolic if type(o) is RunArray else o for o in operands]
    if owner.symbolic is None or not can_be_exact(function, [s.example for s in scalars], numbers):
        return computed()
    with numpy().errstate(all="ignore"):
        examples = [function(*[_example(o, index) for o in operands]) for index in range(len(owner._examples))]
    symbolic = exactly(function, numbers, type(examples[0]))
    if symbolic is None:
        return computed()
    return RunArray(owner._calls, lambda: computed().tensor, tuple(examples), symbolic=symbolic)


def of_ufunc(calls: Calls, ufunc: Any, *numbers: Any) -> Any:
    """Return the scalar that a function of NumPy's gives of symbolic numbers, which are known when a program begins."""
    with numpy().errstate(all="ignore"):
        example = ufunc(*[n.value if isinstance(n, NumberProxy) else n for n in numbers])
    symbolic = by_ufunc(ufunc, numbers[0], type(example)) if len(numbers) == 1 else None
    with torch._C.DisableTorchFunction():
        if symbolic is None:
            return calls(on_arrays, (ufunc, numbers, {}), {})
        kind = {"dtype": torch.int64 if symbolic.python_type is int else torch.float64}
        return RunArray(calls, lambda: calls(torch.full, ((), symbolic), kind), (example, example), symbolic=symbolic)


def _example(value: object, index: int) -> Any:
    if type(value) is RunArray:
        return value._examples[index]
    return value.value if isinstance(value, NumberProxy) else value


def _in_place(name: str) -> Callable[..., Any]:
    function = getattr(operator, f"__i{name}__")

    def method(self: RunArray, other: Any) -> Any:
        if self.is_scalar or isinstance(other, T):
            return NotImplemented
        return self._computed(function, other)

    return method


for _name in "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift".split():
    setattr(RunArray, f"__{_name}__", _operator(_name))
    setattr(RunArray, f"__r{_name}__", _reflected(_name))
    setattr(RunArray, f"__i{_name}__", _in_place(_name))
for _name in "eq ne lt le gt ge neg pos abs invert".split():
    setattr(RunArray, f"__{_name}__", _operator(_name))


def _number(value: RunArray) -> Any:
    if not value.is_scalar:
        raise DataDependentError(
            "a function of PyTorch's is given an array of NumPy that only the run of the program brings; make a tensor "
            "of it by torch.from_numpy"
        )
    return value.number()


def index_of(value: RunArray) -> Any:
    """Return what tensors are indexed with in place of an array or a scalar."""
    return value.tensor if value.symbolic is None else value.symbolic


def run_arrays_in(tree: object) -> list[RunArray]:
    """Return the arrays in the arguments of a call that only the run of the program brings."""
    return [value for value in values_in(tree) if type(value) is RunArray]


def with_numbers_of_scalars(tree: object) -> Any:
    """Return the arguments of a call with numbers of the program in the place of scalars."""
    if not any([value.is_scalar for value in run_arrays_in(tree)]):
        return tree
    return map_values(lambda v: v.number() if type(v) is RunArray and v.is_scalar else v, tree)
