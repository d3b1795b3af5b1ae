"""For every prim that this executor runs: calls, and what eager PyTorch says they return."""
# ruff: noqa: E501  (a table: one sample is one line, however long)

from __future__ import annotations

import torch

from thunder_ir import device, dtypes

CPU = device("cpu")
torch.manual_seed(0)
x, y = torch.randn(3, 4), torch.randn(3, 4)
p, q = torch.rand(3, 4) * 0.8 + 0.1, torch.rand(3, 4) * 0.8 + 0.1
z, w = torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4, dtype=torch.complex64)
i, j = torch.randint(1, 9, (3, 4)), torch.randint(1, 9, (3, 4))
s, u = torch.randint(-9, 9, (3, 4), dtype=torch.int8), torch.tensor([3, 0, 1], dtype=torch.uint8)
t, f = torch.tensor([[True, False]] * 2), torch.tensor([[True, True], [False, False]])
k = torch.tensor([2, 0, 2])
c = torch.randn(2, 3, 4, 5)
m = torch.randn(4, 4) + 4 * torch.eye(4)
spd = m @ m.mT
image, volume, signal = torch.randn(2, 4, 6, 6), torch.randn(2, 2, 4, 4, 4), torch.randn(2, 3, 8)
bf = torch.randn(3, 4, dtype=torch.bfloat16)
special = torch.special

SAMPLES = [
    *[
        (name, (a,), expected)
        for name, expected, many in (
            ("abs", torch.abs, (x, z, i)), ("acos", torch.acos, (p, z)), ("acosh", torch.acosh, (p + 1,)),
            ("asin", torch.asin, (p,)), ("asinh", torch.asinh, (x,)), ("atan", torch.atan, (x, bf)),
            ("atanh", torch.atanh, (p,)), ("bitwise_not", torch.bitwise_not, (i, t)), ("ceil", torch.ceil, (x,)),
            ("conj", torch.conj_physical, (z,)), ("cos", torch.cos, (x, z)), ("cosh", torch.cosh, (x,)),
            ("exp", torch.exp, (x, z, bf)), ("exp2", torch.exp2, (x,)), ("expm1", torch.expm1, (x,)),
            ("floor", torch.floor, (x,)), ("frexp", torch.frexp, (x,)), ("imag", torch.imag, (z,)),
            ("log", torch.log, (p, z)), ("log10", torch.log10, (p,)), ("log1p", torch.log1p, (p,)),
            ("log2", torch.log2, (p,)), ("neg", torch.neg, (x, i)), ("real", torch.real, (z,)),
            ("reciprocal", torch.reciprocal, (x,)), ("round", torch.round, (x * 3,)), ("rsqrt", torch.rsqrt, (p,)),
            ("sigmoid", torch.sigmoid, (x,)), ("sign", torch.sgn, (x, z, i)), ("sin", torch.sin, (x,)),
            ("sinc", torch.sinc, (x,)), ("sinh", torch.sinh, (x,)), ("sqrt", torch.sqrt, (p,)),
            ("tan", torch.tan, (x,)), ("tanh", torch.tanh, (x, z)), ("trunc", torch.trunc, (x * 3,)),
            ("erf", torch.erf, (x,)), ("erfc", torch.erfc, (x,)), ("erfcx", special.erfcx, (x,)),
            ("erfinv", torch.erfinv, (p,)), ("erfcinv", lambda a: torch.erfinv(1 - a), (p,)),
            ("ndtri", special.ndtri, (p,)), ("log_ndtr", special.log_ndtr, (x,)), ("lgamma", torch.lgamma, (p,)),
            ("digamma", torch.digamma, (p,)), ("i0", torch.i0, (x,)), ("i0e", special.i0e, (x,)),
            ("i1", special.i1, (x,)), ("i1e", special.i1e, (x,)), ("bessel_j0", special.bessel_j0, (x,)),
            ("bessel_j1", special.bessel_j1, (x,)), ("bessel_y0", special.bessel_y0, (p,)),
            ("bessel_y1", special.bessel_y1, (p,)), ("modified_bessel_k0", special.modified_bessel_k0, (p,)),
            ("modified_bessel_k1", special.modified_bessel_k1, (p,)),
            ("scaled_modified_bessel_k0", special.scaled_modified_bessel_k0, (p,)),
            ("scaled_modified_bessel_k1", special.scaled_modified_bessel_k1, (p,)),
            ("spherical_bessel_j0", special.spherical_bessel_j0, (x,)), ("isfinite", torch.isfinite, (x / 0,)),
            ("isinf", torch.isinf, (x / 0,)), ("isnan", torch.isnan, (x / 0,)), ("signbit", torch.signbit, (x, s)),
            ("clone", torch.clone, (x,)), ("shallow_copy", torch.clone, (x,)), ("cholesky", torch.linalg.cholesky, (spd,)),
            ("det", torch.linalg.det, (m,)), ("inverse", torch.linalg.inv, (m,)), ("slogdet", torch.linalg.slogdet, (m,)),
            ("qr", torch.linalg.qr, (m,)), ("eigh", torch.linalg.eigh, (spd,)),
            ("svd", lambda a: torch.linalg.svd(a, full_matrices=False), (x,)), ("item", torch.Tensor.item, (x[0, 0], i[0, 0])),
        )
        for a in many
    ],
    *[
        (name, pair, expected)
        for name, expected, pairs in (
            ("add", lambda a, b: a + b, ((x, y), (x, 2.0), (2, x), (t, f), (z, 1j))),
            ("sub", lambda a, b: a - b, ((x, y), (x, 2.0), (2.0, x), (3, i))),
            ("mul", lambda a, b: a * b, ((x, y), (x, 2.0), (2, i), (t, f))),
            ("div", lambda a, b: a / b, ((x, y), (x, 2.0), (2.0, x), (z, w))),
            ("floor_divide", lambda a, b: a // b, ((x, y), (i, 2), (7, i), (i, j))),
            ("trunc_divide", lambda a, b: torch.div(torch.as_tensor(a), b, rounding_mode="trunc"), ((x, y), (-7, i))),
            ("remainder", torch.remainder, ((x, y), (s, 4), (-7, i))),
            ("fmod", lambda a, b: torch.fmod(torch.as_tensor(a), b), ((x, y), (s, 4), (-7, i))),
            ("pow", lambda a, b: a**b, ((p, y), (x, 2), (2.0, x), (i, 2))),
            ("maximum", lambda a, b: torch.maximum(*map(torch.as_tensor, (a, b))), ((x, y), (x, 0.5), (1, i), (0.5, x))),
            ("minimum", lambda a, b: torch.minimum(*map(torch.as_tensor, (a, b))), ((x, y), (x, 0.5), (1, i), (0.5, x))),
            ("atan2", lambda a, b: torch.atan2(*map(torch.as_tensor, (a, b))), ((x, y), (x, 2.0), (2.0, x))),
            ("copysign", lambda a, b: torch.copysign(*map(torch.as_tensor, (a, b))), ((x, y), (x, -2.0), (2.0, x))),
            ("nextafter", lambda a, b: torch.nextafter(*map(torch.as_tensor, (a, b))), ((x, y), (x, -2.0))),
            ("hypot", torch.hypot, ((x, y),)), ("logaddexp", torch.logaddexp, ((x, y),)),
            ("logaddexp2", torch.logaddexp2, ((x, y),)), ("gcd", torch.gcd, ((i, j),)), ("lcm", torch.lcm, ((i, j),)),
            ("bitwise_and", torch.bitwise_and, ((i, j), (i, 3), (t, f))), ("bitwise_or", lambda a, b: a | b, ((i, j), (3, i))),
            ("bitwise_xor", torch.bitwise_xor, ((i, j), (t, f))), ("bitwise_left_shift", lambda a, b: a << b, ((i, j), (i, 2))),
            ("bitwise_right_shift", lambda a, b: a >> b, ((i, j), (i, 2))), ("complex", torch.complex, ((x, y),)),
            ("zeta", special.zeta, ((x + 5, p), (2.0, p))), ("igamma", torch.igamma, ((p, q),)),
            ("igammac", torch.igammac, ((p, q),)), ("xlogy", torch.xlogy, ((x, p), (x, 2.0), (0.0, p))),
            ("xlog1py", special.xlog1py, ((x, p), (2.0, p))), ("eq", torch.eq, ((i, j), (i, 3))), ("ne", torch.ne, ((i, j),)),
            ("lt", lambda a, b: a < b, ((x, y), (x, 0.0), (0.0, x))), ("le", lambda a, b: a <= b, ((i, j), (3, i))),
            ("gt", lambda a, b: a > b, ((x, y), (0.0, x))), ("ge", lambda a, b: a >= b, ((i, j), (3, i))),
        )
        for pair in pairs
    ],
    ("polygamma", (p, 2), lambda a, n: torch.polygamma(n, a)),
    ("where", (x > 0, x, y), torch.where), ("where", (x > 0, 1.0, y), torch.where), ("where", (x > 0, x, 0.0), torch.where),
    ("clamp", (x, -0.5, 0.5), torch.clamp), ("clamp", (x, None, y), torch.clamp),
    ("clamp", (x, -0.5, y), lambda a, low, high: torch.minimum(torch.clamp(a, low), high)),
    ("lerp", (x, y, 0.3), torch.lerp), ("lerp", (x, y, p), torch.lerp),
    ("lerp", (0.0, y, p), lambda a, b, weight: torch.lerp(torch.zeros_like(b), b, weight)),
    # shape
    ("transpose", (c, (3, 1, 0, 2)), torch.permute), ("reshape", (c, (6, 20)), torch.reshape),
    ("view", (c, (6, 20)), torch.reshape), ("squeeze", (x[None, :, None], (0, 2)), lambda a, dims: a[0, :, 0]),
    ("broadcast_in_dim", (x, (2, 3, 4), (1, 2)), lambda a, shape, dims: a.expand(shape)),
    ("broadcast_in_dim", (x, (3, 5, 4), (0, 2)), lambda a, shape, dims: a[:, None].expand(shape)),
    ("broadcast_in_dim", (x, (3, 4, 1), (0, 1)), lambda a, shape, dims: a[..., None]),
    ("broadcast_in_dim", (x[0, 0], (2, 2), ()), lambda a, shape, dims: a.expand(shape)),
    ("slice", (c, (0, 1, 0, 2), (2, 3, 4, 5), (1, 1, 2, 1)), lambda a, *bounds: a[:, 1:, ::2, 2:]),
    ("slice", (x, (1, 1), (2, 1)), lambda a, starts, ends: a[1:2, 1:1]),
    ("pad", (x, 1.5, ((1, 0, 0), (2, -1, 0))), lambda a, v, config: torch.nn.functional.pad(a, (2, -1, 1, 0), value=v)),
    ("pad", (x[:, 0], 0.0, ((1, 1, 2),)), lambda a, v, config: torch.tensor([0, a[0], 0, 0, a[1], 0, 0, a[2], 0])),
    ("cat", ((x, y, x), 1), torch.cat), ("flip", (c, (0, 2)), torch.flip),
    ("unfold", (x, 1, 2, 1), torch.Tensor.unfold), ("shape_of", (x,), lambda a: tuple(a.shape)),
    # dtype, device, order in memory
    ("convert_element_type", (x, dtypes.float64), lambda a, d: a.double()),
    ("convert_element_type", (x, dtypes.int32), lambda a, d: a.int()),
    ("convert_element_type", (z, dtypes.float32), lambda a, d: a.real), ("convert_element_type", (z, dtypes.bool8), lambda a, d: a.bool()),
    ("device_put", (x, device("meta")), lambda a, d: a.to("meta")),
    ("bitcast", (x, dtypes.int32), lambda a, d: a.view(torch.int32)), ("bitcast", (x, dtypes.int16), lambda a, d: a.view(torch.int16)),
    ("stride_order", (x.mT, (1, 0)), lambda a, order: a.contiguous()),
    ("stride_order", (image, (3, 0, 2, 1)), lambda a, order: a.contiguous(memory_format=torch.channels_last)),
    ("stride_order", (signal, (0, 2, 1)), lambda a, order: a.permute(1, 2, 0).contiguous().permute(2, 0, 1)),
    # creation
    ("full", ((2, 3), 1.5, dtypes.float32, CPU), lambda *a: torch.full((2, 3), 1.5)),
    ("full", ((), True, dtypes.bool8, CPU), lambda *a: torch.tensor(True)),
    ("iota", (5, 2, 3, dtypes.int32, CPU), lambda *a: torch.arange(2, 17, 3, dtype=torch.int32)),
    ("iota", (4, 0.5, -0.1, dtypes.float32, CPU), lambda *a: torch.tensor([0.5, 0.4, 0.3, 0.2])),
    ("iota", (3, 7, 0, dtypes.int64, CPU), lambda *a: torch.tensor([7, 7, 7])), ("iota", (0, 0, 1, dtypes.int64, CPU), lambda *a: torch.arange(0)),
    ("tensor_from_sequence", ([[1, 2], [3, 4]], dtypes.int64, CPU), lambda *a: torch.tensor([[1, 2], [3, 4]])),
    # reductions
    *[(n, (c, d), e) for n, e in (("sum", torch.sum), ("amax", torch.amax), ("amin", torch.amin)) for d in ((0,), (1, 3))],
    ("sum", (s, (1,)), lambda a, d: torch.sum(a, d, dtype=torch.int8)), ("sum", (x, ()), lambda a, d: a.clone()),
    ("prod", (c, (0, 2)), lambda a, d: a.prod(2).prod(0)), ("prod", (s, (1,)), lambda a, d: a.prod(1, dtype=torch.int8)),
    ("amax", (x, ()), lambda a, d: a.clone()), ("argmax", (x, 1), torch.argmax), ("argmax", (x, None), torch.argmax),
    ("argmin", (x, 0), torch.argmin), ("argmax", (f, 0), lambda a, d: a.int().argmax(d)), ("argmin", (f, 0), lambda a, d: a.int().argmin(d)),
    *[(n, (a, (0,), r), lambda a, d, r, e=e: e(a, d, correction=r)) for n, e in (("var", torch.var), ("std", torch.std)) for a in (x, z) for r in (0, 1)],
    ("var", (x, (), 0.0), lambda *a: torch.zeros(3, 4)), ("std", (x, (), 0.0), lambda *a: torch.zeros(3, 4)),
    ("var_mean", (c, (1, 2), 1), lambda a, d, r: torch.var_mean(a, d, correction=r)),
    ("var_mean", (x, (), 0.0), lambda a, d, r: (torch.zeros(3, 4), a)),
    # scans and orders
    ("cumsum", (c, 1), torch.cumsum), ("cumsum", (s, 1), lambda a, d: torch.cumsum(a, d, dtype=torch.int8)),
    ("cumprod", (c, 1), torch.cumprod), ("logcumsumexp", (c, 1), torch.logcumsumexp), ("cummax", (c, 1), torch.cummax), ("cummin", (c, 1), torch.cummin),
    ("argsort", (x, 1, True, True), lambda a, d, down, stable: torch.argsort(a, dim=d, descending=down, stable=stable)),
    ("sort", (x, 0, False, True), lambda a, d, down, stable: torch.sort(a, dim=d, descending=down, stable=stable)),
    ("topk", (x, 2, 1, False, True), torch.topk),
    ("searchsorted", (torch.arange(9.0), x, True), lambda a, v, right: torch.searchsorted(a, v, right=right)),
    # indices
    ("take", (x, k, 0), lambda a, k, d: a[k]), ("take", (c, k, 1), lambda a, k, d: a[:, k]),
    ("take", (c, torch.tensor([[1, 0], [2, 2]]), 2), lambda a, k, d: a[:, :, k]), ("take", (c, u, 3), lambda a, k, d: a[..., k.long()]),
    ("take", (x, torch.tensor(1), 1), lambda a, k, d: a[:, 1]),
    ("index_add", (torch.zeros(4, 4), k, x, 0), lambda a, k, v, d: a.index_add(d, k, v)),
    ("index_copy", (torch.zeros(4, 4), u, x, 0), lambda a, k, v, d: a.index_copy(d, k.long(), v)),
    ("index", (c, (None, k, torch.tensor([0, 1, 3]))), lambda a, ks: a[:, ks[1], ks[2]]),
    ("index", (c, (k % 2, None, None, k)), lambda a, ks: a[ks[0], :, :, ks[3]]),
    ("index_put", (torch.zeros(4, 4), (k,), x, True), torch.index_put),
    ("index_put", (torch.zeros(4, 3), (None, k[:2]), x[[0, 1, 2, 0]][:, :2], False), lambda a, ks, v, acc: a.index_copy(1, ks[1], v)),
    ("slice_scatter", (x, y[1:], (1, 0), (3, 4), (1, 1)), lambda a, v, *b: torch.cat((a[:1], v))),
    ("slice_scatter", (x, y[1:, ::2], (1, 0), (3, 4), (1, 2)), lambda a, v, *b: torch.slice_scatter(a, torch.slice_scatter(a[1:], v, 1, 0, 4, 2), 0, 1, 3)),
    ("gather", (x, i % 4, 1), lambda a, k, d: torch.gather(a, d, k)), ("take_along_axis", (x, i % 3, 0), lambda a, k, d: torch.gather(a, d, k)),
    ("gather", (x, (i % 4).to(torch.uint8), 1), lambda a, k, d: torch.gather(a, d, k.long())),
    ("scatter", (x, i % 4, 2.0, 1), lambda a, k, v, d: torch.scatter(a, d, k, v)), ("scatter", (x, k[None, :, None].expand(1, 3, 2)[0], y, 1), lambda a, k, v, d: torch.scatter(a, d, k, v)),
    ("scatter_add", (x, i % 4, y, 1), lambda a, k, v, d: torch.scatter_add(a, d, k, v)),
    # linear algebra and transforms
    ("matmul", (c, c.mT.contiguous()), torch.matmul), ("matmul", (i, j.mT.contiguous()), torch.matmul),
    ("linear", (c, torch.randn(7, 5), torch.randn(7)), torch.nn.functional.linear), ("linear", (x, y, None), torch.nn.functional.linear),
    ("solve", (m, torch.randn(4, 2)), torch.linalg.solve),
    ("triangular_solve", (m, torch.randn(4, 2), True, True, False), lambda a, b, up, left, unit: torch.linalg.solve_triangular(a, b, upper=up, left=left, unitriangular=unit)),
    *[("fft_c2c", (z, (0, 1), n, True), lambda a, d, n, fw, norm=norm: torch.fft.fftn(a, dim=d, norm=norm)) for n, norm in (("none", "backward"), ("root", "ortho"), ("full", "forward"))],
    *[("fft_c2c", (z, (1,), n, False), lambda a, d, n, fw, norm=norm: torch.fft.ifftn(a, dim=d, norm=norm)) for n, norm in (("none", "forward"), ("root", "ortho"), ("full", "backward"))],
    ("fft_r2c", (x, (0, 1), "none"), lambda a, d, n: torch.fft.rfftn(a, dim=d)),
    ("fft_c2r", (z, (0, 1), "full", 7), lambda a, d, n, length: torch.fft.irfftn(a, s=(3, length), dim=d)),
    # networks
    ("embedding", (k, x), lambda k, a: a[k]), ("embedding", (u, m), lambda k, a: a[k.long()]),
    ("embedding_backward", (x, k, 5, -1, False), lambda a, k, *r: torch.zeros(5, 4).index_add(0, k, a)),
    ("one_hot", (k, 4), torch.nn.functional.one_hot), ("one_hot", (u, 4), lambda k, n: torch.nn.functional.one_hot(k.long(), n)),
    *[("extend", (image, ((0, 0), (0, 0), (2, 1), (1, 2)), mode), lambda a, pad, mode: torch.nn.functional.pad(a, (1, 2, 2, 1), mode=mode)) for mode in ("reflect", "replicate", "circular")],
    ("extend_backward", (x, ((0, 0), (1, 1)), "replicate"), lambda a, pad, mode: torch.stack((a[:, 0] + a[:, 1], a[:, 2] + a[:, 3]), 1)),
    ("grouped_mm", (torch.ones(5, 3), torch.ones(2, 3, 4), torch.tensor([2, 5], dtype=torch.int32)), lambda a, b, e: torch.full((5, 4), 3.0)),
    ("grouped_mm", (torch.ones(3, 5), torch.ones(5, 4), torch.tensor([2, 5], dtype=torch.int32)), lambda a, b, e: torch.stack((torch.full((3, 4), 2.0), torch.full((3, 4), 3.0)))),
    ("convolution", (image, torch.ones(6, 2, 3, 3), torch.ones(6), (2, 1), (1, 0), (1, 2), False, (0, 0), 2), torch.convolution),
    ("convolution", (signal, torch.ones(3, 2, 3), None, (2,), (1,), (1,), True, (1,), 1), torch.convolution),
    *[("max_pool", (a, (2,) * n, (2,) * n, (0,) * n, (1,) * n, False), lambda a, *r, e=e: e(a, 2, return_indices=True)) for a, n, e in ((signal, 1, torch.nn.functional.max_pool1d), (image, 2, torch.nn.functional.max_pool2d), (volume, 3, torch.nn.functional.max_pool3d))],
    *[("avg_pool", (a, (2,) * n, (1,) * n, (1,) * n, False, False, None), lambda a, *r, e=e: e(a, 2, 1, 1, False, False)) for a, n, e in ((signal, 1, torch.nn.functional.avg_pool1d), (image, 2, torch.nn.functional.avg_pool2d), (volume, 3, torch.nn.functional.avg_pool3d))],
    *[("adaptive_avg_pool", (a, (3,) * n), lambda a, lengths, e=e: e(a, 3)) for a, n, e in ((signal, 1, torch.nn.functional.adaptive_avg_pool1d), (image, 2, torch.nn.functional.adaptive_avg_pool2d), (volume, 3, torch.nn.functional.adaptive_avg_pool3d))],
]  # fmt: skip

BACKWARD_SAMPLES = [
    ("max_pool", lambda a, n: (a, (2,) * n, (2,) * n, (0,) * n, (1,) * n, False)),
    ("avg_pool", lambda a, n: (a, (3,) * n, (2,) * n, (1,) * n, True, True, None)),
    ("adaptive_avg_pool", lambda a, n: (a, (3,) * n)),
]
"""Prims whose backward is a prim too, with their arguments for an input of ``n`` trailing dimensions."""

RANDOM_SAMPLES = [
    ("uniform", ((2, 3), 0.0, 1.0, dtypes.float32, CPU), lambda *a: torch.rand(2, 3)),
    ("uniform", ((2, 3), -1.0, 1.0, dtypes.float64, CPU), lambda *a: torch.empty(2, 3, dtype=torch.float64).uniform_(-1, 1)),
    ("randn", ((2, 3), dtypes.float32, CPU), lambda *a: torch.randn(2, 3)),
    ("randint", ((5,), 2, 9, dtypes.int64, CPU), lambda *a: torch.randint(2, 9, (5,))),
    ("randperm", (6, dtypes.int64, CPU), lambda *a: torch.randperm(6)),
    ("multinomial", (p, 2, True), torch.multinomial),
    ("poisson", (p * 9,), torch.poisson),
]  # fmt: skip
