import pytest

import thunder_prims as prims
from thunder_ir import DeviceError, DimensionError, DTypeError, IntegerProxy, ShapeError, Tensor, number_proxy, trace_of
from thunder_testing import assert_text


def refused(error, words, program, *examples):
    with pytest.raises(error, match=words):
        trace_of(program, *examples)


def test_calls_print_as_made():
    def program(x):
        a = prims.transpose(x, (1, 0))
        b = prims.broadcast_in_dim(a, (2, 3, 2), (1, 2))
        c = prims.reshape(b, (6, 2))
        d = prims.slice(c, (1, 0), (6, 2), (2, 1))
        e = prims.pad(d, 0.0, ((1, -1, 1), (0, 2, 0)))
        f = prims.cat((e, c), 0) if e.shape[1] == 2 else prims.cat((e, e), 0)
        g = prims.unfold(prims.flip(f, (0, 1)), 0, 4, 3)
        return prims.squeeze(prims.view(g, (1, 3, 16)), (0,))

    assert_text(
        trace_of(program, Tensor((2, 3))),
        """
        def program(x: "float32[2, 3]"):
            t0 = prims.transpose(x, (1, 0))  # float32[3, 2]
            t1 = prims.broadcast_in_dim(t0, (2, 3, 2), (1, 2))  # float32[2, 3, 2]
            t2 = prims.reshape(t1, (6, 2))  # float32[6, 2]
            t3 = prims.slice(t2, (1, 0), (6, 2), (2, 1))  # float32[3, 2]
            t4 = prims.pad(t3, 0.0, ((1, -1, 1), (0, 2, 0)))  # float32[5, 4]
            t5 = prims.cat((t4, t4), 0)  # float32[10, 4]
            t6 = prims.flip(t5, (0, 1))  # float32[10, 4]
            t7 = prims.unfold(t6, 0, 4, 3)  # float32[3, 4, 4]
            t8 = prims.view(t7, (1, 3, 16))  # float32[1, 3, 16]
            t9 = prims.squeeze(t8, (0,))  # float32[3, 16]
            return t9
        """,
    )


def test_sizes_may_be_symbolic():
    def program(n):
        x = prims.full((n, 3), 1.0, Tensor(()).dtype, Tensor(()).device)
        y = prims.reshape(prims.cat((x, x), 0), (2, n, 3))
        return prims.slice(y, (0, 1, 0), (2, n, 3))

    trace = trace_of(program, number_proxy(4))
    assert [getattr(d, "value", d) for d in trace.output.shape] == [2, 3, 3]
    assert any(bound.symbol is prims.number_sub for bound in trace.bound_symbols)
    assert all(constraint.holds for constraint in trace.constraints if constraint.relation in ("eq", "le"))


def test_nothing_need_be_known_of_a_size_that_a_reshape_keeps():
    def program(n):
        x = prims.full((2, n, 3), 1.0, Tensor(()).dtype, Tensor(()).device)
        return prims.reshape(prims.slice(x, (0, 0, 0), (2, n, 2)), (n, 4))

    trace = trace_of(program, number_proxy(4))
    assert [(c.relation, c.right) for c in trace.constraints if c.relation != "ge"] == []
    assert "number_mul" not in str(trace)


def test_the_shape_of_a_tensor_is_nothing_new_to_compute():
    trace = trace_of(lambda x: prims.shape_of(x), Tensor((IntegerProxy(4), 3)))
    assert_text(
        trace,
        """
        def program(x_0: "int", x: "float32[x_0, 3]"):
            return (x_0, 3)
        """,
    )


def test_a_permutation_has_each_dimension_once():
    refused(
        ShapeError,
        r"transpose of float32\[2, 3\] needs a permutation of 0..1, got \(0, 0\)",
        lambda x: prims.transpose(x, (0, 0)),
        Tensor((2, 3)),
    )


@pytest.mark.parametrize(
    ("shape", "dims", "error", "words"),
    [
        ((4, 3), (0, 1), ShapeError, r"broadcast_in_dim of float32\[2, 3\] to \(4, 3\).*a size of 2 can become 2 only"),
        ((2, 3), (1, 0), ShapeError, "needs 2 ascending dimensions of the result"),
        ((2, 3), (0,), ShapeError, "needs 2 ascending dimensions of the result"),
        ((2, 3), (0, 2), DimensionError, "the result has no dimension 2"),
        ((2, -3), (0, 1), ShapeError, "broadcast_in_dim needs sizes that are not negative"),
    ],
    ids=str,
)
def test_what_does_not_broadcast_is_refused(shape, dims, error, words):
    refused(error, words, lambda x: prims.broadcast_in_dim(x, shape, dims), Tensor((2, 3)))


@pytest.mark.parametrize("symbol", [prims.reshape, prims.view], ids=lambda s: s.name)
def test_a_new_shape_has_as_many_elements(symbol):
    refused(
        ShapeError,
        rf"{symbol.name} of float32\[2, 3\] with 6 elements to \(5,\) with 5",
        lambda x: symbol(x, (5,)),
        Tensor((2, 3)),
    )


def test_only_dimensions_of_size_one_are_squeezed():
    refused(
        ShapeError,
        r"squeeze of float32\[2, 1\] needs dimensions of size 1, got 0 of size 2",
        lambda x: prims.squeeze(x, (0,)),
        Tensor((2, 1)),
    )


@pytest.mark.parametrize("symbol", [prims.squeeze, prims.flip], ids=lambda s: s.name)
def test_dimensions_exist_and_differ(symbol):
    refused(DimensionError, r"has no dimension 2; expected one of 0..1", lambda x: symbol(x, (2,)), Tensor((1, 1)))
    refused(DimensionError, r"has no dimension -1", lambda x: symbol(x, (-1,)), Tensor((1, 1)))
    refused(DimensionError, r"expected none, as it has no dimensions", lambda x: symbol(x, (0,)), Tensor(()))
    refused(ShapeError, r"needs different dimensions, got \(1, 1\)", lambda x: symbol(x, (1, 1)), Tensor((1, 1)))
    refused(TypeError, r"needs an int as a dimension, got the str 'x'", lambda x: symbol(x, ("x",)), Tensor((1, 1)))
    refused(TypeError, r"needs a tuple of dimensions, got the int 0", lambda x: symbol(x, 0), Tensor((1, 1)))


@pytest.mark.parametrize(
    ("starts", "ends", "strides"),
    [((0, 0), (3, 3), None), ((-1, 0), (2, 3), None), ((2, 0), (1, 3), None), ((0, 0), (2, 3), (1, 0))],
    ids=str,
)
def test_a_slice_lies_inside(starts, ends, strides):
    words = "needs 0 <= start <= end <= size and a positive stride in each dimension"
    refused(ShapeError, words, lambda x: prims.slice(x, starts, ends, strides), Tensor((2, 3)))


def test_what_is_left_out_is_recorded_as_it_is_meant():
    assert_text(
        trace_of(lambda x: prims.slice(x, (0,), (1,)), Tensor((2,))),
        """
        def program(x: "float32[2]"):
            t0 = prims.slice(x, (0,), (1,), None)  # float32[1]
            return t0
        """,
    )


def test_a_slice_says_all_dimensions():
    words = r"slice of float32\[2, 3\] needs 2 starts, ends and strides"
    refused(ShapeError, words, lambda x: prims.slice(x, (0,), (1,)), Tensor((2, 3)))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (((1, 1, 0),), "needs .before, behind, between. for each dimension"),
        (((1, 1), (1, 1)), "needs .before, behind, between. for each dimension"),
        (((0, 0, -1), (0, 0, 0)), "cannot put -1 elements between others"),
        (((-2, -1, 0), (0, 0, 0)), "takes away more elements than there are"),
    ],
    ids=str,
)
def test_what_cannot_be_padded_is_refused(config, words):
    refused(ShapeError, words, lambda x: prims.pad(x, 0, config), Tensor((2, 3)))


def test_what_is_put_around_fits_the_dtype():
    refused(DTypeError, "pad of int64 cannot take the float 0.5", lambda x: prims.pad(x, 0.5, ()), Tensor((), "int64"))


def test_what_is_joined_fits_together():
    def join(*tensors):
        return prims.cat(tensors, 0)

    refused(
        ShapeError,
        r"cat of float32\[2, 3\] and float32\[2, 4\] along 0 needs equal",
        join,
        Tensor((2, 3)),
        Tensor((2, 4)),
    )
    refused(ShapeError, r"cat of float32\[2\] and float32\[2, 4\] along 0", join, Tensor((2,)), Tensor((2, 4)))
    refused(
        DTypeError, r"cat of float32\[2\] and int64\[2\] needs one dtype", join, Tensor((2,)), Tensor((2,), "int64")
    )
    refused(DeviceError, r"cat of .* needs one device", join, Tensor((2,)), Tensor((2,), device="cuda"))
    refused(DimensionError, r"cat of float32\[\] has no dimension 0", join, Tensor(()), Tensor(()))
    refused(ShapeError, r"cat needs a sequence of at least one tensor, got the tuple \(\)", join)
    refused(TypeError, r"cat needs a tensor as an argument, got the int 3", lambda x: join(x, 3), Tensor((2,)))


@pytest.mark.parametrize(("size", "step"), [(4, 1), (-1, 1), (2, 0)])
def test_windows_lie_inside(size, step):
    words = r"unfold of float32\[3\] along 0 needs a size in 0..3 and a positive step"
    refused(ShapeError, words, lambda x: prims.unfold(x, 0, size, step), Tensor((3,)))
