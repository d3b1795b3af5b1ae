"""How prims run with NumPy of which ``thunder_testing`` has no reference: chance, factors, networks, Fourier."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy import linalg as scipy_linalg

import thunder_prims as prims
from thunder_testing import numpy_dtype, reference

reference(prims.spherical_bessel_j0)(lambda a: np.sinc(a / np.pi))
reference(prims.shape_of)(np.shape)
reference(prims.print)(print)
reference(prims.slogdet)(np.linalg.slogdet)

# -- chance, and what computes nothing


@reference(prims.uniform)
def uniform(shape: Any, low: Any, high: Any, dtype: Any, device: Any) -> Any:
    return np.random.default_rng().uniform(low, high, shape).astype(numpy_dtype(dtype))


@reference(prims.uniform_philox)
def uniform_philox(shape: Any, low: Any, high: Any, dtype: Any, device: Any, seed: Any, offset: Any) -> Any:
    generator = np.random.Generator(np.random.Philox(key=np.asarray(seed).item(), counter=np.asarray(offset).item()))
    return generator.uniform(low, high, shape).astype(numpy_dtype(dtype))


@reference(prims.randn)
def randn(shape: Any, dtype: Any, device: Any) -> Any:
    return np.random.default_rng().standard_normal(shape).astype(numpy_dtype(dtype))


@reference(prims.randint)
def randint(shape: Any, low: Any, high: Any, dtype: Any, device: Any) -> Any:
    return np.random.default_rng().integers(low, high, shape).astype(numpy_dtype(dtype))


@reference(prims.randperm)
def randperm(length: int, dtype: Any, device: Any) -> Any:
    return np.random.default_rng().permutation(length).astype(numpy_dtype(dtype))


@reference(prims.poisson)
def poisson(a: Any) -> Any:
    return np.random.default_rng().poisson(a).astype(a.dtype)


@reference(prims.multinomial)
def multinomial(a: Any, samples: int, replacement: bool) -> Any:
    generator = np.random.default_rng()
    rows = [generator.choice(a.shape[-1], samples, replacement, w / w.sum()) for w in a.reshape(-1, a.shape[-1])]
    return np.array(rows).reshape(*a.shape[:-1], samples)


@reference(prims.assert_tensor_metadata)
def assert_tensor_metadata(a: Any, shape: Any, dtype: Any, device: Any) -> None:
    assert (a.shape, a.dtype) == (tuple(shape), numpy_dtype(dtype))


@reference(prims.comment)
def comment(text: str) -> None:
    """Nothing runs."""


# -- linear algebra


@reference(prims.triangular_solve)
def triangular_solve(a: Any, b: Any, upper: bool, left: bool, unitriangular: bool) -> Any:
    def one(a: Any, b: Any) -> Any:
        if left:
            return scipy_linalg.solve_triangular(a, b, lower=not upper, unit_diagonal=unitriangular)
        return scipy_linalg.solve_triangular(a.T, b.T, lower=upper, unit_diagonal=unitriangular).T

    pairs = zip(a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:]), strict=True)
    return np.array([one(x, y) for x, y in pairs]).reshape(b.shape)


def _phase(v: Any, axis: int) -> Any:
    """Turn singular or eigenvectors so that they depend smoothly on the matrix: their greatest entry is positive."""
    greatest = np.take_along_axis(v, np.argmax(np.abs(v), axis=axis, keepdims=True), axis)
    return np.conj(greatest / np.abs(greatest))


@reference(prims.eigh)
def eigh(a: Any) -> Any:
    w, v = np.linalg.eigh(a)
    return w, v * _phase(v, -2)


@reference(prims.svd)
def svd(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    phase = _phase(u, -2)
    return u * phase, s, vh * np.conj(np.swapaxes(phase, -1, -2))


@reference(prims.qr)
def qr(a: Any) -> Any:
    q, r = np.linalg.qr(a)
    diagonal = np.diagonal(r, axis1=-2, axis2=-1)
    phase = diagonal / np.abs(diagonal)
    return q * phase[..., None, :], r * np.conj(phase)[..., :, None]


# -- networks


@reference(prims.embedding)
def embedding(indices: Any, weight: Any, padding_index: int = -1, scale_grad_by_freq: bool = False) -> Any:
    return weight[indices]


@reference(prims.embedding_backward)
def embedding_backward(dy: Any, indices: Any, rows: int, padding_index: int, scale_grad_by_freq: bool) -> Any:
    result = np.zeros((rows, dy.shape[-1]), dy.dtype)
    counts = np.bincount(indices.ravel(), minlength=rows)
    for place in np.ndindex(indices.shape):
        row = indices[place]
        if row != padding_index:
            result[row] += dy[place] / (counts[row] if scale_grad_by_freq else 1)
    return result


@reference(prims.one_hot)
def one_hot(indices: Any, classes: int) -> Any:
    return np.eye(classes, dtype=np.int64)[indices]


MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@reference(prims.extend)
def extend(a: Any, padding: Any, mode: str) -> Any:
    return np.pad(a, padding, mode=MODES[mode])


@reference(prims.extend_backward)
def extend_backward(dy: Any, padding: Any, mode: str) -> Any:
    lengths = [n - low - high for n, (low, high) in zip(dy.shape, padding, strict=True)]
    places = np.pad(np.arange(math.prod(lengths)).reshape(lengths), padding, mode=MODES[mode])
    result = np.zeros(math.prod(lengths), dy.dtype)
    np.add.at(result, places.ravel(), dy.ravel())
    return result.reshape(lengths)


@reference(prims.grouped_mm)
def grouped_mm(a: Any, b: Any, ends: Any) -> Any:
    starts = [0, *ends[:-1]]
    spans = [slice(s, e) for s, e in zip(starts, ends, strict=True)]
    if a.ndim == b.ndim == 2:
        return np.stack([a[:, s] @ b[s] for s in spans])
    result = np.zeros((a.shape[-2], b.shape[-1]), a.dtype)
    for group, span in enumerate(spans):
        if a.ndim == 2:
            result[span] = a[span] @ b[group]
        else:
            result[:, span] = a[group] @ b[:, span]
    return result


def _windows(lengths: Any, window: Any, stride: Any, padding: Any, dilation: Any, result: Any) -> Any:
    """For each place of the result, the places in each dimension that its window covers, with those in the padding."""
    for place in np.ndindex(*result):
        yield (
            place,
            [
                [o * s - p + d * w for w in range(k)]
                for o, s, p, d, k in zip(place, stride, padding, dilation, window, strict=True)
            ],
        )


def _inside(axes: Any, lengths: Any) -> Any:
    return [[i for i in axis if 0 <= i < n] for axis, n in zip(axes, lengths, strict=True)]


def _results(lengths: Any, window: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    results = []
    for n, k, s, p, d in zip(lengths, window, stride, padding, dilation, strict=True):
        starts = range(-p, n + p, s)
        if ceil_mode:  # a window that starts inside, unless the one before has reached the end
            fitting = [i for i in starts if i < n and (i == -p or i - s + d * (k - 1) < n + p - 1)]
        else:
            fitting = [i for i in starts if i + d * (k - 1) < n + p]
        results.append(len(fitting))
    return results


@reference(prims.max_pool)
def max_pool(a: Any, window: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Any:
    lengths = a.shape[-len(window) :]
    result = _results(lengths, window, stride, padding, dilation, ceil_mode)
    rows = a.reshape(-1, *lengths)
    values, places = np.zeros((len(rows), *result), a.dtype), np.zeros((len(rows), *result), np.int64)
    for place, axes in _windows(lengths, window, stride, padding, dilation, result):
        covered = np.array(list(itertools.product(*_inside(axes, lengths))))
        flat = np.ravel_multi_index(covered.T, lengths)
        elements = rows.reshape(len(rows), -1)[:, flat]
        best = np.argmax(elements, axis=1)
        values[(slice(None), *place)] = np.take_along_axis(elements, best[:, None], 1)[:, 0]
        places[(slice(None), *place)] = flat[best]
    shape = (*a.shape[: -len(window)], *result)
    return values.reshape(shape), places.reshape(shape)


@reference(prims.max_pool_backward)
def max_pool_backward(dy: Any, a: Any, indices: Any, window: Any, *_: Any) -> Any:
    lengths = a.shape[-len(window) :]
    rows = math.prod(a.shape[: -len(window)])
    result = np.zeros((rows, math.prod(lengths)), dy.dtype)
    for row, of_row, places in zip(result, dy.reshape(rows, -1), indices.reshape(rows, -1), strict=True):
        np.add.at(row, places, of_row)
    return result.reshape(a.shape)


def _averages(
    lengths: Any, window: Any, stride: Any, padding: Any, ceil_mode: bool, count_padding: bool, divisor: Any
) -> Any:
    """The matrix from flattened inputs to flattened averages."""
    ones = (1,) * len(window)
    result = _results(lengths, window, stride, padding, ones, ceil_mode)
    matrix = np.zeros((*result, *lengths))
    for place, axes in _windows(lengths, window, stride, padding, ones, result):
        inside = _inside(axes, lengths)
        padded = [[i for i in axis if i < n + p] for axis, n, p in zip(axes, lengths, padding, strict=True)]
        count = divisor or math.prod(map(len, padded if count_padding else inside))
        for element in itertools.product(*inside):
            matrix[(*place, *element)] = 1 / count
    return matrix.reshape(math.prod(result), math.prod(lengths)), result


@reference(prims.avg_pool)
def avg_pool(a: Any, *windows: Any) -> Any:
    count = len(windows[0])
    matrix, result = _averages(a.shape[-count:], *windows)
    return (a.reshape(-1, matrix.shape[1]) @ matrix.T).reshape(*a.shape[:-count], *result)


@reference(prims.avg_pool_backward)
def avg_pool_backward(dy: Any, shape: Any, *windows: Any) -> Any:
    matrix, _ = _averages(shape[-len(windows[0]) :], *windows)
    return (dy.reshape(-1, matrix.shape[0]) @ matrix).reshape(shape)


def _adaptive(lengths: Any, results: Any) -> Any:
    matrix = np.ones((1, 1))
    for n, m in zip(lengths, results, strict=True):
        one = np.zeros((m, n))
        for i in range(m):
            covered = slice(i * n // m, -(-(i + 1) * n // m))
            one[i, covered] = 1 / (covered.stop - covered.start)
        matrix = np.kron(matrix, one)
    return matrix


@reference(prims.adaptive_avg_pool)
def adaptive_avg_pool(a: Any, lengths: Any) -> Any:
    matrix = _adaptive(a.shape[-len(lengths) :], lengths)
    return (a.reshape(-1, matrix.shape[1]) @ matrix.T).reshape(*a.shape[: -len(lengths)], *lengths)


@reference(prims.adaptive_avg_pool_backward)
def adaptive_avg_pool_backward(dy: Any, lengths: Any) -> Any:
    matrix = _adaptive(lengths, dy.shape[-len(lengths) :])
    return (dy.reshape(-1, matrix.shape[0]) @ matrix).reshape(*dy.shape[: -len(lengths)], *lengths)


def _terms(a: Any, w: Any, y: Any, stride: Any, padding: Any, dilation: Any, transposed: bool) -> Any:
    """Places in input, weight and result of a convolution, of these lengths, that meet in a product."""
    wide, narrow = (y, a) if transposed else (a, y)
    for k in np.ndindex(*w):
        for n in np.ndindex(*narrow):
            m = tuple([i * s - p + d * j for i, s, p, d, j in zip(n, stride, padding, dilation, k, strict=True)])
            if all([0 <= i < length for i, length in zip(m, wide, strict=True)]):
                yield (n, k, m) if transposed else (m, k, n)


def _y_lengths(a: Any, weight: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any) -> Any:
    lengths = []
    for n, k, s, p, d, e in zip(a.shape[2:], weight.shape[2:], stride, padding, dilation, extra, strict=True):
        reach = d * (k - 1) + 1
        lengths.append((n - 1) * s - 2 * p + reach + e if transposed else (n + 2 * p - reach) // s + 1)
    return lengths


def _grouped_weight(weight: Any, transposed: bool, groups: int) -> Any:
    """The weight as (group, out, in, ...)."""
    parted = weight.reshape(groups, weight.shape[0] // groups, *weight.shape[1:])
    return np.swapaxes(parted, 1, 2) if transposed else parted


@reference(prims.convolution)
def convolution(
    a: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, extra: Any, groups: int
) -> Any:
    lengths = _y_lengths(a, weight, stride, padding, dilation, transposed, extra)
    parts = a.reshape(a.shape[0], groups, a.shape[1] // groups, *a.shape[2:])
    w = _grouped_weight(weight, transposed, groups)
    y = np.zeros((a.shape[0], groups, w.shape[1], *lengths), a.dtype)
    every = (slice(None),) * 3
    for i, k, o in _terms(a.shape[2:], weight.shape[2:], lengths, stride, padding, dilation, transposed):
        y[(*every, *o)] += np.einsum("ngi,goi->ngo", parts[(*every, *i)], w[(*every, *k)])
    y = y.reshape(a.shape[0], -1, *lengths)
    return y if bias is None else y + bias.reshape(-1, *(1,) * len(lengths))


@reference(prims.convolution_backward)
def convolution_backward(dy: Any, a: Any, weight: Any, *parameters: Any) -> Any:
    stride, padding, dilation, transposed, _, groups, mask = parameters
    n = a.shape[0]
    parts = a.reshape(n, groups, a.shape[1] // groups, *a.shape[2:])
    dparts = dy.reshape(n, groups, dy.shape[1] // groups, *dy.shape[2:])
    w = _grouped_weight(weight, transposed, groups)
    da, dw = np.zeros_like(parts), np.zeros(w.shape, w.dtype)
    every = (slice(None),) * 3
    for i, k, o in _terms(a.shape[2:], weight.shape[2:], dy.shape[2:], stride, padding, dilation, transposed):
        da[(*every, *i)] += np.einsum("ngo,goi->ngi", dparts[(*every, *o)], w[(*every, *k)])
        dw[(*every, *k)] += np.einsum("ngo,ngi->goi", dparts[(*every, *o)], parts[(*every, *i)])
    dw = (np.swapaxes(dw, 1, 2) if transposed else dw).reshape(weight.shape)
    results = da.reshape(a.shape), dw, dy.sum(axis=(0, *range(2, dy.ndim)))
    return tuple([r if wanted else None for r, wanted in zip(results, mask, strict=True)])


# -- Fourier transforms

NORMS = {True: {"none": "backward", "root": "ortho", "full": "forward"}}
NORMS[False] = {"none": "forward", "root": "ortho", "full": "backward"}


@reference(prims.fft_c2c)
def fft_c2c(a: Any, dims: Any, normalization: str, forward: bool) -> Any:
    transform = np.fft.fftn if forward else np.fft.ifftn
    return transform(a, axes=dims, norm=NORMS[forward][normalization])


@reference(prims.fft_r2c)
def fft_r2c(a: Any, dims: Any, normalization: str) -> Any:
    return np.fft.rfftn(a, axes=dims, norm=NORMS[True][normalization])


@reference(prims.fft_c2r)
def fft_c2r(a: Any, dims: Any, normalization: str, last_length: int) -> Any:
    lengths = [a.shape[d] for d in dims[:-1]] + [last_length]
    return np.fft.irfftn(a, s=lengths, axes=dims, norm=NORMS[False][normalization])
