"""Which operations return views of which argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from thunder_ir import Symbol, TensorProxy
from thunder_torch.metadata import spec_of
from thunder_torch.names import schemas_of
from thunder_torch.specs import TensorSpec, map_specs, tensors_of
from thunder_torch.traits import Trait, has_trait


@cache
def view_argument(what: Symbol | Callable[..., Any]) -> int | None:
    """Return which positional argument the result of an operation may be a view of, or ``None``.

    Args:
        what: a symbol or PyTorch's callable.

    Example:
        >>> import torch
        >>> from thunder_torch.views import view_argument
        >>> view_argument(torch.transpose), view_argument(torch.add), view_argument(torch.reshape)
        (0, None, 0)
    """
    function = what.origin if isinstance(what, Symbol) else what
    if function is None:
        return None
    if has_trait(function, Trait.MAY_VIEW):
        return 0
    for schema in schemas_of(function):
        for i, argument in enumerate(schema.arguments):
            info = argument.alias_info
            if info is not None and not info.is_write and "*" in info.after_set:  # of which there are several views
                return i
        for returned in schema.returns:
            info = returned.alias_info
            if info is None or info.is_write:
                continue
            for i, argument in enumerate(schema.arguments):
                if argument.alias_info is not None and argument.alias_info.before_set & info.before_set:
                    return i
    return None


def is_view(function: Callable[..., Any]) -> bool:
    """Whether an operation returns nothing but views of its first argument, by PyTorch's schema of it.

    Example:
        >>> import torch
        >>> from thunder_torch.views import is_view
        >>> is_view(torch.view_as_real), is_view(torch.reshape), is_view(torch.add)
        (True, False, False)
    """
    return not has_trait(function, Trait.MAY_VIEW) and view_argument(function) == 0


def viewed(
    what: Symbol | Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[TensorProxy | None]:
    """Return for each output tensor of a call the argument whose memory it shares, or ``None``.

    This is exact, as far as the strides of the arguments are known: ``reshape`` of a contiguous tensor is a view and
    of a transposed one is not.

    Args:
        what: a symbol or PyTorch's callable.
        args, kwargs: of the call.

    Example:
        >>> import torch
        >>> from thunder_ir import Tensor
        >>> from thunder_torch.views import viewed
        >>> x = Tensor((2, 3))
        >>> viewed(torch.reshape, (x, (6,)), {})[0] is x, viewed(torch.neg, (x,), {})
        (True, [None])
    """
    function = what.origin if isinstance(what, Symbol) else what
    arguments = tensors_of(args, kwargs)
    found: list[TensorProxy | None] = []

    def note(spec: TensorSpec) -> None:
        found.append(arguments[spec.viewed] if spec.viewed is not None else None)

    map_specs(note, spec_of(function, args, kwargs))
    return found
