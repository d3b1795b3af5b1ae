"""Experts that processes share: on two processes, and the exchange of rows with its rules."""

import pytest

from thunder_autograd import grad_transform_on_trace
from thunder_distributed import Axis, prims
from thunder_distributed.rows import exchange_rows
from thunder_ir import DTypeError, ShapeError, Tensor, trace_of, verify
from thunder_testing import assert_text

SCENARIOS = "expert_scenarios.py"
AXIS = Axis("expert", 4)
COUNTS = Tensor((4,), "int64")


def test_on_two_processes(scenario, check):
    check(scenario)


def test_gradients_of_rows_go_back_to_where_the_rows_were():
    def program(rows, sends, receives):
        return prims.wait(exchange_rows(rows, sends, receives, AXIS, 24))

    trace = grad_transform_on_trace(trace_of(program, Tensor((6, 3), requires_grad=True), COUNTS, COUNTS))
    verify(trace)
    assert_text(
        trace,
        """
        def program_joint(rows: "float32[6, 3]", sends: "int64[4]", receives: "int64[4]", dt1: "float32[24, 3]"):
            t0 = dist_prims.exchange_rows(rows, sends, receives, _expert, 24)  # float32[24, 3], in flight
            t1 = dist_prims.wait(t0)  # float32[24, 3]
            t4 = dist_prims.exchange_rows(dt1, receives, sends, _expert, 6)  # float32[6, 3], in flight
            t5 = dist_prims.wait(t4)  # float32[6, 3]
            return (t1, (t5, None, None))
        """,
    )


@pytest.mark.parametrize(
    ("counts", "error"), [(Tensor((4,)), DTypeError), (Tensor((3,), "int64"), ShapeError)], ids=["floats", "three"]
)
def test_counts_are_one_integer_for_each_process(counts, error):
    with pytest.raises(error, match="takes an integer for each of the 4 processes of axis 'expert'"):
        trace_of(lambda rows, sends: exchange_rows(rows, sends, sends, AXIS, 8), Tensor((2, 3)), counts)
