"""Regions become loop nests whose text says what they do, and which the reference machine executes."""

import copy
import dataclasses

import numpy as np
import pytest

import thunder_prims as prims
from thunder_ir import Tensor, VerificationError, dtypes, trace_of
from thunder_loops import CannotLower, lower, lowering, run, verify
from thunder_testing import assert_text, check_conformance, run_reference, sampled_symbols

LOWERED = [symbol for symbol in sampled_symbols() if symbol in lowering]


def test_calls_of_one_place_are_one_loop_nest():
    def program(x, b):
        return prims.tanh(prims.add(x, prims.broadcast_in_dim(b, (2, 3), (1,))))

    assert_text(
        lower(trace_of(program, Tensor((2, 3)), Tensor((3,)))),
        """
        def program(a0: "float32[2, 3]", a1: "float32[3]", out0: "float32[2, 3]"):
            for (i0, i1,) in space(i0=2, i1=3):
                v0 = load(a0, (i0, i1))  # float32
                v1 = load(a1, (i1,))  # float32
                v2 = add(v0, v1)  # float32
                v3 = tanh(v2)  # float32
                store(out0, (i0, i1), v3)
        """,
    )


def test_reshaping_splits_an_axis_rather_than_dividing():
    assert_text(
        lower(trace_of(lambda x: prims.reshape(prims.transpose(x, (0, 2, 1)), (2, 12)), Tensor((2, 3, 4)))),
        """
        def program(a0: "float32[2, 3, 4]", out0: "float32[2, 12]"):
            for (i0, i1, i2,) in space(i0=2, i1=4, i2=3):
                v0 = load(a0, (i0, i2, i1))  # float32
                store(out0, (i0, 3*i1 + i2), v0)
        """,
    )


def test_a_sum_of_one_element_that_is_written_to_zeros_needs_no_loop():
    def program(x, i, s):
        zeros = prims.full((2, 5), 0.0, dtypes.float32, x.device)
        total = prims.sum(prims.scatter(zeros, i, s, 1), (1,))
        return prims.mul(x, prims.broadcast_in_dim(total, (2, 5), (0,)))

    trace = trace_of(program, Tensor((2, 5)), Tensor((2, 1), "int64"), Tensor((2, 1)))
    lowered = lower(trace)
    x, i, s = np.ones((2, 5), "float32"), np.array([[4], [0]]), np.array([[3], [-2]], "float32")

    assert "reduce_sum" not in str(lowered)
    np.testing.assert_array_equal(run(lowered, x, i, s)[0], np.broadcast_to(s, (2, 5)))


@pytest.mark.parametrize("place", [0, 4, 5, -1])
def test_a_sum_of_what_is_written_to_no_place_of_a_row_is_zero(place):
    def program(x, i, s):
        rows = prims.iota(5, start=0, step=1, device=s.device, dtype=dtypes.int64)
        here = prims.eq(prims.broadcast_in_dim(rows, (2, 5), (1,)), prims.broadcast_in_dim(i, (2, 5), (0, 1)))
        spread = prims.where(
            here, prims.broadcast_in_dim(s, (2, 5), (0, 1)), prims.full((2, 5), 0.0, s.dtype, s.device)
        )
        return prims.add(x, prims.broadcast_in_dim(prims.sum(spread, (1,)), (2, 5), (0,)))

    lowered = lower(trace_of(program, Tensor((2, 5)), Tensor((2, 1), "int64"), Tensor((2, 1))))
    assert "reduce_sum" not in str(lowered)
    x, s = np.ones((2, 5), "float32"), np.array([[3], [-2]], "float32")
    expected = x + s if 0 <= place < 5 else x
    np.testing.assert_array_equal(run(lowered, x, np.full((2, 1), place), s)[0], expected)


@pytest.mark.parametrize("kind", ["added to", "to others", "two"])
def test_sums_of_rows_with_more_than_one_element_are_added_up(kind):
    def program(x, i, s):
        zeros = prims.full((3, 5), 0.0, dtypes.float32, x.device)
        if kind == "added to":
            made = prims.add(prims.scatter(zeros, i, s, 1), x)
        elif kind == "to others":
            made = prims.scatter(x, i, s, 1)
        else:
            made = prims.add(prims.scatter(zeros, i, s, 1), prims.scatter(zeros, prims.neg(prims.sub(i, 4)), s, 1))
        return prims.add(x, prims.broadcast_in_dim(prims.sum(made, (1,)), (3, 5), (0,)))

    lowered = lower(trace_of(program, Tensor((3, 5)), Tensor((3, 1), "int64"), Tensor((3, 1))))
    assert "reduce_sum" in str(lowered)
    x, i, s = (
        np.arange(15, dtype="float32").reshape(3, 5),
        np.array([[4], [0], [1]]),
        np.array([[3], [-2], [5]], "float32"),
    )
    written = np.zeros((3, 5), "float32") if kind != "to others" else x.copy()
    np.put_along_axis(written, i, s, 1)
    if kind == "added to":
        written += x
    elif kind == "two":
        other = np.zeros((3, 5), "float32")
        np.put_along_axis(other, 4 - i, s, 1)
        written += other
    np.testing.assert_allclose(run(lowered, x, i, s)[0], x + written.sum(1, keepdims=True))


def test_low_precision_is_computed_in_float32_and_rounded_after_each_operation():
    assert_text(
        lower(trace_of(lambda x: prims.exp(prims.mul(x, 0.1)), Tensor((2,), "bfloat16"))),
        """
        def program(a0: "bfloat16[2]", out0: "bfloat16[2]"):
            for (i0,) in space(i0=2):
                v0 = load(a0, (i0,))  # bfloat16
                v1 = to(v0, float32)
                v2 = constant(0.1, float32)  # float32
                v3 = mul(v1, v2)  # float32
                v4 = to(v3, bfloat16)
                v5 = to(v4, float32)
                v6 = exp(v5)  # float32
                v7 = to(v6, bfloat16)
                store(out0, (i0,), v7)
        """,
    )


def test_both_zeros_are_numbers_of_their_own():
    program = lower(
        trace_of(lambda x: prims.where(x, 0.0, prims.full((2,), -0.0, dtypes.float32, x.device)), Tensor((2,), "bool8"))
    )
    assert np.signbit(run(program, np.array([True, False]))[0]).tolist() == [False, True]


def test_long_chains_need_no_recursion():
    def program(x):
        for _ in range(3000):
            x = prims.neg(x)
        return x

    assert run(lower(trace_of(program, Tensor((2,)))), np.float32([1, 2]))[0].tolist() == [1, 2]


@pytest.mark.parametrize("symbol", LOWERED, ids=lambda s: s.id)
def test_the_reference_machine_computes_what_prims_mean(symbol):
    lowered = []

    def compile(trace):
        try:
            program = lower(trace)
        except CannotLower:  # of a dtype that only PyTorch computes with
            return lambda *arrays: run_reference(trace, *arrays)
        verify(program)
        lowered.append(program)
        return lambda *arrays: run(program, *arrays)

    check_conformance(symbol, compile)
    assert lowered


def test_what_has_no_loop_nest_is_refused_by_name():
    with pytest.raises(CannotLower, match="prims.cholesky has no loop nest; add one with @lowering"):
        lower(trace_of(prims.cholesky, Tensor((2, 2))))


def test_columns_times_rows_are_a_loop_nest_and_other_products_are_the_librarys():
    assert_text(
        lower(trace_of(lambda a, b: prims.matmul(prims.neg(a), b), Tensor((5, 2, 1)), Tensor((5, 1, 3)))),
        """
        def program(a0: "float32[5, 2, 1]", a1: "float32[5, 1, 3]", out0: "float32[5, 2, 3]"):
            for (i0, i1, i2,) in space(i0=5, i1=2, i2=3):
                v0 = load(a0, (i0, i1, 0))  # float32
                v1 = neg(v0)  # float32
                v2 = load(a1, (i0, 0, i2))  # float32
                v3 = mul(v1, v2)  # float32
                store(out0, (i0, i1, i2), v3)
        """,
    )
    with pytest.raises(CannotLower, match="products of matrices are the library's"):
        lower(trace_of(prims.matmul, Tensor((2, 2)), Tensor((2, 2))))


def test_accesses_that_leave_a_buffer_are_found():
    from dataclasses import replace

    program = lower(trace_of(lambda x: prims.exp(x), Tensor((4,))))
    (small,) = program.inputs
    with pytest.raises(VerificationError, match="goes from 0 to 3 in a dimension of 3"):
        verify(replace(program, inputs=(replace(small, shape=(3,)),)))


def test_the_mean_of_var_mean_is_the_mean_wherever_it_is_read():
    """Also where the program reads it by another object of the same name, as after a substitution."""

    def program(x):
        variance, mean = prims.var_mean(x, (1,), 0)
        return prims.sub(x, prims.broadcast_in_dim(mean, (2, 3), (0,)))

    trace = trace_of(program, Tensor((2, 3)))
    apart = [b.substituted({p.name: copy.copy(p) for p in b.inputs}) for b in trace.bound_symbols]
    x = np.arange(6, dtype=np.float32).reshape(2, 3) ** 2
    (found,) = run(lower(trace.replace(bound_symbols=tuple(apart))), x)
    np.testing.assert_allclose(found, x - x.mean(1, keepdims=True), rtol=1e-6)


def test_indices_are_looked_at_before_anything_is_read_where_they_lead():
    def program(x, i):
        return prims.neg(prims.take(x, i, 0))

    loops = lower(trace_of(program, Tensor((5, 3)), Tensor((2,), "int64")))
    verify(loops)

    assert_text(
        loops,
        """
        def program(a0: "float32[5, 3]", a1: "int64[2]", out0: "float32[2, 3]"):
            wrong0 = temporary(bool8, ())
            for (i0,) in space(i0=2):
                v0 = load(a1, (i0,))  # int64
                v1 = constant(0, int64)  # int64
                v2 = lt(v0, v1)  # bool8
                v3 = constant(5, int64)  # int64
                v4 = ge(v0, v3)  # bool8
                v5 = bitwise_or(v2, v4)  # bool8
                v6 = reduce_max(v5, i0)  # bool8
                store(wrong0, (), v6)
            within(wrong0)
            for (i0, i1,) in space(i0=2, i1=3):
                v0 = load(a1, (i0,))  # int64
                v1 = load(a0, (v0, i1))  # float32
                v2 = neg(v1)  # float32
                store(out0, (i0, i1), v2)
        """,
    )
    x = np.arange(15, dtype=np.float32).reshape(5, 3)
    assert np.array_equal(run(loops, x, np.array([4, 0]))[0], -x[[4, 0]])
    with pytest.raises(IndexError, match="leads out"):
        run(loops, x, np.array([0, 5]))


def test_rows_are_added_to_zeros_one_after_the_other_by_a_nest_of_their_own():
    def program(dy, i):
        return prims.neg(prims.embedding_backward(prims.mul(dy, 2.0), i, 5, 3, False))

    lowered = lower(trace_of(program, Tensor((2, 4, 3)), Tensor((2, 4), "int64")))
    verify(lowered)
    *_, zeros, adds, _ = lowered.nests
    assert_text(
        dataclasses.replace(lowered, nests=(zeros, adds), checks=()),
        """
        def program(a0: "float32[2, 4, 3]", a1: "int64[2, 4]", out0: "float32[5, 3]"):
            m0 = temporary(float32, (5, 3))
            for (i0, i1,) in space(i0=5, i1=3):
                v0 = constant(0.0, float32)  # float32
                store(m0, (i0, i1), v0)
            for (i0, i1, i2,) in space(i0=2, i1=4, i2=3):
                v0 = load(a1, (i0, i1))  # int64
                v1 = load(a0, (i0, i1, i2))  # float32
                v2 = constant(2.0, float32)  # float32
                v3 = mul(v1, v2)  # float32
                v4 = constant(3, int64)  # int64
                v5 = ne(v0, v4)  # bool8
                add_to(m0, (v0, i2), v3, float32, i0, i1, when=v5)
        """,
    )
    dy, i = np.arange(24, dtype="float32").reshape(2, 4, 3), np.array([[4, 0, 3, 4], [0, 4, 1, 3]])
    expected = np.zeros((5, 3), "float32")
    np.add.at(expected, i, -2 * dy)
    expected[3] = 0
    np.testing.assert_array_equal(run(lowered, dy, i)[0], expected)
    with pytest.raises(IndexError, match="leads out"):
        run(lowered, dy, i + 1)


def test_sums_of_rows_that_are_rounded_lose_what_each_addition_loses():
    lowered = lower(
        trace_of(
            lambda dy, i: prims.embedding_backward(dy, i, 1, -1, False),
            Tensor((300, 1), "bfloat16"),
            Tensor((300,), "int64"),
        )
    )
    assert run(lowered, np.ones((300, 1), "float32"), np.zeros(300, int))[0].item() == 256


def test_rows_that_are_scaled_by_how_often_they_come_have_no_loop_nest():
    with pytest.raises(CannotLower, match="divided by how often"):
        lower(
            trace_of(lambda dy, i: prims.embedding_backward(dy, i, 5, -1, True), Tensor((4, 3)), Tensor((4,), "int64"))
        )


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (lambda fill, adds: (adds,), "nothing has written"),
        (lambda fill, adds: (fill, with_last(adds, over=("i9",))), "no addition over axes"),
        (lambda fill, adds: (fill, with_last(adds, dtype=dtypes.float64)), "in the dtype of its buffer"),
        (
            lambda fill, adds: (fill, dataclasses.replace(adds, statements=(*adds.statements, *adds.stores))),
            "not alone",
        ),
    ],
)
def test_additions_that_are_none_are_found(changed, problem):
    program = lower(
        trace_of(lambda dy, i: prims.embedding_backward(dy, i, 5, -1, False), Tensor((4, 3)), Tensor((4,), "int64"))
    )
    with pytest.raises(VerificationError, match=problem):
        verify(dataclasses.replace(program, nests=changed(*program.nests[1:]), checks=()))


def with_last(nest, **fields):
    """Return a nest with its last statement changed."""
    return dataclasses.replace(
        nest, statements=(*nest.statements[:-1], dataclasses.replace(nest.statements[-1], **fields))
    )


def test_a_cumulative_sum_and_what_is_around_it_are_one_nest():
    def program(x):
        behind = prims.flip(prims.cumsum(prims.flip(prims.exp(x), (1,)), 1), (1,))
        return prims.mul(behind, prims.broadcast_in_dim(prims.sum(x, (1,)), (2, 3), (0,)))

    lowered = lower(trace_of(program, Tensor((2, 3))))
    verify(lowered)
    assert_text(
        lowered,
        """
        def program(a0: "float32[2, 3]", out0: "float32[2, 3]"):
            for (i0, i1,) in space(i0=2, i1=3):
                v0 = load(a0, (i0, i1))  # float32
                v1 = exp(v0)  # float32
                v2 = to(v1, float64)
                v3 = scan_sum(v2, i1, reverse=True)  # float64
                v4 = to(v3, float32)
                v5 = to(v0, float64)
                v6 = reduce_sum(v5, i1)  # float64
                v7 = to(v6, float32)
                v8 = mul(v4, v7)  # float32
                store(out0, (i0, i1), v8)
        """,
    )
    x = np.arange(6, dtype="float32").reshape(2, 3)
    expected = np.cumsum(np.exp(x)[:, ::-1], 1)[:, ::-1] * x.sum(1, keepdims=True)
    np.testing.assert_allclose(run(lowered, x)[0], expected, rtol=1e-6)


def test_scans_in_both_directions_are_refused_in_one_nest():
    nest = lower(trace_of(lambda x: prims.cumsum(x, 0), Tensor((3,), "float64"))).nests[0]
    scan = nest.scans[0]
    other = dataclasses.replace(scan, name="w", reverse=True)
    program = lower(trace_of(lambda x: prims.cumsum(x, 0), Tensor((3,), "float64")))
    both = dataclasses.replace(nest, statements=(*nest.statements[:2], other, *nest.statements[2:]))
    with pytest.raises(VerificationError, match="direction"):
        verify(dataclasses.replace(program, nests=(both,)))


def test_a_cumulative_sum_along_what_was_two_dimensions_reads_it_from_memory():
    def program(x):
        rows = prims.reshape(prims.exp(x), (6, 4))
        return prims.neg(prims.reshape(prims.cumsum(rows, 0), (2, 3, 4)))

    lowered = lower(trace_of(program, Tensor((2, 3, 4))))
    verify(lowered)
    x = np.linspace(-1, 1, 24, dtype="float32").reshape(2, 3, 4)
    expected = -np.cumsum(np.exp(x).reshape(6, 4), 0).reshape(2, 3, 4)
    np.testing.assert_allclose(run(lowered, x)[0], expected, rtol=1e-6)
    assert len(lowered.nests) == 3
