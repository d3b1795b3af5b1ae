import numpy as np
import pytest
from prims_machine import run

import thunder_prims as prims
from thunder_ir import OpTags, Tensor, devices, dtypes, trace_of
from thunder_testing import assert_text
from thunder_vmap import batching_rule


def test_a_comment_is_a_line_of_the_program():
    def program(x):
        prims.comment("the input")
        return x

    assert_text(
        trace_of(program, Tensor((2,))),
        """
        def program(x: "float32[2]"):
            # the input
            return x
        """,
    )


@pytest.mark.parametrize("text", ["a\nimport os", "a\r    x = 1", "a\u2028x = 1", "a\x0cx = 1", 'quoted """ text', "é"])
def test_a_comment_never_becomes_code(text):
    def program(x):
        prims.comment(text)
        return x

    trace = trace_of(program, Tensor((2,)))
    lines = str(trace).splitlines()
    assert len(lines) == 3 and lines[1].startswith("    # ") and lines[1].isascii()
    assert trace.python_callable()(5) == 5


def test_a_comment_is_a_string():
    with pytest.raises(TypeError, match="comment needs a string, got int"):
        trace_of(lambda x: prims.comment(3), Tensor((2,)))


def test_printing_is_recorded_with_its_values():
    def program(x):
        prims.print("x is", x)
        return x

    assert_text(
        trace_of(program, Tensor((2,))),
        """
        def program(x: "float32[2]"):
            prims.print('x is', x)
            return x
        """,
    )


def test_printing_prints(capsys):
    run(lambda x: prims.print("x is", x), np.ones(2))
    assert capsys.readouterr().out == "x is [1. 1.]\n"


def test_a_batch_prints_once(capsys):
    run(lambda x: batching_rule[prims.print](2, (x,), (0,))[0], np.ones(2))
    assert capsys.readouterr().out == "[1. 1.]\n"


@pytest.mark.parametrize("symbol", [prims.comment, prims.print, prims.assert_tensor_metadata], ids=lambda s: s.name)
def test_what_has_an_effect_stays(symbol):
    assert OpTags.DONT_DCE in symbol.tags


def test_metadata_are_asserted_for_single_calls_and_batches():
    expected = (2, 3), dtypes.float64, devices.cpu
    run(lambda x: prims.assert_tensor_metadata(x, *expected), np.ones((2, 3)))
    rule = batching_rule[prims.assert_tensor_metadata]
    run(lambda x: rule(4, (x, *expected), (1, None, None, None))[0], np.ones((2, 4, 3)))
    with pytest.raises(AssertionError):
        run(lambda x: prims.assert_tensor_metadata(x, *expected), np.ones((3, 2)))
