"""Every row computes what the function of PyTorch does, to the bit."""

import pytest
import torch
from regions import Recorder, function_at, same

from thunder_native.registry import ROWS, written
from thunder_native.rows import ACTIVATIONS, IN_C, UNARY
from thunder_native.runtime import missing, runtime
from thunder_native.table import CannotExpress

pytestmark = pytest.mark.skipif(missing() is not None, reason=f"native code cannot run: {missing()}")

A = torch.randn(4, 6)
B = torch.randn(4, 6)
D = torch.randn(4, 6, dtype=torch.float64)
V = torch.randn(6)
I = torch.randint(-5, 5, (4, 6))  # noqa: E741
Q = torch.randn(2, 3, 5, 8)
EMPTY = torch.randn(0, 6)
MASK = A > 0
MEAN, RSTD = torch.native_layer_norm(A, (6,), V, V, 1e-5)[1:]

STEPS = torch.tensor([1, float("nan"), 0.5, -1, 0, 2])
INDICES = torch.tensor([[0, 3], [2, 2]])
H, C = torch.randn(4, 3), torch.randn(4, 3)
W, U = torch.randn(12, 6), torch.randn(12, 3)

CONVERSIONS = ("float", "double", "half", "bfloat16", "long", "int", "bool")

CASES = [
    ("torch.add", (A, B)), ("torch.add", (A, V)), ("torch.add", (A, 2)), ("torch.add", (D, 0.1)),
    ("torch.add", (I[0], I[1])), ("torch.add", (I[:, 0], I[:1, 1])), ("torch.add", (I[0, ::2], 2**62)),
    ("torch.add", (torch.tensor([5]), torch.tensor(7))), ("torch.add", (torch.tensor(5), torch.tensor(7))),
    ("torch.add", (I[0, :0], I[0, :1])), ("torch.add", (-3, I[0])), ("torch.add", (I[0], -(2**63))),
    ("torch.add", (EMPTY, V)), ("torch.sub", (A, B)), ("torch.sub", (A, 0)), ("torch.sub", (-A * 0, 0)),
    ("torch.sub", (A, 0.3)), ("torch.mul", (A, B)), ("torch.mul", (I, I)), ("torch.mul", (A, D)),
    ("torch.mul", (A, 3)), ("torch.mul", (D, 0.1)), ("torch.mul", (MASK, A)), ("torch.pow", (A, 2)),
    ("torch.pow", (A.abs(), 0.5)), ("torch.pow", (A, 3.0)), ("torch.div", (A, B)), ("torch.div", (A, 3)),
    ("torch.div", (1, A)), ("torch.div", (I, I + 10)), ("torch.div", (A, 0.1)), ("torch.true_divide", (A, B)),
    ("torch.nn.functional.linear", (A, torch.randn(5, 6), torch.randn(5))),
    ("torch.nn.functional.linear", (A, torch.randn(5, 6))),
    ("torch.nn.functional.linear", (A, torch.randn(6, 5).t(), torch.randn(10)[::2])),
    ("torch.nn.functional.linear", (A.t().contiguous().t(), torch.randn(5, 6), torch.randn(5))),
    ("torch.nn.functional.linear", (A[1:], torch.randn(9, 6)[2:], torch.randn(9)[2:])),
    ("torch.nn.functional.linear", (A[1:], torch.randn(9, 6)[2:])), ("torch.matmul", (A[1:], B[2:].t())),
    ("torch.nn.functional.linear", (Q, torch.randn(5, 8))), ("torch.nn.functional.linear", (Q[0], torch.randn(5, 8))),
    ("torch.nn.functional.linear", (Q[0], torch.randn(5, 8), torch.randn(5))),
    ("torch.nn.functional.linear", (Q.transpose(1, 2), torch.randn(5, 8))),
    ("torch.nn.functional.linear", (Q[0, :, :0], torch.randn(5, 8))),
    ("torch.nn.functional.linear", (Q[:1, :1, :1], torch.randn(8, 5).t())),
    ("torch.nn.functional.linear", (Q[:, :1], torch.randn(5, 8), torch.randn(5))),
    ("torch.nn.functional.linear", (Q.bfloat16(), torch.randn(5, 8).bfloat16())),
    ("thunder_executors_torch.masks.added_to_scores", (MASK, torch.float32)),
    ("thunder_executors_torch.masks.added_to_scores", (MASK, torch.bfloat16)),
    ("torch.nn.functional.linear", (EMPTY, torch.randn(5, 6), torch.randn(5))),
    ("torch.nn.functional.linear", (torch.randn(4, 0), torch.randn(5, 0), torch.randn(5))),
    ("torch.nn.functional.linear", (A, torch.randn(0, 6), torch.randn(0))),
    ("torch.nn.functional.linear", (A, torch.randn(1, 6), V[3:4])), ("torch.addmm", (V[:1], A, torch.randn(6, 5))),
    ("torch.nn.functional.linear", (torch.randn(300, 6), torch.randn(300, 6), torch.randn(300))),
    ("torch.nn.functional.linear", (D, D[:2], D[0, ::3])), ("torch.nn.functional.linear", (D, D[:2], D[1, 2:4])),
    ("torch.nn.functional.linear", (Q, torch.randn(7, 8), torch.randn(7))),
    ("torch.nn.functional.linear", (A.bfloat16(), torch.randn(5, 6).bfloat16(), torch.randn(5).bfloat16())),
    ("torch.matmul", (A, B.t())), ("torch.matmul", (A.t(), B)), ("torch.matmul", (Q, Q.transpose(2, 3))),
    ("torch.matmul", (A, V)), ("torch.matmul", (D, D.t())), ("torch.matmul", (EMPTY, B.t())),
    ("torch.mm", (A, B.t())), ("torch.bmm", (Q[0], Q[1].transpose(1, 2))),
    ("torch.permute", (A, (1, 0))), ("torch.permute", (Q, (0, 2, 1, 3))),
    ("thunder_executors_torch.linalg.outer", (Q[0, :, :, :1], Q[1, :, :1, :])),
    ("thunder_executors_torch.linalg.outer", (Q[0, :, :, :1].permute(1, 0, 2), Q[1, :, :1, :].permute(2, 1, 0)[:5])),
    ("thunder_executors_torch.linalg.outer", (A[:, 2:3], torch.randn(1, 19))),
    ("thunder_executors_torch.linalg.outer", (A.double()[:, 2:3], torch.randn(1, 40, dtype=torch.float64)[:, ::2])),
    ("thunder_executors_torch.linalg.outer", (Q[0, :, :, :1], Q[1, :1, :1, :])),
    ("thunder_executors_torch.linalg.outer", (A[:, 2:3].half(), torch.randn(1, 19).half())),
    ("thunder_executors_torch.linalg.outer", (EMPTY[:, :1], torch.randn(1, 19))),
    ("thunder_executors_onednn.products.linear", (A, torch.randn(5, 6), None)),
    ("thunder_executors_onednn.products.linear", (Q, torch.randn(5, 8), torch.randn(10)[::2])),
    ("thunder_executors_onednn.products.matmul", (A.t(), B)),
    ("thunder_executors_onednn.products.addmm", (V[:5], A, torch.randn(6, 5))),
    ("torch.diagonal", (A, 1)), ("torch.diagonal", (Q, 0, 1, 3)), ("torch.diagonal_scatter", (A, V[:4], 0)),
    ("torch.diagonal_scatter", (A, V[:3], -1)), ("torch.movedim", (Q, 0, -1)), ("torch.movedim", (Q, (0, 1), (2, 3))),
    ("torch.Tensor.unflatten", (A, -1, (2, 3))), ("torch.full_like", (A.t(), 1)), ("torch.full_like", (D, 0.0)),
    ("torch.full_like", (I, 1)),
    ("torch.cat", ((A, B),)), ("torch.cat", ([A, B], 1)), ("torch.cat", ((A, B, A), -1)),
    ("torch.nn.functional.silu", (A,)), ("torch.nn.functional.gelu", (A,)),
    ("torch.nn.functional.layer_norm", (A, (6,), V, V, 1e-5)), ("torch.nn.functional.layer_norm", (A, (6,))),
    ("torch.native_layer_norm", (A, (6,), V, V, 1e-5)),
    ("torch.ops.aten.native_layer_norm_backward.default", (B, A, (6,), MEAN, RSTD, V, V, (True, True, True))),
    ("torch.nn.functional.scaled_dot_product_attention", (Q, Q, Q)),
    ("torch.softmax", (A, 1)), ("torch.softmax", (A, -1)), ("torch.log_softmax", (A, 0)),
    ("torch.sum", (A,)), ("torch.sum", (A, (0,))), ("torch.sum", (I, (1,))), ("torch.mean", (A,)),
    ("torch.mean", (A, (0, 1))), ("torch.amax", (A, (1,))), ("torch.maximum", (A, B)), ("torch.minimum", (A, V)),
    ("torch.where", (MASK, A, B)), ("torch.reshape", (A, (6, 4))), ("torch.reshape", (A.t(), (24,))),
    ("torch.Tensor.view", (A, (2, 12))), ("torch.Tensor.expand", (V, (4, 6))), ("torch.transpose", (A, 0, 1)),
    ("torch.unsqueeze", (A, 1)), ("torch.squeeze", (A[:1], 0)), ("torch.split", (A, 2)), ("torch.split", (A, (1, 3))),
    ("torch.chunk", (A, 2, 1)), ("torch.select", (A, 0, 2)), ("torch.narrow", (A, 1, 2, 3)), ("torch.unbind", (A,)),
    ("torch.ops.aten.threshold_backward.default", (B, A, 0)),
    ("torch.ops.aten.threshold_backward.default", (B, STEPS.expand(4, 6), 0.5)),
    ("torch.ops.aten.threshold_backward.default", (V[:1].expand(4, 6), A.t().contiguous().t(), 0.5)),
    ("torch.ops.aten.threshold_backward.default", (EMPTY, EMPTY, 0)),
    ("torch.ops.aten.threshold_backward.default", (D[0, 0], D[0, 1], -0.1)),
    ("torch.ops.aten.tanh_backward.default", (A, B)), ("torch.ops.aten.gelu_backward.default", (A, B)),
    ("torch.ops.aten._softmax_backward_data.default", (A, B, 1, torch.float32)),
    ("torch.Tensor.__getitem__", (Q, 1)), ("torch.Tensor.__getitem__", (Q, (slice(None), -1, slice(1, 4)))),
    ("torch.Tensor.__getitem__", (Q, (..., slice(3, None)))), ("torch.Tensor.__getitem__", (Q, (..., None, -1, 1))),
    ("torch.Tensor.__getitem__", (Q, (None, 1, ..., slice(None, -3, 2)))), ("torch.Tensor.__getitem__", (Q, None)),
    ("torch.Tensor.__getitem__", (Q, (slice(5, 1), slice(-9, 99)))), ("torch.addmm", (V[:5], A, torch.randn(6, 5))),
    ("torch.addmm", (torch.randn(4, 5), A, torch.randn(5, 6).t())), ("torch.addmm", (V[:5], EMPTY, W[:5].t())),
    ("torch.addmm", (torch.randn(6, 1), A[1:].t(), torch.randn(3, 5))), ("torch.index_copy", (A, 0, INDICES[0], B[:2])),
    ("torch.gather", (A, 1, INDICES)), *[(f"torch.Tensor.{name}", (A,)) for name in CONVERSIONS],
    ("torch.rsub", (A, 1)), ("torch.rsub", (D, 0.1)), ("torch.rsub", (A * 0, 0)), ("torch.full", ((2, 3), 0.1)),
    ("torch.full", ((), 7)), ("torch.arange", (5,)), ("torch.arange", (2, 9, 3)), ("torch.arange", (0.5, 2.0, 0.25)),
    ("torch.Tensor.view", (A, 2, 12)), ("torch.Tensor.reshape", (A, (-1,))), ("torch.Tensor.permute", (A, 1, 0)),
    ("torch.nn.functional.embedding", (INDICES, A)), ("torch.lstm_cell", (A, (H, C), W, U, W[:, 0], U[:, 0])),
    ("torch.gru_cell", (A, H, W[:9], U[:9])), ("torch.stack", ((A, B), 1)), ("torch.zeros", ((2, 3),)),
    ("torch.ones", ((2,),)), ("torch.Tensor.new_zeros", (D, (2, 3))), ("torch.index_select", (A, 0, INDICES[0])),
    ("torch.zeros", (2, 3)), ("torch.Tensor.new_zeros", (D, 2, 3)), ("torch.embedding", (A, INDICES)),
    ("torch._softmax_backward_data", (A, B, 1, torch.float32)),
    ("torch._log_softmax_backward_data", (A, B, 1, torch.float32)),
    ("torch._scaled_dot_product_flash_attention_for_cpu", (Q, Q, Q)),
    ("torch.argmax", (A, 1)), ("torch.amin", (A, (1,))), ("torch.cumsum", (A, 1)), ("torch.tril", (A,)),
    *[(f"torch.{name}", (A, V)) for name in ("eq", "ne", "lt", "le", "gt", "ge")], ("torch.eq", (I, I)),
    ("torch.logical_and", (MASK, A)), ("torch.logical_or", (MASK, A)), ("torch.Tensor.split", (A, (1, 3), 0)),
    ("torch.flatten", (Q, 1)), ("torch.Tensor.to", (A, torch.float64)), ("torch.Tensor.to", (A, torch.float32)),
    ("torch.Tensor.contiguous", (A.t(),)), ("torch.Tensor.contiguous", (A,)), ("torch.t", (A,)),
    *[(f"torch.{name}", (A.abs(),)) for name in UNARY],
    *[(f"torch.nn.functional.{name}", (A,)) for name in ACTIVATIONS],
    *[(f"torch._C._nn.{name}", (A,)) for name in IN_C if name != "max_pool2d_with_indices"],
    ("torch._C._nn.max_pool2d_with_indices", (Q, (2, 2), (2, 2), (0, 0), (1, 1), False)),
    ("torch.conv2d", (Q, torch.randn(4, Q.shape[1], 2, 3), torch.randn(4), (2, 1), (1, 0), (1, 2), 1)),
    ("torch.conv2d", (Q, torch.randn(4, Q.shape[1], 2, 3))),
]  # fmt: skip
KEYWORDS = [
    ("torch.zeros", ((2, 3),), {"dtype": torch.int64, "device": "cpu"}),
    ("torch.Tensor.new_zeros", (A, (2,)), {"device": torch.device("cpu", 0), "dtype": torch.bool}),
    ("torch.sum", (A, (0,)), {"keepdim": True}), ("torch.sum", (I,), {"dtype": torch.float32}),
    ("torch.mean", (A, (0,)), {"keepdim": True}), ("torch.softmax", (A, 1), {"dtype": torch.float64}),
    ("torch.nn.functional.gelu", (A,), {"approximate": "tanh"}),
    ("torch.nn.functional.scaled_dot_product_attention", (Q, Q, Q), {"is_causal": True, "scale": 0.5}),
    ("torch.nn.functional.layer_norm", (A, (6,)), {"weight": V, "bias": V, "eps": 1e-3}),
    ("torch.cat", ((A, B),), {"dim": 1}), ("torch.nn.functional.silu", (A,), {"inplace": False}),
    ("torch.nn.functional.relu", (A,), {"inplace": False}),
    ("torch.arange", (3,), {"dtype": torch.float64, "device": "cpu"}),
    ("torch.full", ((2,), 1), {"dtype": torch.float32, "device": torch.device("cpu")}),
    ("torch.conv2d", (), {"input": Q, "weight": torch.randn(4, 3, 2, 3), "groups": 1}),
]  # fmt: skip


def tensors_of(values):
    """Return the tensors among values, and in sequences of these."""
    found = {id(t): t for v in values for t in (v if isinstance(v, (tuple, list)) else (v,))}
    return [t for t in found.values() if isinstance(t, torch.Tensor)]


def test_every_row_has_a_case():
    overloads = {path for path, *_ in CASES if path.startswith("torch.ops.")}
    checks = {"thunder_executors_torch.indexing.check_indices"}  # of which tests of running tell
    assert {path for path, *_ in CASES} - overloads == set(ROWS) - overloads - checks


@pytest.mark.parametrize(
    ("path", "args", "kwargs"), [(*c, {}) for c in CASES] + KEYWORDS, ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_row_is_the_function_to_the_bit(path, args, kwargs):
    inputs = tensors_of((*args, *kwargs.values()))
    recorder = Recorder(*inputs)
    made = recorder.call(path, *args, **kwargs)
    expected = (made,) if isinstance(made, torch.Tensor) else tuple(made)
    results = recorder.runner(*expected).enter(*inputs)
    assert results.__class__ is tuple
    assert len(results) == len(expected)
    assert all(same(a, b) for a, b in zip(results, expected, strict=True))


VIEWS = [
    ("torch.Tensor.__getitem__", (Q, (slice(None), -1, slice(1, 4)))),
    ("torch.Tensor.__getitem__", (Q[1:], (..., 2, 1))),
    ("torch.Tensor.__getitem__", (Q.transpose(1, 3), (..., slice(-2, None)))),
    ("torch.Tensor.__getitem__", (Q, (slice(5, 1), slice(-9, 99)))),
    ("torch.Tensor.__getitem__", (Q, (slice(None), None, 1, slice(None, None, 2)))),
    ("torch.Tensor.__getitem__", (Q, 1)), ("torch.Tensor.__getitem__", (Q, (0, -1, 2))),
    ("torch.Tensor.__getitem__", (Q.transpose(0, 3)[1:], (2, 1))), ("torch.split", (A, 2)),
    ("torch.split", (A, (1, 3))), ("torch.split", (A.t(), 4, 0)), ("torch.Tensor.split", (A, 3, -1)),
    ("torch.chunk", (A, 4, 1)), ("torch.chunk", (V[1:], 2)), ("torch.permute", (A, (1, 0))),
    ("torch.permute", (Q, (0, -2, 1, 3))),
    ("torch.Tensor.permute", (Q, 3, 2, 1, 0)), ("torch.transpose", (Q, 1, -1)), ("torch.reshape", (A, (-1,))),
    ("torch.reshape", (A.t(), (4, 6))), ("torch.Tensor.view", (A, 2, 12)), ("torch.Tensor.view", (A[1:], (3, 2, 3))),
    ("torch.reshape", (Q.transpose(1, 2), (2, 5, 24))), ("torch.Tensor.view", (A, torch.int32)),
    ("torch.Tensor.view", (D, torch.float32)), ("torch.Tensor.view", (A, torch.int16)),
]  # fmt: skip


BY_NAME = [
    ("torch.transpose", (A,), {"dim0": 1, "dim1": 0}), ("torch.transpose", (A, 0), {"dim1": -1}),
    ("torch.transpose", (), {"input": A, "dim0": 0, "dim1": 1}), ("torch.chunk", (A,), {"chunks": 2, "dim": 1}),
    ("torch.chunk", (), {"input": A, "chunks": 2}), ("torch.split", (A,), {"split_size_or_sections": 2}),
    ("torch.Tensor.split", (A,), {"split_size": [1, 3], "dim": 0}), ("torch.permute", (A,), {"dims": (1, 0)}),
    ("torch.permute", (), {"input": Q, "dims": (3, 0, 1, 2)}), ("torch.Tensor.permute", (A,), {"dims": (1, 0)}),
]  # fmt: skip


@pytest.mark.parametrize(("path", "args", "kwargs"), BY_NAME, ids=lambda v: v if isinstance(v, str) else "")
def test_arguments_of_views_have_names_too(path, args, kwargs):
    a = args[0] if args else kwargs["input"]
    recorder = Recorder(a)
    made = recorder.call(path, *args, **kwargs)
    expected = [recorder.call("torch.neg", p) for p in ((made,) if isinstance(made, torch.Tensor) else made)]
    runner = recorder.runner(*expected)
    assert all(same(x, y) for x, y in zip(runner(a), expected, strict=True))
    assert runner.enter(a).__class__ is tuple


@pytest.mark.parametrize(
    ("path", "args"),
    [c for c in CASES if c[0] not in ("torch.arange", "torch.full")],  # whose rows call PyTorch itself
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_row_refuses_names_that_it_does_not_know(path, args):
    """Whatever it cannot write is Python's, and nothing else than that is raised."""
    for count in range(len(args)):
        recorder = Recorder(*tensors_of(args))
        recorder.call(path, *args)
        (bound,) = recorder.bounds
        named = {f"unknown_{n}": value for n, value in enumerate(bound.args[count:])}
        for inner in (False, True):
            with pytest.raises(CannotExpress):
                written(bound.replace(args=bound.args[:count], kwargs=named), runtime().addresses, {}, inner=inner)


@pytest.mark.parametrize(("path", "args"), VIEWS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_view_that_nobody_sees_has_the_same_elements(path, args):
    recorder = Recorder(args[0])
    made = recorder.call(path, *args)
    parts = (made,) if isinstance(made, torch.Tensor) else made
    expected = [recorder.call("torch.neg", p) for p in parts]
    runner = recorder.runner(*expected)
    assert all(same(a, b) for a, b in zip(runner(args[0]), expected, strict=True))
    assert runner.enter(args[0]).__class__ is tuple
    wrong = torch.randn(1)
    assert runner.enter(wrong) in (0, 1) or path.endswith(("reshape", "view"))


def test_a_tensor_without_dimensions_is_transposed_by_pytorch():
    scalar = torch.tensor(2.0)
    recorder = Recorder(scalar)
    expected = recorder.call("torch.neg", recorder.call("torch.transpose", scalar, 0, -1))
    (found,) = recorder.runner(expected)(scalar)
    assert same(found, expected)


def test_products_by_onednn_of_matrices_that_lie_elsewhere_are_python_s():
    """Python copies them; oneDNN would walk over them element by element."""
    w = torch.randn(6, 5)
    recorder = Recorder(A, w)
    result = recorder.call("thunder_executors_onednn.products.matmul", A, w)
    runner = recorder.runner(result)
    for matrix in (torch.randn(6, 9)[:, 2:7], torch.randn(6, 1).expand(6, 5), w, w.t().contiguous().t()):
        assert torch.equal(runner(A, matrix)[0], function_at("thunder_executors_onednn.products.matmul")(A, matrix))
    assert runner.failures == 2


def test_products_by_onednn_are_python_s_while_it_is_switched_off():
    a, w = torch.randn(40, 300), torch.randn(300, 50)
    recorder = Recorder(a, w)
    runner = recorder.runner(recorder.call("thunder_executors_onednn.products.matmul", a, w))
    with torch.backends.mkldnn.flags(enabled=False, allow_tf32=None):
        assert torch.equal(runner(a, w)[0], a @ w)
    assert runner.failures == 1
    assert runner(a, w) and runner.failures == 1


LINEAR = {
    "rows": (Q[0], torch.randn(5, 8), torch.randn(5)),
    "rows that are turned": (Q[0].transpose(0, 1), torch.randn(5, 8), torch.randn(5)),
    "a spread bias": (Q[0], torch.randn(5, 8), torch.randn(1).expand(5)),
    "no bias": (Q, torch.randn(8, 5).t()),
}


@pytest.mark.parametrize("name", LINEAR)
def test_a_linear_of_rows_that_nobody_sees_has_the_same_bits(name):
    args = LINEAR[name]
    recorder = Recorder(*args)
    last = recorder.call("torch.neg", recorder.call("torch.nn.functional.linear", *args))
    runner = recorder.runner(last)
    results = runner.enter(*args)
    assert same(results[0], last)
