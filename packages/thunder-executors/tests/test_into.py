"""Values are computed right into inputs."""

from thunder_executors import OperatorExecutor, compute_into_inputs, transform_for_execution
from thunder_ir import BoundSymbol, OpTags, Symbol, Tensor, current_builder, dtypes, trace_of

add, scale, row = (Symbol(n, "prims", meta=lambda a, *rest: a.like()) for n in ("add", "scale", "row"))
both = Symbol("both", "prims", meta=lambda a, b: (a.like(), b.like()))


class Writer(OperatorExecutor):
    """Adds and scales, anywhere; ``row`` may return a view."""

    def into(self, bound, made, target):
        if bound.symbol.name == "both":
            name = f"out{[p.name for p in bound.output].index(made.name)}"
            return bound.replace(kwargs={**bound.kwargs, name: target})
        return bound.replace(kwargs={"out": target}) if bound.symbol.name in ("add", "scale") else None

    def checks_of(self, bound):
        return (
            [BoundSymbol(check, bound.args[1:], {}, None)] if bound.symbol.name == "scale" and bound.args[1:] else None
        )

    def makes_new(self, bound):
        return bound.symbol.name in ("add", "scale", "both")


executor = Writer("writer", checks=False)
check = Symbol("check", "writer", meta=lambda *args: None, tags=frozenset({OpTags.DONT_DCE}), executor=executor)
index = Symbol("index", "prims", meta=lambda a, *rest: a.like())
for symbol in (add, scale, row, both, index):

    @executor.implements(symbol, path=f"writer.{symbol.name}")
    def run(*args, **kwargs):
        raise AssertionError("only looked at")


def written(program, count=1):
    trace = transform_for_execution(trace_of(program, Tensor((2,)), Tensor((2,))), [executor])
    targets = {p.name: t for p, t in zip(trace.outputs[:count], trace.inputs, strict=False)}
    made = compute_into_inputs(trace, targets=targets)
    return [
        (b.symbol.name, b.kwargs["out"].name if "out" in b.kwargs else None) for b in made.bound_symbols if b.outputs
    ]


def test_step_by_step():
    assert written(lambda x, y: scale(add(scale(x, 2), y), 3)) == [("scale", "x"), ("add", "x"), ("scale", "x")]


def test_not_before_the_last_read():
    def program(x, y):
        first = scale(x, 2)
        other = add(x, y)
        return add(first, other), other

    assert written(program) == [("add", None), ("scale", "x"), ("add", "x")]


def test_not_what_is_read_twice_on_the_way():
    def program(x, y):
        step = scale(x, 2)
        return add(add(step, step), step), y

    assert written(program) == [("scale", None), ("add", "x"), ("add", "x")]


def test_not_where_a_view_is_returned_or_read_meanwhile():
    assert written(lambda x, y: (scale(x, 2), row(x))) == [("scale", None), ("row", None)]
    assert written(lambda x, y: add(scale(x, 2), row(x))) == [("scale", None), ("row", None), ("add", None)]

    def of_the_value(x, y):
        value = scale(x, 2)
        return value, row(value)

    assert written(of_the_value) == [("scale", None), ("row", None)]


def test_two_inputs():
    assert written(lambda x, y: (scale(x, 2), scale(y, 3)), 2) == [("scale", "x"), ("scale", "y")]
    assert written(lambda x, y: (add(x, y), add(y, x)), 2) == [("add", None), ("add", "y")]


def test_not_before_what_may_fail():
    def program(x, y):
        first = scale(x, 2)
        with current_builder().tagged(OpTags.BEFORE_WRITES):
            other = scale(y, 3)
        return add(first, y), other

    assert written(program) == [("scale", None), ("scale", None), ("add", "x")]


def test_several_results_of_one_call():
    trace = transform_for_execution(trace_of(lambda x, y: both(x, y), Tensor((2,)), Tensor((2,))), [executor])
    targets = {p.name: t for p, t in zip(trace.outputs, trace.inputs, strict=True)}
    (call,) = [b for b in compute_into_inputs(trace, targets=targets).bound_symbols if b.outputs]

    assert {name: value.name for name, value in call.kwargs.items()} == {"out0": "x", "out1": "y"}


def order(dtype, arithmetic=index):
    """Return the calls of a program that may raise when it writes to its input, for a place of this dtype."""

    def program(x, place):
        first = add(x, 1)
        found = arithmetic(place)
        with current_builder().tagged(OpTags.BEFORE_WRITES):
            return scale(first, found)

    trace = transform_for_execution(trace_of(program, Tensor((2,)), Tensor((), dtype)), [executor])
    made = compute_into_inputs(trace, targets={trace.outputs[0].name: trace.inputs[0]})
    return [(b.symbol.name, "out" in b.kwargs) for b in made.bound_symbols if b.symbol.name != "del"]


def test_what_may_fail_is_checked_before_all_where_integers_tell():
    assert order(dtypes.int64) == [("index", False), ("check", False), ("add", True), ("scale", True)]
    assert order(dtypes.float32) == [("add", False), ("index", False), ("scale", False)]
