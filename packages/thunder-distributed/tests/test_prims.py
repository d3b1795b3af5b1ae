"""Collectives: what they return, and their rules, with the sizes of a mesh in one process."""

import pytest

import thunder_prims as prims
from thunder_autograd import grad_transform_on_trace, jvp_transform_on_trace
from thunder_distributed import Axis
from thunder_distributed import prims as dist
from thunder_ir import DTypeError, ShapeError, Tensor, device, trace_of, verify
from thunder_testing import assert_text
from thunder_vmap import batch_transform_on_trace

AXIS = Axis("data", 4)


def joint(function, *examples):
    trace = grad_transform_on_trace(trace_of(lambda *a: dist.wait(function(*a)), *examples))
    verify(trace)
    return [b.symbol.name for b in trace.bound_symbols], trace


@pytest.mark.parametrize(
    ("function", "shape", "result", "back"),
    [
        (lambda a: dist.all_reduce(a, AXIS), (4, 3), "float32[4, 3]", "all_reduce"),
        (lambda a: dist.all_gather(a, AXIS, 1), (4, 3), "float32[4, 12]", "reduce_scatter"),
        (lambda a: dist.reduce_scatter(a, AXIS), (4, 3), "float32[1, 3]", "all_gather"),
        (lambda a: dist.broadcast(a, AXIS, 2), (4, 3), "float32[4, 3]", "all_reduce"),
        (lambda a: dist.all_to_all(a, AXIS, 0, 1), (4, 3), "float32[1, 12]", "all_to_all"),
        (lambda a: dist.permute(a, AXIS, 3), (4, 3), "float32[4, 3]", "permute"),
        (lambda a: dist.copy_to(a, device("cuda:0")), (4, 3), "cuda:0 float32[4, 3]", "copy_to"),
    ],
    ids=["all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "permute", "copy_to"],
)
def test_every_collective_has_its_result_and_its_rules(function, shape, result, back):
    names, trace = joint(function, Tensor(shape, requires_grad=True))
    (y, (gradient,)) = trace.output
    assert y.type_string == result
    assert gradient.type_string == Tensor(shape).type_string
    assert names[2] == back

    forward = trace_of(lambda a: dist.wait(function(a)), Tensor(shape))
    batched = batch_transform_on_trace(forward, 5, [0])
    verify(batched)
    (made, (dim,)) = batched.output
    assert dim == 0 and list(made.shape) == [5, *y.shape]

    pushed = jvp_transform_on_trace(forward)
    verify(pushed)
    assert [p.type_string for p in pushed.outputs] == [result, result]


def test_the_gradient_of_a_gathering_prints_as_a_program():
    def program(shard, x):
        return prims.matmul(x, dist.wait(dist.all_gather(shard, AXIS)))

    trace = trace_of(program, Tensor((2, 3), requires_grad=True), Tensor((5, 8)))
    assert_text(
        grad_transform_on_trace(trace),
        """
        def program_joint(shard: "float32[2, 3]", x: "float32[5, 8]", dt2: "float32[5, 3]"):
            t0 = dist_prims.all_gather(shard, _data, 0, None)  # float32[8, 3], in flight
            t1 = dist_prims.wait(t0)  # float32[8, 3]
            t2 = prims.matmul(x, t1)  # float32[5, 3]
            t8 = prims.transpose(x, (1, 0))  # float32[8, 5]
            t9 = prims.matmul(t8, dt2)  # float32[8, 3]
            t10 = dist_prims.reduce_scatter(t9, _data, 'sum', 0, None)  # float32[2, 3], in flight
            t11 = dist_prims.wait(t10)  # float32[2, 3]
            return (t2, (t11, None))
        """,
    )


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        (
            lambda a: dist.reduce_scatter(a, AXIS),
            ShapeError,
            r"float32\[6\] along dimension 0: 6 is no multiple of the 4 processes of axis 'data'; pad it to 8",
        ),
        (lambda a: dist.all_gather(a, AXIS, 2), ShapeError, r"along dimension 2 needs one of 0..0"),
        (lambda a: dist.all_reduce(a, AXIS, "product"), ValueError, "knows 'sum', 'mean', 'max', 'min', not 'product'"),
        (lambda a: dist.all_reduce(a, 4), TypeError, r"runs over an Axis \(see axis_of\), and 4 is a int"),
        (lambda a: dist.broadcast(a, AXIS, 4), ValueError, r"broadcast from rank 4, and axis 'data' has ranks 0..3"),
        (lambda a: dist.wait(a), TypeError, "is there already"),
        (
            lambda a: dist.pack(
                (a, prims.convert_element_type(a, DTYPE)),
            ),
            DTypeError,
            "of one dtype and device",
        ),
    ],
)
def test_what_cannot_be_is_refused(program, error, message):
    with pytest.raises(error, match=message):
        trace_of(program, Tensor((6,)))


DTYPE = Tensor((1,), "float64").dtype


def test_an_axis_without_processes_says_how_to_get_one():
    with pytest.raises(RuntimeError, match=r"axis 'data' has no process group.*axis_of"):
        _ = AXIS.rank
