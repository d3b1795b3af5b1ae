"""Sums of products in Einstein's notation."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import thunder_prims as prims
from thunder_ir import DTypeError, ShapeError, TensorProxy, value_of
from thunder_lang.dims import need_tensor, spread
from thunder_lang.elementwise_binary import mul
from thunder_lang.reduction import sum
from thunder_lang.shape import diagonal, permute, reshape, squeeze, unsqueeze
from thunder_prims.checks import count

__all__ = ["einsum", "einsum_contracts"]

Labels = tuple[str, ...]


def einsum(equation: str, *operands: Any) -> TensorProxy:
    """Sum products of tensors as an equation says.

    Args:
        equation: a letter per dimension of each operand, with commas between operands; an ellipsis for dimensions that
            broadcast; then ``->`` and the letters of the result. Without it, those are the letters that come once, in
            alphabetical order.
        operands: tensors of one dtype, or one sequence of them. Three and more are contracted in the order that
            opt_einsum finds cheapest.

    Raises:
        ShapeError: the equation is malformed, or does not fit the operands.
        DTypeError: the dtypes differ.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_lang import core, einsum
        >>> print(trace_of(lambda x, y: einsum("ij,jk->ik", x, y), Tensor((2, 3)), Tensor((3, 4)), language=core))
        def program(x: "float32[2, 3]", y: "float32[3, 4]"):
            t0 = prims.matmul(x, y)  # float32[2, 4]
            return t0

    Source:
        ``torch.einsum``.
    """
    tensors = [need_tensor("einsum", t, "each operand") for t in spread(operands)]
    if not tensors:
        raise ShapeError("einsum needs at least one operand")
    for t in tensors:
        if t.dtype is not tensors[0].dtype:
            raise DTypeError(f"einsum needs tensors of one dtype, got {', '.join([t.type_string for t in tensors])}")
    inputs, output = _parse(equation, tensors)
    terms = [_distinct(t, labels) for t, labels in zip(tensors, inputs, strict=True)]
    terms = _broadcast(equation, terms)
    while len(terms) > 1:
        first, second = _next_pair(terms, output)
        x, y = terms[first], terms[second]
        terms = [term for i, term in enumerate(terms) if i not in (first, second)]
        needed = set(output).union(*[labels for _, labels in terms])
        terms.append(_contracted(_reduced(*x, needed | set(y[1])), _reduced(*y, needed | set(x[1])), needed))
    a, labels = _reduced(*terms[0], set(output))
    return permute(a, [labels.index(label) for label in output]) if labels != output else a


def einsum_contracts(equation: str, *operands: Any) -> bool:
    """Whether :func:`einsum` takes a product of matrices: a sum over what two of its operands share.

    Args:
        equation, operands: as for :func:`einsum`.

    Returns:
        ``False`` if it only moves, sums or multiplies elements.

    Raises:
        ShapeError: the equation is malformed, or does not fit the operands.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_lang import core, einsum_contracts
        >>> found = []
        >>> def program(x, y):
        ...     found.extend([einsum_contracts("ij,jk->ik", x, y), einsum_contracts("ij,jk->ijk", x, y)])
        >>> _ = trace_of(program, Tensor((2, 3)), Tensor((3, 4)), language=core)
        >>> found
        [True, False]
    """
    tensors = [need_tensor("einsum", t, "each operand") for t in spread(operands)]
    inputs, output = _parse(equation, tensors)
    long = Counter([
        label
        for t, labels in zip(tensors, inputs, strict=True)
        for label in {d for d, length in zip(labels, t.shape, strict=True) if length != 1}
    ])  # fmt: skip
    return any([count > 1 and label not in output for label, count in long.items()])


def _parse(equation: str, tensors: Sequence[TensorProxy]) -> tuple[list[Labels], Labels]:
    """The labels of each operand's dimensions and of the result's; an ellipsis becomes labels ``.0``, ``.1``, ..."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(tensors):
        raise ShapeError(f"einsum: {equation!r} is for {len(parts)} operands, got {len(tensors)}")
    inputs = [_labels(equation, part, t) for part, t in zip(parts, tensors, strict=True)]
    dots = sorted({label for labels in inputs for label in labels if label[0] == "."}, key=lambda d: -int(d[1:]))
    if arrow:
        before, ellipsis, behind = right.partition("...")
        output = (*before, *(dots if ellipsis else ()), *behind)
    else:
        counts = Counter([label for labels in inputs for label in labels])
        output = (*dots, *sorted([d for d, n in counts.items() if n == 1 and d[0] != "."]))
    known = {label for labels in inputs for label in labels}
    if len(set(output)) != len(output) or not known.issuperset(output):
        raise ShapeError(f"einsum: the result of {equation!r} must have labels of the operands, each once")
    return inputs, tuple(output)


def _labels(equation: str, part: str, a: TensorProxy) -> Labels:
    before, ellipsis, behind = part.partition("...")
    letters = before + behind
    if not all([c.isascii() and c.isalpha() for c in letters]):
        raise ShapeError(f"einsum: {equation!r} may hold letters, commas, '...' and '->' only")
    spare = a.ndim - len(letters)
    if spare < 0 or (spare and not ellipsis):
        raise ShapeError(f"einsum: {part!r} in {equation!r} does not fit the {a.ndim} dimensions of {a.type_string}")
    return (*before, *[f".{i}" for i in range(spare - 1, -1, -1)], *behind)


Term = tuple[TensorProxy, Labels]


def _distinct(a: TensorProxy, labels: Labels) -> Term:
    """Take diagonals until each label stands for one dimension."""
    for label, times in Counter(labels).items():
        for _ in range(times - 1):
            first = labels.index(label)
            second = labels.index(label, first + 1)
            if a.shape[first] != a.shape[second]:
                raise ShapeError(f"einsum: {label!r} stands for dimensions of lengths that differ in {a.type_string}")
            a = diagonal(a, 0, first, second)
            labels = (*labels[:first], *labels[first + 1 : second], *labels[second + 1 :], label)
    return a, labels


def _broadcast(equation: str, terms: list[Term]) -> list[Term]:
    """Drop the dimensions of length 1 whose label is longer elsewhere."""
    lengths: dict[str, Any] = {}
    for a, labels in terms:
        for label, length in zip(labels, a.shape, strict=True):
            before = lengths.setdefault(label, length)
            if before is length or length == 1:
                continue
            if before != 1 and before != length:
                raise ShapeError(f"einsum: {label!r} in {equation!r} stands for lengths {before} and {length}")
            lengths[label] = length
    found = []
    for a, labels in terms:
        short = [i for i, label in enumerate(labels) if a.shape[i] == 1 and lengths[label] != 1]
        if short:
            a, labels = squeeze(a, short), tuple([label for i, label in enumerate(labels) if i not in short])
        found.append((a, labels))
    return found


def _next_pair(terms: list[Term], output: Labels) -> tuple[int, int]:
    """Which two to contract next: the best ones for the sizes at hand, as any two are right."""
    if len(terms) == 2:
        return 0, 1
    # Loading opt_einsum takes longer than loading all of this package, and few programs need it.
    opt_einsum = importlib.import_module("opt_einsum")
    numbers: dict[str, str] = {}
    parts = []
    for _, labels in terms:
        parts.append("".join([numbers.setdefault(x, opt_einsum.get_symbol(len(numbers))) for x in labels]))
    equation = f"{','.join(parts)}->{''.join([numbers[label] for label in output])}"
    shapes = [tuple(map(value_of, a.shape)) for a, _ in terms]
    path, _ = opt_einsum.contract_path(equation, *shapes, shapes=True)
    pair = path[0]
    return (pair[0], pair[1]) if len(pair) > 1 else (0, 1)


def _reduced(a: TensorProxy, labels: Labels, needed: set[str]) -> Term:
    """Sum over the labels that nothing needs."""
    spare = [i for i, label in enumerate(labels) if label not in needed]
    if not spare:
        return a, labels
    total = prims.sum(a, tuple(spare)) if not a.dtype.is_bool else sum(a, spare, dtype=a.dtype)
    return total, tuple([label for label in labels if label in needed])


def _contracted(x: Term, y: Term, needed: set[str]) -> Term:
    """The product of two terms, summed over the labels that they share and nothing needs."""
    (a, of_a), (b, of_b) = x, y
    batch = [label for label in of_a if label in of_b and label in needed]
    summed = [label for label in of_a if label in of_b and label not in needed]
    rows = [label for label in of_a if label not in of_b]
    columns = [label for label in of_b if label not in of_a]
    labels = (*batch, *rows, *columns)
    if not summed:
        return mul(_spread(a, of_a, labels), _spread(b, of_b, labels)), labels
    lengths = {**dict(zip(of_a, a.shape, strict=True)), **dict(zip(of_b, b.shape, strict=True))}
    left = permute(a, [of_a.index(label) for label in (*batch, *rows, *summed)])
    right = permute(b, [of_b.index(label) for label in (*batch, *summed, *columns)])
    sizes = [count([lengths[label] for label in group]) for group in (batch, rows, summed, columns)]
    front = sizes[:1] if batch else []
    left = reshape(left, (*front, sizes[1], sizes[2]))
    right = reshape(right, (*front, sizes[2], sizes[3]))
    return reshape(prims.matmul(left, right), [lengths[label] for label in labels]), labels


def _spread(a: TensorProxy, labels: Labels, wanted: Labels) -> TensorProxy:
    """The term with its labels in the order wanted, and dimensions of length 1 for those it lacks."""
    a = permute(a, [labels.index(label) for label in wanted if label in labels])
    missing = [i for i, label in enumerate(wanted) if label not in labels]
    return unsqueeze(a, missing) if missing else a
