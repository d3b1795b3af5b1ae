"""Prologue and epilogue as traces: what a user reads of them, and what transforms change."""

import pytest
import torch

from thunder_executors import transform_for_execution
from thunder_frontend import Transform, cache_misses, jit, last_epilogue_traces, last_prologue_traces, last_traces
from thunder_guards import BoundsGuard, External, Source, TensorGuard, ValueGuard, held
from thunder_guards.traces import CHECK, check, source_of, write

SETTINGS = {"scale": 2.0}


class Counts(torch.nn.Module):
    """Writes a buffer, an attribute and a list; returns what it was given among others."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))
        self.register_buffer("total", torch.zeros(3))
        self.last = None

    def forward(self, x, names):
        self.total += x.detach().sum(0)
        pair = [x * self.weight, names]
        self.last = pair
        return {"pair": pair, "scaled": x * SETTINGS["scale"]}


def scaled(x):
    return x * SETTINGS["scale"]


class Changes(Transform):
    """Changes prologue and epilogue by functions."""

    def __init__(self, of_prologue=lambda trace: trace, of_epilogue=lambda trace: trace):
        self.of_prologue, self.of_epilogue = of_prologue, of_epilogue

    def transform_traces_pre_prologue(self, prologue_trace, computation_trace, epilogue_trace, **kwargs):
        return self.of_prologue(prologue_trace), computation_trace, self.of_epilogue(epilogue_trace)


def with_more(trace, *bounds):
    return trace.replace(bound_symbols=(*trace.bound_symbols, *bounds))


def without(trace, is_left_out):
    return trace.replace(bound_symbols=tuple([b for b in trace.bound_symbols if not is_left_out(b)]))


def test_a_prologue_reads_as_the_checks_of_a_call():
    compiled = jit(lambda x, k: x * k * SETTINGS["scale"])
    compiled(torch.ones(3), 2)
    text = str(last_prologue_traces(compiled)[0])
    lines = [line.strip() for line in text.splitlines()]
    assert lines[0] == 'def prologue(args: "tuple", kwargs: "dict"):'
    assert "assert len(args) == 2" in lines and "assert args[1].__class__ is int and args[1] == 2" in lines
    assert any([line.startswith("assert ") and line.endswith("['SETTINGS']") for line in lines])
    assert any([line.endswith("['SETTINGS']['scale'] = 2.0") for line in lines]), text
    assert "a0 = args[0]  # float32[3]" in lines and lines[-1] == "return (a0,)"


def test_what_is_printed_is_what_runs():
    model, names, x = Counts(), ["a"], torch.randn(2, 3)
    compiled = jit(model)
    compiled(x, names)
    prologue, computation = last_prologue_traces(compiled)[0].python_callable(), last_traces(compiled)[0]
    epilogue = last_epilogue_traces(compiled)[0]
    expected_total = model.total + x.sum(0)
    given = prologue((x, names), {})
    inputs = dict(zip([p.name for p in last_prologue_traces(compiled)[0].outputs], given, strict=True))
    with torch.no_grad():
        made = {**inputs, **values_of(computation, inputs)}
    result = epilogue.python_callable()((x, names), {}, *[made[p.name] for p in epilogue.inputs[2:]])
    torch.testing.assert_close(model.total, expected_total)
    assert model.last is result["pair"] and result["pair"][1] is names
    torch.testing.assert_close(result["scaled"], x * 2)
    SETTINGS["scale"] = 3.0
    try:
        with pytest.raises(AssertionError):
            prologue((x, names), {})
    finally:
        SETTINGS["scale"] = 2.0
    with pytest.raises(AssertionError):
        prologue((x.double(), names), {})


def values_of(computation, inputs):
    """Run a computation as it was acquired, by PyTorch."""
    run = transform_for_execution(computation, ()).python_callable()
    outputs = run(*[inputs[p.name] for p in computation.inputs])
    return dict(zip([p.name for p in computation.output], outputs, strict=True))


def rows_of(trace):
    return Source(Source(source_of(trace, trace.output[0]), "attribute", "shape"), "item", 0)


def test_a_transform_adds_a_bound_on_a_size():
    def at_most(most):
        return Changes(lambda trace: with_more(trace, check(BoundsGuard(rows_of(trace), 1, most))))

    plain, bounded = [jit(scaled, transforms=transforms) for transforms in ((), (at_most(8),))]
    for rows in (2, 5, 8):
        torch.testing.assert_close(bounded(torch.ones(rows, 3)), plain(torch.ones(rows, 3)))
    assert cache_misses(bounded) == cache_misses(plain) == 2  # one for the first size, one that leaves it open
    assert plain(torch.ones(9, 3)).shape == (9, 3) and cache_misses(plain) == 2
    with pytest.raises(RuntimeError, match=r"args\[0\].shape\[0\] is 9, not in \[1, 8\]"):
        bounded(torch.ones(9, 3))
    assert "1 <= args[0].shape[0] <= 8" in str(last_prologue_traces(bounded)[-1])
    torch.testing.assert_close(bounded(torch.ones(4, 3)), torch.full((4, 3), 2.0))


def test_sizes_may_have_programs_by_ranges():
    def in_range(trace):
        least, most = (1, 8) if rows_of(trace).evaluate(NOW) <= 8 else (9, 64)
        return with_more(trace, check(BoundsGuard(rows_of(trace), least, most)))

    compiled = jit(scaled, transforms=[Changes(in_range)])
    for rows in (2, 20, 7, 30, 8, 9):
        x = torch.ones(rows, 3)
        NOW["args"] = (x,)
        torch.testing.assert_close(compiled(x), x * 2)
    assert cache_misses(compiled) == 3  # one for the first size, one for each range


NOW = {"args": (), "kwargs": {}}


def test_a_check_that_a_transform_leaves_out_is_not_made():
    def of_scale(bound):
        return bound.symbol is CHECK and isinstance(bound.args[0], ValueGuard) and bound.args[0].value == 2.0

    compiled = jit(scaled, transforms=[Changes(lambda trace: without(trace, of_scale))])
    x = torch.ones(3)
    SETTINGS["scale"] = 2.0
    compiled(x)
    SETTINGS["scale"] = 3.0
    try:
        torch.testing.assert_close(compiled(x), x * 2)  # as the user answers for
        assert cache_misses(compiled) == 1 and "'scale'" not in str(last_prologue_traces(compiled)[0])
        torch.testing.assert_close(jit(scaled)(x), x * 3)
    finally:
        SETTINGS["scale"] = 2.0


def test_each_transform_sees_what_the_ones_before_made():
    seen = []
    bound = Changes(lambda trace: with_more(trace, check(BoundsGuard(rows_of(trace), 1, 8))))
    compiled = jit(scaled, transforms=[bound, Changes(lambda trace: seen.append(str(trace)) or trace)])
    compiled(torch.ones(2, 3))
    assert "assert 1 <= args[0].shape[0] <= 8" in seen[0]


def test_writes_may_be_left_out_and_added():
    def only_total(trace):
        return without(trace, lambda bound: bound.args[0] == "attribute")

    def also_seen(trace):
        value = trace.inputs[-1]
        return with_more(trace, write("attribute", External(held(model, "model")), "seen", value))

    model, names, x = Counts(), [], torch.ones(2, 3)
    made = jit(model, transforms=[Changes(of_epilogue=only_total), Changes(of_epilogue=also_seen)])
    with torch.no_grad():
        for calls in (1, 2):
            result = made(x, names)
            assert model.last is None and torch.equal(model.total, torch.full((3,), 2.0 * calls))
            assert isinstance(model.seen, torch.Tensor) and result["pair"][1] is names
    assert "'seen'" in str(last_epilogue_traces(made)[0])


def test_a_transform_may_return_less():
    def scaled_alone(trace):
        return trace.replace(output=trace.output["scaled"])

    model, x = Counts(), torch.ones(2, 3)
    compiled = jit(model, transforms=[Changes(of_epilogue=scaled_alone)])
    for _ in range(2):
        torch.testing.assert_close(compiled(x, []), x * 2)


def no_tensors(bound):
    return isinstance(bound.args[0], TensorGuard)


@pytest.mark.parametrize("changes, why", [
    (Changes(lambda trace: without(trace, no_tensors)), "the computation needs what was removed from the prologue"),
    (Changes(lambda trace: with_more(trace, write("attribute", None, "a", 1))), "check more guards"),
    (Changes(lambda trace: None), "the prologue is a trace, and a transform made NoneType of it"),
    (Changes(of_epilogue=lambda trace: 1), "the epilogue is a trace, and a transform made int of it"),
    (Changes(of_epilogue=lambda trace: with_more(trace, check(BoundsGuard(held(1, "one"))))), "does none of these"),
    (
        Changes(of_epilogue=lambda trace: trace.replace(output=trace.inputs[0].renamed("t77"))),
        "the epilogue reads t77, which the computation neither gets nor returns",
    ),
])  # fmt: skip
def test_what_no_program_can_be_made_of_is_refused(changes, why):
    with pytest.raises(ValueError, match=why):
        jit(scaled, transforms=[changes])(torch.ones(3))
