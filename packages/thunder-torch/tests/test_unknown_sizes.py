"""Results whose sizes depend on values: numbers of the program, read when it runs."""

import inspect
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from thunder_autograd import grad_transform_on_trace, jvp_transform_on_trace
from thunder_executors import to_callable
from thunder_executors_torch import executor
from thunder_ir import (
    IntegerProxy,
    Tensor,
    TensorProxy,
    Unknown,
    dtypes,
    flat_proxies,
    is_unknown,
    trace_of,
    verify,
)
from thunder_ir.passes import common_subexpressions, dead_code_elimination, expand
from thunder_torch import call, metadata, proxy_of, torch_language
from thunder_torch.errors import DataDependentShapeError
from thunder_torch.metadata import metadata_of
from thunder_torch.stand_ins import SizeEnv
from thunder_torch.trials import real_of, tried
from thunder_torch.unknown_gradients import rules_for_unknown_sizes
from thunder_vmap import batch_transform_on_trace

X = torch.tensor([[1.0, -2.0, 3.0], [-4.0, 5.0, 0.0]])


def in_torch(function):
    """A program in which ``function(call, x)`` calls PyTorch's functions by ``call``."""
    return lambda *xs: function(lambda f, *args, **kwargs: call(f, args, kwargs), *xs)


def recorded(function, *examples):
    return trace_of(in_torch(function), *(examples or (Tensor((2, 3), requires_grad=True),)), language=torch_language)


def eager(function, *values):
    return function(lambda f, *args, **kwargs: f(*args, **kwargs), *values)


PROGRAMS = {
    "nonzero": lambda c, x: c(torch.nonzero, x),
    "where": lambda c, x: c(torch.where, c(torch.gt, x, 0)),
    "mask": lambda c, x: c(torch.exp, c(torch.Tensor.__getitem__, x, c(torch.gt, x, 0))),
    "masked_select": lambda c, x: c(torch.mean, c(torch.masked_select, x, c(torch.gt, x, 0))),
    "unique": lambda c, x: c(torch.unique, x, return_counts=True),
    "bincount": lambda c, x: c(torch.bincount, c(torch.reshape, c(torch.Tensor.long, c(torch.abs, x)), (6,))),
    "one_hot": lambda c, x: c(F.one_hot, c(torch.Tensor.long, c(torch.abs, x))),
    "repeat": lambda c, x: c(torch.repeat_interleave, c(torch.Tensor.long, c(torch.amax, c(torch.abs, x), 0))),
    "item": lambda c, x: c(torch.mul, x, c(torch.Tensor.item, c(torch.amax, x))),
    "reshaped": lambda c, x: c(torch.Tensor.view, c(torch.masked_select, x, c(torch.gt, x, 0)), -1, 1),
    "joined": lambda c, x: c(torch.cat, [c(torch.nonzero, x), c(torch.nonzero, x)]),
}  # fmt: skip
VALUES = [X, -X, torch.zeros(2, 3), torch.ones(2, 3), torch.full((2, 3), -1.0)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_program_serves_any_number(name):
    trace = verify(recorded(PROGRAMS[name]))
    run = to_callable(trace, [executor])
    for x in VALUES:
        expected = eager(PROGRAMS[name], x)
        torch.testing.assert_close(run(x), expected, equal_nan=True, check_stride=True)


def test_sizes_are_read_off_the_result():
    trace = recorded(PROGRAMS["nonzero"])
    assert [line.strip() for line in str(trace).splitlines()[1:3]] == [
        "t0 = ltorch.nonzero(a0)  # int64[?, 2]",
        "(t1, i0) = ltorch.sized(t0, (None, 2))  # int64[i0, 2], int",
    ]
    (size, _) = trace.output.shape
    assert is_unknown(size) and size.unknown.what == "dimension 0 of what nonzero returns"
    assert size.unknown.upper == 6


def test_sizes_of_one_result_are_one_number():
    trace = recorded(PROGRAMS["where"])
    first, second = trace.output
    assert first.shape[0] is second.shape[0]


def test_passes_keep_what_reads_sizes():
    trace = recorded(lambda c, x: c(torch.ones, (c(torch.nonzero, x).shape[0], 2)))
    for made in (dead_code_elimination(trace), common_subexpressions(trace), expand(trace)):
        run = to_callable(verify(made), [executor])
        assert run(X).shape == (5, 2) and run(torch.zeros(2, 3)).shape == (0, 2)


DIFFERENTIABLE = {
    "select and sum": lambda c, x: c(torch.sum, c(torch.exp, c(torch.masked_select, x, c(torch.gt, x, 0)))),
    "rows": lambda c, x: c(torch.Tensor.__getitem__, x, c(torch.gt, c(torch.sum, x, 1), 0)),
    "prod": lambda c, x: c(torch.prod, c(torch.masked_select, x, c(torch.gt, x, 0))),
    "linear": lambda c, x: c(F.linear, DIFFERENTIABLE["rows"](c, x), c(torch.ones, (4, 3))),
    "std": lambda c, x: c(torch.std, c(torch.masked_select, x, c(torch.ne, x, 7))),
}  # fmt: skip


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_go_through(name):
    function = DIFFERENTIABLE[name]
    trace = recorded(function)
    joint = grad_transform_on_trace(trace, rule_of=rules_for_unknown_sizes(lambda bound: None))
    run = to_callable(joint, [executor])
    for value in VALUES[:2]:
        x = value.clone().requires_grad_()
        expected = eager(function, x)
        seed = torch.rand_like(expected)
        (wanted,) = torch.autograd.grad(expected, x, seed)
        with torch.no_grad():
            result, (found,) = run(value, seed)
        torch.testing.assert_close(result, expected.detach())
        torch.testing.assert_close(found, wanted)


def test_tangents_go_through():
    def function(c, x):
        return c(torch.mul, c(torch.masked_select, x, c(torch.gt, x, 0)), 3)

    run = to_callable(jvp_transform_on_trace(recorded(function)), [executor])
    (result,), (tangent,) = ((r,) if isinstance(r, torch.Tensor) else r for r in run(X, torch.ones(2, 3)))
    torch.testing.assert_close(result, 3 * X[X > 0])
    torch.testing.assert_close(tangent, torch.full((3,), 3.0))


def test_a_batch_of_sizes_is_refused():
    with pytest.raises(DataDependentShapeError, match="another one for each example of a batch"):
        batch_transform_on_trace(recorded(PROGRAMS["nonzero"]), 2, [0])


def test_what_broadcasts_for_some_sizes_raises_when_it_would():
    def function(c, x, y):
        return c(torch.add, *[c(torch.masked_select, a, c(torch.gt, a, 0)) for a in (x, y)])

    trace = recorded(function, Tensor((4,)), Tensor((4,)))
    run = to_callable(trace, [executor])
    x, one, three = (
        torch.tensor([1.0, 2.0, -3.0, 4.0]),
        torch.tensor([1.0, -1, -1, -1]),
        torch.tensor([2.0, 1.0, 1.0, -1]),
    )
    torch.testing.assert_close(run(x, three), x[x > 0] + three[three > 0])
    with pytest.raises(DataDependentShapeError, match="compiled for"):
        run(one, three)
    with pytest.raises(RuntimeError, match="must match the size"):
        run(x, torch.tensor([1.0, 1.0, -1.0, -1.0]))


def test_what_the_metadata_need_is_refused_with_pytorchs_reason():
    with pytest.raises(DataDependentShapeError, match=r"what arange returns depends on values.*static shape"):
        recorded(lambda c, x: c(torch.arange, c(torch.Tensor.item, c(torch.amax, x))))


def test_numbers_are_numbers_of_the_program():
    for x in (torch.tensor([1.5]), torch.tensor([3]), torch.tensor([True]), torch.tensor([1 + 2j])):
        trace = trace_of(lambda a: call(lambda t: t.item(), (a,), {}), proxy_of(x), language=torch_language)
        found = to_callable(trace, [executor])(x)
        assert is_unknown(trace.output) and found == x.item() and type(found) is type(x.item())


def test_errors_of_the_user_stay_pytorchs():
    with pytest.raises(RuntimeError, match="mat1 and mat2 must have the same dtype|needs tensors of one dtype"):
        recorded(lambda c, x: c(torch.mm, c(torch.nonzero, x), c(torch.ones, (2, 2))))
    with pytest.raises(RuntimeError, match="linalg.svd"):
        recorded(lambda c, x: c(torch.linalg.svd, c(torch.nonzero, x)))


def test_static_calls_are_plain_integers():
    proxy = metadata_of(torch.add, (Tensor((2, 3)), 1), {})
    assert isinstance(proxy, TensorProxy) and all(type(d) is int for d in (*proxy.shape, *(proxy.strides or ())))


def test_what_pytorch_does_not_tell_is_tried():
    def function(c, x, at):
        return c(torch.tensor_split, x, at)

    trace = recorded(function, Tensor((5, 3)), Tensor((2,), "int64"))
    run = to_callable(trace, [executor])
    for at in ([1, 2], [0, 4], [3, 3]):
        x = torch.randn(5, 3)
        torch.testing.assert_close(run(x, torch.tensor(at)), torch.tensor_split(x, torch.tensor(at)))


def test_how_many_results_there_are_is_not_guessed():
    with pytest.raises(DataDependentShapeError, match="what tensor_split returns depends on values"):
        recorded(lambda c, x, n: c(torch.tensor_split, x, n), Tensor((5, 3)), Tensor((), "int64"))


def test_what_only_tensors_without_data_refuse_is_no_error_of_the_user():
    def function(c, x, at):
        return c(torch.tensor_split, c(torch.masked_select, x, c(torch.gt, x, 0)), at)

    with pytest.raises(DataDependentShapeError, match="what tensor_split returns depends on values"):
        recorded(function, Tensor((5, 3)), Tensor((2,), "int64"))


OF_TWO = {
    "sin": lambda a, b: torch.sin(a),
    "cat": lambda a, b: torch.cat([a, b, a]),
    "cat_with_one": lambda a, b: torch.cat([a[:1], b, a]),
    "flatten": lambda a, b: a.flatten(),
    "t": lambda a, b: a.t(),
    "outer": lambda a, b: a @ b.t(),
    "sum": lambda a, b: a.sum(1),
    "unsqueeze": lambda a, b: a[:, None] + b[None],
    "nonzero": lambda a, b: torch.nonzero(a),
    "one_of_them": lambda a, b: b,
    "sizes": lambda a, b: (a.numel() + b.shape[0], b.stride()),
}


def of_unknown_rows(*names):
    rows = [IntegerProxy(7, name, Unknown("how many there are", 0)) for name in names]
    return rows, [TensorProxy((n, 3), dtypes.float32, strides=(3, 1)) for n in rows]


def written(result, names):
    """What was told of a result, with the names of what it rests on; unknowns of its own have none."""
    if isinstance(result, (tuple, list)):
        return [written(item, names) for item in result]
    if isinstance(result, TensorProxy):
        return [written(result.shape, names), written(result.strides, names), result.dtype]
    if is_unknown(result):
        terms = result.unknown.terms
        told = terms and sorted([(sorted([names.get(f.name, f.name) for f in factors]), n) for factors, n in terms])
        return [result.unknown.what, result.unknown.lower, told, result.value]
    return result


@pytest.mark.parametrize("name", OF_TWO)
def test_what_was_told_of_unknown_sizes_holds_for_others(name, monkeypatch):
    def function(a, b):
        return OF_TWO[name](a, b)

    _, first = of_unknown_rows("i8", "i9")
    alone = written(metadata_of(function, tuple(first), {}), {})

    def never(*_):
        raise AssertionError("PyTorch was asked again")

    with monkeypatch.context() as patched:
        patched.setattr(metadata, "_run", never)
        rows, others = of_unknown_rows("i10", "i2")
        again = metadata_of(function, tuple(others), {})
    assert written(again, {"i10": "i8", "i2": "i9"}) == alone
    assert {p.name for p in flat_proxies(again) if isinstance(p, IntegerProxy)} <= {"i10", "i2", ""}
    if name == "one_of_them":
        assert again is others[1]


def test_sizes_that_are_one_are_not_taken_for_two():
    def function(a, b):
        return torch.cat([a, b])

    _, (a, b) = of_unknown_rows("i8", "i9")
    for given, expected in (((a, a), [(["i8"], 2)]), ((a, b), [(["i8"], 1), (["i9"], 1)])):
        assert written(metadata_of(function, given, {}).shape[0], {})[2] == expected


def test_unknown_sizes_do_not_load_the_compilers_of_pytorch():
    program = "\n".join([
        "import sys, torch",
        "from thunder_ir import Tensor",
        "from thunder_torch.metadata import metadata_of",
        "print(metadata_of(torch.nonzero, (Tensor((2, 3)),), {}).shape)",
        "assert 'torch._inductor.sizevars' not in sys.modules, 'they were loaded'",
    ])  # fmt: skip
    subprocess.run([sys.executable, "-c", program], check=True)
    for name in ("_get_user_frame", "_log_create_unbacked_symbol", "get_implications"):  # which SizeEnv replaces
        assert callable(getattr(ShapeEnv, name))


def test_what_follows_from_comparisons_is_kept_no_longer_than_they_are():
    env = SizeEnv(allow_scalar_outputs=True)
    n = env.create_unbacked_symint()
    kept_for_good = getattr(ShapeEnv.get_implications, "cache_info", lambda: None)
    before = kept_for_good()
    torch._check(n > 2)
    assert bool(n > 1) and kept_for_good() == before
    compared = n.node.expr > 2
    assert env.get_implications(compared) == inspect.unwrap(ShapeEnv.get_implications)(env, compared)
    assert env.get_implications(compared) is env.get_implications(compared)


def test_padding_packed_sequences_is_tried_with_rows_that_there_are():
    data = TensorProxy((7, 2), dtypes.float32, name="data")
    batch_sizes = TensorProxy((3,), dtypes.int64, name="batch_sizes")
    for low in (0, 1, 2):
        counts = real_of(batch_sizes, low)
        padded, lengths = tried(torch._VF._pad_packed_sequence, (real_of(data, low), counts, True, 0.0, 3), {})
        assert int(counts.sum()) == 7 and counts.tolist() == sorted(counts.tolist(), reverse=True)
        assert padded.shape == (int(counts[0]), 3, 2) and len(lengths) == int(counts[0])
    with pytest.raises(ValueError, match="7 rows are none of 9 steps"):
        tried(torch._VF._pad_packed_sequence, (real_of(data, 0), torch.zeros(9, dtype=torch.int64), True, 0.0, 9), {})
