"""What a kernel keeps between sweeps over a row."""

import pytest

import thunder_prims as prims
from thunder_ir import Tensor, trace_of
from thunder_loops import Compute, lower, plan, row_major_strides

ROWS, LENGTH = 256, 1024


def planned(program, *tensors, strides=None):
    """Return the plan of a program that is one nest, on tensors that lie row by row."""
    nests = lower(trace_of(program, *tensors))
    (nest,) = nests.nests
    known = {b.name: row_major_strides(b.shape) for b in nests.buffers.values()}
    made, launch = plan(nest, {}, {**known, **(strides or {})})
    return made, launch


def rows(a):
    return prims.broadcast_in_dim(a, (ROWS, LENGTH), (0,))


def softmax(x):
    shifted = prims.exp(prims.sub(x, rows(prims.amax(x, (1,)))))
    return prims.div(shifted, rows(prims.sum(shifted, (1,))))


def operation_held(made, hold):
    (found,) = [s for s in made.statements if getattr(s, "name", None) == hold.value]
    assert isinstance(found, Compute)
    return found.operation


def test_a_function_that_two_sweeps_read_waits_in_the_output():
    made, launch = planned(softmax, Tensor((ROWS, LENGTH)))
    (hold,) = made.held

    assert operation_held(made, hold) == "exp"
    assert hold.stage == 1 and made.stages[hold.store] == 2
    assert any(["waits for the next one" in reason for reason in launch.reasons])


def test_with_bfloat16_what_is_rounded_waits_and_then_makes_room_for_what_comes_of_it():
    def program(x):
        return softmax(prims.add(prims.mul(x, 0.3), 0.1))

    made, _ = planned(program, Tensor((ROWS, LENGTH), "bfloat16"))

    assert [h.stage for h in made.held] == [0, 1]
    assert {h.store for h in made.held} == {len(made.statements) - 1}
    assert len({h.value for h in made.held}) == 2


def test_what_is_quick_to_compute_is_computed_again():
    def program(x):
        shifted = prims.sub(x, rows(prims.amax(x, (1,))))
        return prims.div(shifted, rows(prims.sum(shifted, (1,))))

    assert planned(program, Tensor((ROWS, LENGTH)))[0].held == ()


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_an_output_of_another_dtype_has_no_room(dtype):
    def program(x):
        return prims.convert_element_type(softmax(x), Tensor((), dtype).dtype)

    assert planned(program, Tensor((ROWS, LENGTH)))[0].held == ()


def test_an_output_whose_elements_are_not_neighbours_has_no_room():
    made, _ = planned(softmax, Tensor((ROWS, LENGTH)), strides={"out0": (2 * LENGTH, 2)})

    assert made.by_rows and made.held == ()


def test_a_value_that_is_still_read_does_not_make_room():
    def program(x):
        scaled = prims.exp(x)  # read by the second sweep and by the last one
        shifted = prims.exp(prims.sub(scaled, rows(prims.amax(scaled, (1,)))))
        return prims.add(scaled, prims.div(shifted, rows(prims.sum(shifted, (1,)))))

    (hold,) = planned(program, Tensor((ROWS, LENGTH)))[0].held

    assert hold.stage == 0
