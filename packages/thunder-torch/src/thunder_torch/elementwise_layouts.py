"""How PyTorch lays out what its elementwise kernels return: in the order in which their operands lie in memory."""

from __future__ import annotations

from collections.abc import Sequence

from thunder_torch.convert import contiguous_strides

Sizes = tuple[int, ...]


def elementwise_strides(shape: Sizes, operands: Sequence[tuple[Sizes, Sizes]]) -> Sizes:
    """Return the strides of the result of an elementwise kernel.

    Operands of one layout without gaps keep it. Else dimensions are put into the order of the first operand whose
    strides tell two of them apart; dimensions along which all are repeated stay in order.

    Args:
        shape: of the result.
        operands: shape and strides of each tensor that the kernel reads, in order; they broadcast to ``shape``.

    Example:
        >>> from thunder_torch.elementwise_layouts import elementwise_strides
        >>> elementwise_strides((2, 3), [((2, 3), (1, 2))])
        (1, 2)
        >>> elementwise_strides((2, 3), [((2, 3), (3, 1)), ((2, 3), (1, 2))])
        (3, 1)

    Source:
        ``TensorIteratorBase::compute_fast_setup_type`` and ``reorder_dimensions`` of PyTorch.
    """
    if all([given == shape for given, _ in operands]):
        kept = _kept(shape, [strides for _, strides in operands])
        if kept is not None:
            return kept
    expanded = [_expanded(shape, *operand) for operand in operands]
    order = _order(shape, expanded)
    strides, step = [0] * len(shape), 1
    for dimension in order:
        strides[dimension] = step
        step *= max(shape[dimension], 1)
    return tuple(strides)


def _kept(shape: Sizes, strides: list[Sizes]) -> Sizes | None:
    """Return the layout that all operands have, of the result's shape, where they have one without gaps."""
    for wanted in (contiguous_strides(shape), channels_last_strides(shape)):
        if wanted is not None and all([_same(shape, wanted, have) for have in strides]):
            return wanted
    return strides[0] if all([have == strides[0] for have in strides]) and _dense(shape, strides[0]) else None


def channels_last_strides(shape: Sizes) -> Sizes | None:
    """Return the strides of images whose channels lie together; ``None`` for other shapes, volumes among them."""
    if len(shape) != 4:
        return None
    images, channels, height, width = shape
    image, row, pixel, channel = contiguous_strides((images, height, width, channels))
    return (image, channel, row, pixel)


def _same(shape: Sizes, one: Sizes, other: Sizes) -> bool:
    """Whether strides are the same; those of dimensions of size 1 do not matter, nor any of empty tensors."""
    return 0 in shape or all([n == 1 or a == b for n, a, b in zip(shape, one, other, strict=True)])


def _dense(shape: Sizes, strides: Sizes) -> bool:
    """Whether elements lie without gaps and apart, in any order of dimensions."""
    step = 1
    for stride, size in sorted([(stride, size) for stride, size in zip(strides, shape, strict=True) if size != 1]):
        if stride != step:
            return False
        step *= size
    return True


def _expanded(shape: Sizes, given: Sizes, strides: Sizes) -> Sizes:
    """Return the strides of an operand that is expanded to a shape."""
    ahead = len(shape) - len(given)
    sides = zip(given, shape[ahead:], strides, strict=True)
    return (0,) * ahead + tuple([0 if size == 1 and wanted != 1 else stride for size, wanted, stride in sides])


def _order(shape: Sizes, operands: list[Sizes]) -> list[int]:
    """Return the dimensions, the one along which elements lie closest first."""
    order = list(reversed(range(len(shape))))
    for i in range(1, len(order)):
        place = i
        for before in range(i - 1, -1, -1):
            farther = _farther(shape, operands, order[before], order[place])
            if farther is None:
                continue
            if not farther:
                break
            order[before], order[place] = order[place], order[before]
            place = before
    return order


def _farther(shape: Sizes, operands: list[Sizes], one: int, other: int) -> bool | None:
    """Whether elements lie farther apart along one dimension than along another; ``None`` if nothing tells."""
    for strides in operands:
        a, b = strides[one], strides[other]
        if a and b and (a != b or shape[one] > shape[other]):
            return a >= b
    return None
