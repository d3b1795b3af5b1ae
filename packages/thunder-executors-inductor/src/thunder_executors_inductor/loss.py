"""Cross entropy in parts: a kernel of PyTorch picks the logits of the targets, and loops compute all the rest.

Picking raises where a target is no class, and must not be in a loop that several threads run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch.nn import functional

import thunder_lang as lang
from thunder_executors import Declined, FusionExecutor, Implementation
from thunder_ir import BoundSymbol, DType, OpTags, TensorProxy, current_builder, dtypes, value_of
from thunder_torch import call, symbol_of
from thunder_torch.call_arguments import CrossEntropy, called_with

WORTH_IT = 1 << 20  # logits: with fewer, compiling two more regions takes longer than many steps gain
FLOATS: dict[str, tuple[DType, ...]] = {"cpu": (dtypes.float32, dtypes.float64)}
FLOATS["cuda"] = (*FLOATS["cpu"], dtypes.float16, dtypes.bfloat16)
CLASSES = (dtypes.int64, dtypes.uint8)
REDUCTIONS = ("none", "mean", "sum")

Rule = tuple[TensorProxy, Callable[[TensorProxy], tuple[TensorProxy, None]]]


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """The loss of each row, and what its derivative reads.

    Args:
        each: shape ``(n, ...)``.
        greatest: of the logits of a row, shape ``(n, 1, ...)``.
        logarithm: of the sum of the exponentials of a row's logits less the greatest, shape ``(n, 1, ...)``.
        counts: whether a row counts, shape ``(n, ...)``.
        number: of rows that count.
    """

    each: TensorProxy
    greatest: TensorProxy
    logarithm: TensorProxy
    counts: TensorProxy
    number: TensorProxy

    def reduced(self, reduction: str) -> TensorProxy:
        """Return the losses, their sum or their mean."""
        if reduction == "none":
            return self.each
        total = lang.sum(self.each)
        return total / self.number if reduction == "mean" else total


def losses(c: CrossEntropy) -> Losses:
    """Return the losses of rows of logits in the second dimension."""
    a = wide(c.input)
    picked = call(functional.nll_loss, (c.input, c.target), {"ignore_index": c.ignore_index, "reduction": "none"})
    with current_builder().tagged(OpTags.CONSTANT_FOR_DERIVATIVE):
        greatest = lang.amax(a, 1, True)
    logarithm = lang.log(lang.sum(lang.exp(a - greatest), 1, True))
    with current_builder().tagged(OpTags.DONT_FUSE):  # less work than compiling a region for it
        counts = lang.ne(c.target, c.ignore_index)
        number = lang.sum(lang.to(counts, a.dtype))
    each = lang.squeeze(logarithm, 1) + (lang.squeeze(greatest, 1) + wide(picked))
    return Losses(lang.where(counts, each, lang.zeros_like(each)), greatest, logarithm, counts, number)


def wide(a: TensorProxy) -> TensorProxy:
    """Return a tensor in the dtype that losses are computed in: of halves in float32, as in PyTorch's kernels."""
    return lang.to(a, dtypes.float32) if a.dtype.bits < 32 else a


@called_with(CrossEntropy)
def cross_entropy(c: CrossEntropy) -> TensorProxy:
    """Compute no logarithm of a probability but those that are picked."""
    return lang.to(losses(c).reduced(c.reduction), c.input.dtype)


@called_with(CrossEntropy)
def cross_entropy_rule(c: CrossEntropy) -> Rule:
    """``da = (softmax(a) - (1 where the target is)) * dy``; save the logits, and some numbers for each row."""
    a, found = wide(c.input), losses(c)
    shape = (1, a.shape[1], *[1] * (a.ndim - 2))

    def pullback(dy: TensorProxy) -> tuple[TensorProxy, None]:
        dy = wide(dy)
        scale = lang.expand(dy / found.number if c.reduction == "mean" else dy, found.counts.shape)
        scale = lang.unsqueeze(lang.where(found.counts, scale, lang.zeros_like(scale)), 1)
        probability = lang.exp((a - found.greatest) - found.logarithm)
        classes = lang.reshape(lang.arange(a.shape[1], device=a.device), shape)
        hit = lang.eq(classes, lang.unsqueeze(c.target, 1))
        return lang.to((probability - lang.to(hit, a.dtype)) * scale, c.input.dtype), None

    return lang.to(found.reduced(c.reduction), c.input.dtype), pullback


@called_with(CrossEntropy)
def taken(c: CrossEntropy) -> bool | Declined:
    """Whether a loss is made in parts: of many logits, with a class for each row."""
    a, target = c.input, c.target
    if not isinstance(a, TensorProxy) or a.dtype not in FLOATS.get(a.device.type, ()) or a.ndim < 2:
        return Declined("it takes rows of logits, float32 or float64, on CUDA float16 or bfloat16, too")
    if not isinstance(target, TensorProxy) or target.dtype not in CLASSES or target.ndim != a.ndim - 1:
        return Declined("it takes a class for each row")
    if c.weight is not None or c.size_average is not None or c.reduce is not None or c.label_smoothing:
        return Declined("it takes neither weights of classes, smoothing, size_average= nor reduce=")
    if value_of(a.numel) < WORTH_IT:
        return Declined(f"fewer than {WORTH_IT} logits are left to PyTorch's kernels")
    return True if c.reduction in REDUCTIONS else Declined(f"there is no reduction {c.reduction!r}")


def open_losses(executor: FusionExecutor) -> None:
    """Let cross entropies be made in parts, of which an executor takes all but one into regions."""

    def when(bound: BoundSymbol) -> bool | Declined:
        return taken(*bound.args, **bound.kwargs)

    made = Implementation(executor, when=when, transform=cross_entropy, vjp=cross_entropy_rule)
    executor.add_implementation(symbol_of(functional.cross_entropy), made)


__all__ = ["cross_entropy", "cross_entropy_rule", "open_losses", "taken"]
