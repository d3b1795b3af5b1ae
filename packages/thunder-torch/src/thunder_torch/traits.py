"""What is so of an operation of PyTorch's however it is decomposed: stated beside its definition, asked anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto
from typing import Any

from thunder_ir import Symbol
from thunder_torch.names import OPERATORS, last_name, path_of


class Trait(Enum):
    """What the schema of an operation does not say."""

    MAY_VIEW = auto()  # may return a view of its first argument, or a copy
    ONLY_VIEWS = auto()  # returns views without ever reading an element
    SPLITS = auto()  # returns as many results as sizes ask for
    DROPS_ONES = auto()  # its result has no dimensions of size 1, of all or of those that are its second argument
    ONE_NODE = auto()  # its results are one node in autograd's graph; others make several views one by one
    SHAPE_ONLY = auto()  # reads no values of the tensor that it is given, and so has no derivative
    CREATES = auto()  # creates a tensor on the default device
    OF_DEFAULT_DTYPE = auto()  # creates a tensor of the default dtype whatever its arguments are
    UNSET = auto()  # its result holds anything
    DRAWS = auto()  # may draw random numbers
    MAY_FAIL = auto()  # raises for some values of its arguments, as anything may that is not PyTorch's
    TOTAL = auto()  # raises for no values of its arguments, though it is not PyTorch's
    TAKES_INTEGERS = auto()  # takes integers alone besides a tensor, where its schema tells of tensors or of nothing
    SAVES_NOTHING = auto()  # autograd saves none of its arguments, so that freeing them takes nothing away
    SHAPED_BY_METADATA = auto()  # looks at values to check them or to choose a way, not for the shape of its result
    IN_ROWS = auto()  # its results are new and lie row by row, however its arguments lie
    KEEPS_ROWS = auto()  # of tensors that lie row by row it makes new ones that do
    KEEPS_ORDER = auto()  # a new result of it lies in the order of its arguments, as those of elementwise kernels do
    JOINS = auto()  # its result lies row by row unless all it is given are images that lie with their channels last
    LAYS_OUT = auto()  # returns a view of its first argument or a copy, as its sizes and strides alone say
    OTHERWISE_ON_META = auto()  # its results lie otherwise on a CPU than the kernel for the meta device tells
    ROWS_ON_META = auto()  # that kernel tells how they lie where its arguments lie row by row
    MISTOLD = auto()  # of its results PyTorch's fake kernel tells wrong sizes and dtypes
    READS_MEMORY = (
        auto()
    )  # reads values where it is asked for metadata, which of fake tensors PyTorch 2.9 does not check
    RECURRENT = auto()  # a layer that steps along sequences, in the arguments of torch.gru
    SIZES_OF_FIRST = auto()  # its result has the sizes of its first argument
    SIZES_ARE_PRODUCTS = auto()  # each size of its results is a product of sizes that it is given and plain numbers
    SYMBOLIC_PRODUCTS = auto()  # so it is unless sizes are known only when the program runs

    __hash__ = object.__hash__


_TRAITS: dict[Any, frozenset[Trait]] = {}


def state(*functions: Any, traits: Iterable[Trait]) -> None:
    """State traits of operations.

    Args:
        functions: callables, or PyTorch's bare names of them. One name is one operation, wherever PyTorch has it.
        traits: what is so of each.

    Example:
        >>> import torch
        >>> from thunder_torch.traits import Trait, has_trait
        >>> has_trait(torch.Tensor.hsplit, Trait.SPLITS), has_trait(torch.add, Trait.SPLITS)
        (True, False)
    """
    for function in functions:
        key = function if isinstance(function, str) else _key(function)
        _TRAITS[key] = _TRAITS.get(key, frozenset()).union(traits)


def has_trait(function: Any, trait: Trait) -> bool:
    """Whether something is so of an operation, by its callable or symbol."""
    try:
        return trait in _TRAITS.get(_key(function), ())
    except TypeError:  # unhashable
        return False


def _key(function: Any) -> Any:
    """Return the bare name of what is PyTorch's, and of a prim; anything else as it is."""
    if isinstance(function, Symbol):
        if function.origin is None:
            return function.name
        function = function.origin
    path = path_of(function)
    return OPERATORS.get(path) or last_name(function) if _is_of_pytorch(path) else function


def is_pytorchs(function: Any) -> bool:
    """Whether a callable is PyTorch's own: not one of other libraries, which PyTorch's dispatcher may know as well."""
    return _is_of_pytorch(path_of(function))


def _is_of_pytorch(path: str) -> bool:
    return path.startswith("torch.") and (not path.startswith("torch.ops.") or path.startswith("torch.ops.aten."))
