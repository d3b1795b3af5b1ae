"""``check="first-call"``: eager beside the first call of a specialisation, on a copy of everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from thunder_frontend._copies import copied, is_copied_whole
from thunder_guards.errors import DifferenceError
from thunder_guards.kinds import CODE, CONTAINERS, DICTS, is_value
from thunder_torch.specs import storage_key


class FirstCallCheck:
    """Runs eager on copies before a compiled call, and compares after it.

    Args:
        function: what is compiled; a module is copied with its state, a function with what it reads and writes.
        args, kwargs: of the call.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._function, self._inputs = function, (args, kwargs)
        self._copies, self._eager, self._eager_inputs = copied(function, self._inputs)
        with torch.random.fork_rng():
            self.expected = self._eager(*self._eager_inputs[0], **self._eager_inputs[1])

    def compare(self, result: object) -> None:
        """Compare the compiled call's result, its arguments and the state that it reaches with eager's.

        Raises:
            DifferenceError: naming what differs, and by how much.
        """
        same = Same()
        same.object("the result", result, self.expected)
        same.object("an argument", self._inputs, self._eager_inputs)
        same.object("the state", *[getattr(f, "__self__", f) for f in (self._function, self._eager)])
        for what, our, eager in self._copies.pairs():
            same.object(what, our, eager)
        ours, eagers = _tensors((result, self._inputs)), _tensors((self.expected, self._eager_inputs))
        if _sharing(ours) != _sharing(eagers):
            raise DifferenceError("the tensors returned share memory in another way than eager's")


class Same:
    """Compares objects, and what they hold, with those that eager has in their place."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}

    def object(self, what: str, our: Any, eager: Any) -> None:
        """Compare two objects. Of those that are neither tensors nor plain values, what they hold is compared.

        Raises:
            DifferenceError: they differ.
        """
        if our is eager or type(our) is not type(eager) and isinstance(our, CODE) or id(our) in self._seen:
            return
        self._seen[id(our)] = our
        if isinstance(eager, torch.Tensor):
            _same_tensor(what, our, eager)
        elif is_value(eager) or is_value(our):
            if type(our) is not type(eager) or our != eager and our == our:
                raise DifferenceError(f"{what} is {our!r}, eager's {eager!r}")
        elif isinstance(eager, CONTAINERS) and type(our) is not type(eager):
            raise DifferenceError(f"{what} is a {type(our).__name__}, eager's a {type(eager).__name__}")
        elif isinstance(eager, DICTS):
            self._items(what, our, eager)
        elif isinstance(eager, (list, tuple)):
            if len(our) != len(eager):
                raise DifferenceError(f"{what} has {len(our)} items, eager's {len(eager)}")
            for index, pair in enumerate(zip(our, eager, strict=True)):
                self.object(f"{what}[{index}]", *pair)
        elif not isinstance(eager, CODE) and is_copied_whole(eager):
            self._items(what, vars(our), vars(eager))

    def _items(self, what: str, our: Any, eager: Any) -> None:
        keys, eager_keys = ([k for k in d if is_value(k)] for d in (our, eager))
        if keys != eager_keys:
            raise DifferenceError(f"{what} has {keys}, eager's {eager_keys}")
        for key in keys:
            self.object(f"{what}.{key}", our[key], eager[key])


def _same_tensor(what: str, our: torch.Tensor, eager: torch.Tensor) -> None:
    try:
        torch.testing.assert_close(our, eager, equal_nan=True)
    except AssertionError as error:
        raise DifferenceError(f"{what} is not eager's: {error}") from None
    if our.requires_grad != eager.requires_grad:
        raise DifferenceError(f"{what} has requires_grad={our.requires_grad}, eager's the opposite")


def _tensors(tree: object) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _sharing(tensors: list[torch.Tensor]) -> list[int]:
    first: dict[int, int] = {}
    return [first.setdefault(storage_key(t), i) for i, t in enumerate(tensors)]
