"""A trace that breaks a law is refused, with the line."""

import ir_toys as toys
import pytest

from thunder_ir import (
    BoundSymbol,
    Symbol,
    Tensor,
    TensorProxy,
    VerificationError,
    dtypes,
    number_proxy,
    trace_of,
    verify,
)

X = Tensor((2, 3))
GOOD = trace_of(lambda x: toys.add(toys.exp(x), x), X)


def changed(*bound_symbols, **fields):
    return GOOD.replace(bound_symbols=bound_symbols, **fields)


def call(symbol, *args, name="t9", like=GOOD.inputs[0]):
    return BoundSymbol(symbol, args, {}, like.renamed(name))


def test_a_good_trace_passes_through():
    assert verify(GOOD) is GOOD


FIRST, SECOND = GOOD.bound_symbols
(INPUT,) = GOOD.inputs
SHORT = TensorProxy((2,), name="x")

BROKEN = {
    "read before defined": (
        changed(SECOND, FIRST),
        r'line 1, "t1 = toys.add\(t0, x\)": t0 is read before it is defined',
    ),
    "defined twice": (changed(FIRST, FIRST), r'line 2, "t0 = toys.exp\(x\)": t0 is defined again, first in line 1'),
    "input defined again": (changed(call(toys.exp, INPUT, name="x")), "x is defined again, first in the inputs"),
    "two inputs of one name": (GOOD.replace(inputs=(INPUT, INPUT)), "the inputs: x is defined again"),
    "output not defined": (changed(FIRST), "the output: t1 is read before it is defined"),
    "no identifier": (changed(call(toys.exp, INPUT, name="t 0"), output=None), "'t 0' cannot be a name"),
    "a keyword": (changed(call(toys.exp, INPUT, name="for"), output=None), "'for' cannot be a name"),
    "read otherwise than defined": (
        changed(call(toys.exp, SHORT), output=None),
        r"x was defined as float32\[2, 3\], read as float32\[2\]",
    ),
    "wrong dtype": (
        changed(BoundSymbol(toys.exp, (INPUT,), {}, TensorProxy((2, 3), dtypes.int8, name="t")), output=None),
        r"t is said to be int8\[2, 3\], toys.exp returns float32\[2, 3\]",
    ),
    "too many outputs": (
        changed(BoundSymbol(toys.exp, (INPUT,), {}, (INPUT.renamed("a"), INPUT.renamed("b"))), output=None),
        "has 2 outputs",
    ),
    "refused arguments": (changed(call(toys.exp), output=None), "toys.exp refuses its arguments"),
    "a write to no tensor": (
        changed(call(toys.write, 3), output=None),
        "writes to its first argument, which is no tensor",
    ),
    "read after freed": (
        changed(BoundSymbol(toys.free, (INPUT,), {}, None), FIRST, output=None),
        "x is read after it was freed",
    ),
    "a view of nothing": (
        changed(
            BoundSymbol(toys.view, (INPUT,), {}, TensorProxy((2, 3), base=TensorProxy((2, 3), name="gone"), name="t")),
            output=None,
        ),
        "t is a view of gone, which is not defined",
    ),
    "an unknown dimension": (
        changed(
            BoundSymbol(Symbol("f", "s"), (INPUT,), {}, TensorProxy((number_proxy(3, "n"),), name="t")), output=None
        ),
        "t has a dimension n that is not defined",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_refuses(name):
    trace, message = BROKEN[name]
    with pytest.raises(VerificationError, match=message):
        verify(trace)


def test_metadata_of_composites_are_checked_through_their_decomposition():
    trace = trace_of(lambda x: toys.square_of_exp(x), X)
    (bound,) = trace.bound_symbols
    wrong = bound.replace(output=TensorProxy((1,), name="t0"))
    verify(trace)
    with pytest.raises(VerificationError, match="square_of_exp returns"):
        verify(trace.replace(bound_symbols=(wrong,), output=wrong.output))


def test_metadata_are_checked_only_if_asked():
    trace, _ = BROKEN["wrong dtype"]
    assert verify(trace, metadata=False) is trace


def test_a_call_too_broken_to_print_is_still_reported():
    with pytest.raises(VerificationError, match="line 1"):
        verify(changed(call(toys.exp, INPUT.renamed("y")).replace(kwargs={1: 2}), output=None))
