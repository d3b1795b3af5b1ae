"""Tensors of classes that say of their results what they are: followed through a program, without data.

Of a class that is followed, each tensor among the inputs has a shadow: a tensor of the class on the meta device.
PyTorch's own functions, called on shadows, tell of which class results are, and what they say of themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

import torch

from thunder_guards import Step, ToldGuard
from thunder_guards.errors import AcquisitionError
from thunder_guards.sources import Source
from thunder_ir import Symbol, TensorProxy, flat_proxies
from thunder_torch.convert import to_torch_dtype
from thunder_torch.names import name_of
from thunder_tracing.tensors.symbolic_numbers import at_hand


class Follows(Enum):
    """The tag of an operator of which results are followed, whatever it takes; what runs it runs on shadows."""

    FOLLOWS = auto()


FOLLOWS = Follows.FOLLOWS


@dataclass(frozen=True)
class Followed:
    """How tensors of a class are followed.

    Args:
        shadow: makes a tensor of the class, on the meta device, of one.
        told: what programs rely on of a tensor of the class, beside its metadata; compared by ``==``.
    """

    shadow: Callable[[Any], torch.Tensor]
    told: Callable[[Any], Any]


_FOLLOWED: dict[type, Followed] = {}


def follow(cls: type, shadow: Callable[[Any], torch.Tensor], told: Callable[[Any], Any]) -> None:
    """Let tensors of a class be followed in all programs that are acquired from now on.

    Args:
        cls: a subclass of ``torch.Tensor``.
        shadow, told: see :class:`Followed`.

    Raises:
        ValueError: it is followed already.
    """
    if cls in _FOLLOWED:
        raise ValueError(f"{cls.__qualname__} is followed already")
    _FOLLOWED[cls] = Followed(shadow, told)


def is_followed(tensor: torch.Tensor) -> bool:
    """Whether the class of a tensor is followed."""
    return type(tensor) in _FOLLOWED


class Shadows:
    """The shadows of a program's values.

    Args:
        require: takes a guard, and what identifies it.
    """

    def __init__(self, require: Callable[..., None]) -> None:
        self._require = require
        self._of: dict[str, torch.Tensor] = {}

    def meet(self, proxy: TensorProxy, tensor: torch.Tensor, source: Source) -> None:
        """Note an input, and rely on what it says of itself if it is followed."""
        followed = _FOLLOWED.get(type(tensor))
        if followed is not None:
            with torch.no_grad(), torch._C.DisableTorchFunction():
                self._of[proxy.name] = followed.shadow(tensor)
            self._require(ToldGuard(source, followed.told, followed.told(tensor)), id(source), "told")

    def of(self, proxy: TensorProxy) -> torch.Tensor | None:
        """Return the shadow of a value; ``None`` if it is a plain tensor."""
        return self._of.get(proxy.name)

    def note(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: object) -> None:
        """Take notice of a call that was recorded.

        Args:
            function, args, kwargs: the call, on proxies.
            output: what it returns, proxies.

        Raises:
            AcquisitionError: the class does not take the call.
        """
        makes = isinstance(function, Symbol) and FOLLOWS in function.tags
        if not makes and not self._of:
            return
        given = [p for p in flat_proxies((args, kwargs)) if isinstance(p, TensorProxy)]
        made = [p for p in flat_proxies(output) if isinstance(p, TensorProxy)]
        if not makes and not any([p.name in self._of for p in given]) or all([p.name in self._of for p in made]):
            return
        run: Any = function.implementation if isinstance(function, Symbol) else function
        values = {p.name: self._of[p.name] if p.name in self._of else _on_meta(p) for p in given}
        try:
            Step(run, at_hand(args), at_hand(kwargs), output).run(values)
        except Exception as error:  # whatever PyTorch raises here, it raises in eager, too
            raise AcquisitionError(f"{name_of(run)} does not take these tensors: {error}") from error
        self._of.update({p.name: values[p.name] for p in made if type(values[p.name]) in _FOLLOWED})


def _on_meta(proxy: TensorProxy) -> torch.Tensor:
    return torch.empty(at_hand(proxy.shape), dtype=to_torch_dtype(proxy.dtype), device="meta")
