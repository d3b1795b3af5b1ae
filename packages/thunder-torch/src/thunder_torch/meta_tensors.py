"""Metadata of a call by tensors of the meta device: what PyTorch's dispatcher knows without a mode for fake tensors.

What is asked of a fake tensor goes through much Python code of PyTorch's, and for the first one PyTorch loads SymPy and
its distributed tensors, which takes longer than most programs take to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch

from thunder_ir import TensorProxy, value_of
from thunder_torch.convert import contiguous_strides, meta_of
from thunder_torch.fake_modes import plainly
from thunder_torch.names import name_of
from thunder_torch.only_views import is_only_view
from thunder_torch.plain_sizes import answered_plainly
from thunder_torch.specs import map_tensors, spec_of_result, tensors_of
from thunder_torch.traits import Trait, has_trait, is_pytorchs
from thunder_torch.watched_draws import watching
from thunder_torch.without_compilers import leave_compilers_alone

PLAIN = (torch.Tensor, torch.nn.Parameter)
OWN = __name__.partition(".")[0]
"""Where the operations are defined that Thunder adds to PyTorch's: of these, too, it is known."""


class OnMeta:
    """Tensors of the meta device for a call to be run on, in place of fake ones.

    Args:
        operation: what is called.
    """

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.made: list[torch.Tensor] = []

    number = staticmethod(value_of)

    def tensor(self, value: Any) -> torch.Tensor:
        """Return a tensor with the sizes and strides at hand of one that a call is given."""
        self.made.append(_leaf(value) if isinstance(value, TensorProxy) else value.detach().to("meta"))
        return self.made[-1]

    @property
    def mode(self) -> AbstractContextManager[None]:
        """What a call is run within: it loads none of PyTorch's compilers."""
        leave_compilers_alone()
        return answered_plainly(on_meta=True)


def told_on_meta(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], known: bool) -> Any:
    """Return the specification of the result of a call on tensors of a CPU.

    Args:
        function: any callable that takes and returns PyTorch tensors.
        args, kwargs: with :class:`~thunder_ir.TensorProxy` for tensors, of known sizes.
        known: whether the strides of all tensors are.

    Returns:
        ``None`` where only fake tensors tell it, or what the call raises.

    Example:
        >>> import torch
        >>> from thunder_ir import Tensor
        >>> from thunder_torch.meta_tensors import told_on_meta
        >>> told_on_meta(torch.outer, (Tensor((2,)), Tensor((3,))), {}, known=True).shape
        (2, 3)
    """
    if not _is_told(function, args, kwargs):
        return None
    found = on_meta(function, args, kwargs)
    if found is None:
        return None
    output, made = found
    if any([t._version for t in made]) or not all([t.is_meta for t in tensors_of((output,), {})]):
        return None
    return spec_of_result(output, made, known, device=tensors_of(args, kwargs)[0].device)


def on_meta(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, list[torch.Tensor]] | None:
    """Return what a call returns of tensors of the meta device, and these, in order; ``None`` if it raises."""
    meta = OnMeta(name_of(function))
    with plainly(), meta.mode, watching(function):
        given, named = map_tensors(meta.tensor, args), map_tensors(meta.tensor, kwargs)
        try:
            return function(*given, **named), meta.made
        except Exception:  # there is no kernel, or what the call raises is said better of tensors of the CPU
            return None


def outputs_on_meta(function: Callable[..., Any], inputs: Sequence[Any]) -> list[torch.Tensor] | None:
    """Return what a function returns, on the meta device: in a tenth of the time that fake tensors take.

    Args:
        function: returns tensors; of PyTorch's operations that lay out tensors of the CPU and of the meta device alike.
        inputs: tensors, and numbers.

    Returns:
        ``None`` where an input is no plain tensor of the CPU, or the function fails: fake tensors tell, or say why.

    Example:
        >>> import torch
        >>> from thunder_torch.meta_tensors import outputs_on_meta
        >>> [t.stride() for t in outputs_on_meta(lambda x: (x.t() + 1, x), [torch.ones(2, 3)])]
        [(1, 3), (3, 1)]
    """
    given = []
    for value in inputs:
        if isinstance(value, torch.Tensor):
            if type(value) not in PLAIN or value.device.type != "cpu" or value.layout is not torch.strided:
                return None
            value = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        given.append(value)
    leave_compilers_alone()
    with plainly(), answered_plainly(on_meta=True):
        try:
            return list(function(*given))
        except Exception:  # it makes tensors of the CPU beside these, or asks for a value
            return None


def _is_told(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether a call lays out tensors of the meta device as those of a CPU.

    Nearly all operations of PyTorch's do: kernels for the meta device are made for that.
    """
    tensors = tensors_of(args, kwargs)
    if not tensors or not all([isinstance(t, TensorProxy) and t.device.type == "cpu" for t in tensors]):
        return False
    if has_trait(function, Trait.LAYS_OUT) and len(tensors) == 1:
        return True
    if args and args[0] is tensors[0] and is_only_view(function, args, kwargs):
        return True
    if has_trait(function, Trait.OTHERWISE_ON_META) or not runs_on_meta(function):
        return False
    return not has_trait(function, Trait.ROWS_ON_META) or all(map(_is_in_rows, tensors))


def runs_on_meta(function: Any) -> bool:
    """Whether a callable takes tensors of the meta device for others: not one of a user's, which may ask for it."""
    if has_trait(function, Trait.READS_MEMORY):
        return False
    return is_pytorchs(function) or str(getattr(function, "__module__", "")).startswith(OWN)


def _is_in_rows(tensor: TensorProxy) -> bool:
    return tensor.strides is None or tensor.strides == contiguous_strides(tuple(tensor.shape))


def _leaf(proxy: TensorProxy) -> torch.Tensor:
    return meta_of(proxy).requires_grad_(proxy.requires_grad)
