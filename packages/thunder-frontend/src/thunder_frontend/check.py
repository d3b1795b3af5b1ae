"""``check="first-call"``: eager beside the first call of a specialisation, on a copy of everything."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from thunder_frontend.errors import DifferenceError
from thunder_torch.specs import storage_key


class FirstCallCheck:
    """Runs eager on copies before a compiled call, and compares after it.

    Args:
        function: what is compiled; a module is copied with its state.
        args, kwargs: of the call.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._inputs = function, (args, kwargs)
        memo: dict[int, Any] = {}
        self._eager = copy.deepcopy(function, memo) if _has_state(function) else function
        self._eager_inputs = _copied((args, kwargs), memo)
        with torch.random.fork_rng():
            self.expected = self._eager(*self._eager_inputs[0], **self._eager_inputs[1])

    def compare(self, result: Any) -> None:
        """Compare the compiled call's result, its arguments and the module's state with eager's.

        Raises:
            DifferenceError: naming what differs, and by how much.
        """
        _same_tree("the result", result, self.expected)
        _same_tree("an argument", self._inputs, self._eager_inputs)
        if isinstance(self._function, torch.nn.Module):
            _same_tree("the module's state", self._function.state_dict(), self._eager.state_dict())
        ours, eagers = _tensors((result, self._inputs)), _tensors((self.expected, self._eager_inputs))
        if _sharing(ours) != _sharing(eagers):
            raise DifferenceError("the tensors returned share memory in another way than eager's")


def _has_state(function: Any) -> bool:
    return isinstance(function, torch.nn.Module) or hasattr(function, "__self__")


def _copied(inputs: Any, memo: dict[int, Any]) -> Any:
    """Copies of arguments; tensors that are no leaves of autograd, which cannot be copied, become such."""

    def copied(value: Any) -> Any:
        if isinstance(value, torch.Tensor) and not value.is_leaf:
            return value.detach().clone().requires_grad_(value.requires_grad).view_as(value)
        return copy.deepcopy(value, memo)

    return pytree.tree_map(copied, inputs)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _sharing(tensors: list[torch.Tensor]) -> list[int]:
    first: dict[int, int] = {}
    return [first.setdefault(storage_key(t), i) for i, t in enumerate(tensors)]


def _same_tree(what: str, result: Any, expected: Any) -> None:
    ours, structure = pytree.tree_flatten(result)
    eagers, eager_structure = pytree.tree_flatten(expected)
    if structure != eager_structure:
        raise DifferenceError(f"{what} has another structure than eager's: {structure} and not {eager_structure}")
    for index, (our, eager) in enumerate(zip(ours, eagers, strict=True)):
        if isinstance(eager, torch.Tensor):
            try:
                torch.testing.assert_close(our, eager, equal_nan=True)
            except AssertionError as error:
                raise DifferenceError(f"{what} (leaf {index}) is not eager's: {error}") from None
            if our.requires_grad != eager.requires_grad:
                raise DifferenceError(
                    f"{what} (leaf {index}) has requires_grad={our.requires_grad}, eager's the opposite"
                )


__all__ = ["FirstCallCheck"]
