"""Prologue and epilogue of a program that no tracer made, as traces."""

import math
from types import SimpleNamespace

import pytest
import torch

from thunder_guards import (
    ArgumentsGuard,
    BoundsGuard,
    Built,
    Effect,
    EnvironmentGuard,
    External,
    Input,
    Program,
    Source,
    ValueGuard,
    held,
    metadata_of,
    specialise,
)
from thunder_guards.traces import check, epilogue_trace, prologue_trace, source_of, with_epilogue, with_prologue, write
from thunder_ir import BoundSymbol, Context, Symbol, Trace
from thunder_torch.convert import proxy_of

ARGS = Source(None, "root", "args")
X = torch.ones(3)


def program(world, result=None, effects=(), guards=()):
    """Return a program that doubles its argument, for a call with ``X`` and ``world``."""
    x, doubled = proxy_of(X, "x"), proxy_of(X, "doubled")
    made = Program(
        inputs=(Input(x, Source(ARGS, "item", 0), None, metadata_of(X), X),),
        guards=guards,
        environment=EnvironmentGuard(),
        arguments=ArgumentsGuard((X, world), {}),
        computation=Trace("computation", (x,), (), (doubled,)),
        result=doubled if result is None else result(x, doubled),
        effects=(),
    )
    return Program(**{**fields_of(made), "effects": tuple([effect(x, doubled) for effect in effects])})


def fields_of(made):
    return {name: getattr(made, name) for name in made.__dataclass_fields__}


def call_of(made):
    return specialise(made, lambda x: (x * 2,), returns_result=False).call


def text_of(made):
    return str(epilogue_trace(made))


WORLD = Source(ARGS, "item", 1)
LEFT = Source(WORLD, "attribute", "left")


def test_one_object_in_two_places_is_one_and_what_was_there_is_fetched_first():
    shared = []

    def result(x, doubled):
        shared.extend([doubled, External(LEFT)])
        return {"pair": Built(SimpleNamespace, ()), "shared": shared, "before": External(LEFT)}

    made = program(SimpleNamespace(), result, [lambda x, doubled: Effect("attribute", External(WORLD), "left", shared)])
    world = SimpleNamespace(left="before")
    returned = call_of(made)((X, world), {}, None)
    assert returned["shared"] is world.left and returned["before"] == world.left[1] == "before"
    again = with_epilogue(made, epilogue_trace(made))
    assert text_of(again) == text_of(made) and again.effects[0].kind == "attribute"
    world = SimpleNamespace(left="before")
    run = epilogue_trace(made).python_callable()
    assert run((X, world), {}, X, X * 2)["shared"] is world.left


def test_writes_are_left_out_and_added():
    made = program(
        SimpleNamespace(), effects=[lambda x, doubled: Effect("attribute", External(WORLD), "left", doubled)]
    )
    trace, log = epilogue_trace(made), []
    added = write("end", External(held(log, "log")), None, [trace.inputs[-1]])
    kept = [bound for bound in trace.bound_symbols if bound.symbol.name != "write"]
    world = SimpleNamespace()
    call_of(with_epilogue(made, trace.replace(bound_symbols=(*kept, added))))((X, world), {}, None)
    assert not vars(world) and torch.equal(log[0], X * 2)


def test_a_prologue_checks_what_it_prints():
    scale = ValueGuard(Source(WORLD, "attribute", "scale"), 2.0)
    made = program(SimpleNamespace(), guards=(scale,))
    before = prologue_trace(made)
    run = before.python_callable()
    assert run((X, SimpleNamespace(scale=2.0)), {})[0] is X
    for args in ((X, SimpleNamespace(scale=3.0)), (X.double(), SimpleNamespace(scale=2.0)), (X,)):
        with pytest.raises(AssertionError):
            run(args, {})
    assert str(source_of(before, before.output[0])) == "args[0]"
    with pytest.raises(LookupError, match="does not fetch doubled"):
        source_of(before, made.computation.output[0])


def test_generated_code_follows_a_changed_prologue():
    made = program(SimpleNamespace(), guards=(ValueGuard(Source(WORLD, "attribute", "scale"), 2.0),))
    before = prologue_trace(made)
    left = Source(WORLD, "attribute", "left")
    kept = [bound for bound in before.bound_symbols if bound.symbol.name != "check"]
    after = before.replace(bound_symbols=(check(BoundsGuard(left, 0, 9)), *kept))
    run = call_of(with_prologue(made, before, after))
    assert torch.equal(run((X, SimpleNamespace(scale=7.0, left=9)), {}, None), X * 2)
    assert run((X, SimpleNamespace(scale=2.0, left=10)), {}, lambda *call: "missed") == "missed"
    assert run((X, SimpleNamespace(scale=2.0)), {}, lambda *call: "missed") == "missed"


def test_what_the_computation_needs_stays():
    made = program(SimpleNamespace())
    before = prologue_trace(made)
    for index in range(len(before.bound_symbols)):
        less = (*before.bound_symbols[:index], *before.bound_symbols[index + 1 :])
        with pytest.raises(ValueError, match="the computation needs what was removed from the prologue"):
            with_prologue(made, before, before.replace(bound_symbols=less))
    other = BoundSymbol(Symbol("other", "test"), (), {}, None)
    for make, trace in ((lambda t: with_prologue(made, before, t), before), (
        lambda t: with_epilogue(made, t), epilogue_trace(made)
    )):  # fmt: skip
        with pytest.raises(ValueError, match=r"nothing else besides|does none of these"):
            make(trace.replace(bound_symbols=(*trace.bound_symbols, other)))


@pytest.mark.parametrize("bounds, value, holds", [
    ((0, 8), 8, True), ((0, 8), 9, False), ((0,), -1, False), ((-math.inf, 8), -1e9, True), ((0, 8), math.nan, False),
])  # fmt: skip
def test_bounds(bounds, value, holds):
    guard, context = BoundsGuard(Source(ARGS, "item", 0), *bounds), Context()
    condition = eval(f"lambda args: {guard.condition(context)}", context.globals)
    assert condition((value,)) is holds
    assert (guard.failure({"args": (value,)}) is None) is holds
