"""Programs as text: what is printed is the program, and nothing that a user writes becomes code in it."""

import dataclasses
import enum
import gc
import linecache
import math
import traceback
from collections import OrderedDict, defaultdict

import ir_toys as toys
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from thunder_ir import (
    AnyProxy,
    BoundSymbol,
    CollectionProxy,
    Context,
    DuplicateRuleError,
    Location,
    Symbol,
    Tensor,
    TraceFormatError,
    device,
    dtypes,
    literal,
    record,
    register_literal,
    substitute,
    trace_of,
)
from thunder_ir.keys import key_of


class Colour(enum.Enum):
    RED = "r"
    ODD = "'); raise SystemExit('"


class Choice(enum.IntFlag):
    A = 1
    B = 2


@dataclasses.dataclass
class Point:
    x: object
    y: object = 0


def evaluated(value, names=None):
    context = Context(names)
    return eval(literal(value, context), dict(context.globals))


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return math.copysign(1, a) == math.copysign(1, b) and (a == b or (a != a and b != b))
    if isinstance(a, complex):
        return same(a.real, b.real) and same(a.imag, b.imag)
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return all(same(x, y) for x, y in zip(a.items(), b.items(), strict=True))
    if isinstance(a, slice):
        return same((a.start, a.stop, a.step), (b.start, b.stop, b.step))
    if isinstance(a, Point):
        return same((a.x, a.y), (b.x, b.y))
    return a == b


atoms = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), st.binary(),
    st.sampled_from([..., Colour.RED, Colour.ODD, Choice.A, Choice.A | Choice.B]),
    st.sampled_from([dtypes.float32, dtypes.bool8, dtypes.float8_e4m3fn, device("cuda:1"), device("cpu")]),
    st.slices(7), st.frozensets(st.integers()), st.sets(st.text()),
)  # fmt: skip
values = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.lists(inner), st.tuples(inner), st.tuples(inner, inner), st.dictionaries(st.text(), inner),
        st.builds(Point, inner, inner), st.builds(slice, inner, inner),
    ),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.parametrize("value", [math.nan, -math.nan, complex(-math.nan, -0.0), -math.inf])
def test_numbers_that_have_no_literal_keep_their_sign(value):
    assert same(evaluated(value), value)
    assert key_of(value) == key_of(evaluated(value)) != key_of(-value)


@given(values)
def test_every_literal_evaluates_to_the_same_value(value):
    assert same(evaluated(value), value)


@pytest.mark.parametrize("exponent", [3999, 4000, 4001, 5000])
def test_integers_may_be_longer_than_python_reads_in_decimal(exponent):
    for number in (10**exponent, -(10**exponent) - 1):
        assert evaluated(number) == number, "the value differs"


@given(values)
def test_no_value_breaks_out_of_its_line(value):
    trace = trace_of(lambda x: toys.describe(x, value, named=value), Tensor((2,)))
    assert len(str(trace).splitlines()) == 3
    compile(trace.source().text, "generated", "exec")


@given(values)
def test_a_printed_program_calls_with_the_same_arguments(value):
    seen = []
    trace = trace_of(lambda x: toys.describe(x, value, named=value), Tensor((2,)))
    trace.python_callable(toys=type("stand_in", (), {"describe": lambda *a, **k: seen.append((a, k))}))(0)
    ((args, kwargs),) = seen
    assert same(args, (0, value)) and same(kwargs, {"named": value})


@given(st.text())
@example("a")
@example("º")  # Python reads it as another spelling of "o"
@example("for")
def test_any_keyword_is_passed_on(name):
    trace = trace_of(lambda x: toys.describe(x, **{name: 1}), Tensor((2,)))
    run = trace.python_callable(toys=type("stand_in", (), {"describe": lambda *a, **k: k}))
    assert run(0) == {name: 1}


@given(st.text())
def test_any_program_and_argument_name_prints_as_an_identifier(name):
    trace = record(lambda x: x, [trace_of(lambda x: x, Tensor(())).inputs[0]], name=name)
    assert trace.python_callable()(3) == 3
    context = Context()
    assert context.object(object(), name).isidentifier()


@pytest.mark.parametrize(
    "name", ["float", "complex", "slice", "set", "frozenset", "dtypes", "devices", "toys", "_Colour"]
)
def test_values_may_be_called_like_what_the_program_uses(name):
    held = (math.inf, 1j, slice(1), set(), frozenset([1]), dtypes.int8, device("cpu"), Colour.RED)
    proxy = trace_of(lambda x: x, Tensor((2,))).inputs[0].renamed(name)
    trace = record(lambda x: toys.describe(toys.exp(x), *held), [proxy])
    source = trace.source()
    seen = []

    class StandIn:
        exp = staticmethod(lambda x: x)
        describe = staticmethod(lambda *args: seen.append(args))

    alias = next(n for n, module in source.context.globals.items() if module is toys)
    source.compile({alias: StandIn})("the value")
    assert same(seen[0], ("the value", *held))


def test_names_of_classes_stay_in_comments_and_annotations():
    hostile = type('x"\n    import os  #', (), {})
    trace = trace_of(lambda c, d: (c, d), CollectionProxy(hostile()), AnyProxy())
    assert trace.python_callable()(1, 2) == (1, 2)
    assert len(str(trace).splitlines()) == 2


def test_locations_cannot_end_their_comment():
    (x,) = trace_of(lambda x: x, Tensor((2,))).inputs
    bound = BoundSymbol(toys.exp, (x,), {}, x.renamed("t0"), Location("a\nimport os\n.py", 1, "f"))
    text = trace_of(lambda x: x, Tensor((2,))).replace(bound_symbols=(bound,)).python()
    assert "\nimport os" not in text.replace("import ir_toys", "")


def test_user_source_lines_stand_above_what_came_from_them():
    def program(x):
        return toys.exp(x)

    trace = trace_of(program, Tensor((2,)))
    line = program.__code__.co_firstlineno + 1
    located = tuple(b.replace(location=Location(__file__, line, "program")) for b in trace.bound_symbols)
    text = trace.replace(bound_symbols=located).python(imports=False)
    assert f"# {__file__}:{line}:  return toys.exp(x)\n    t0 = toys.exp(x)" in text


def test_decompositions_are_comments_and_imports_are_lines():
    trace = trace_of(lambda x: toys.nested(x), Tensor((2,)))
    assert trace.python().splitlines() == [
        "import ir_toys as toys",
        "",
        'def program(x: "float32[2]"):',
        "    (t1, t0) = toys.nested(x)  # float32[2], float32[2]",
        "    #   t2 = toys.tanh(x)  # float32[2]",
        "    #   t3 = toys.square_of_exp(t2)  # float32[2]",
        "    #     t0 = toys.exp(t2)  # float32[2]",
        "    #     t1 = toys.mul(t0, t0)  # float32[2]",
        "    return (t1, t0)",
    ]


def test_tracebacks_show_the_lines_of_the_generated_program():
    run = trace_of(lambda x: toys.exp(x), Tensor((2,))).python_callable(toys=None)
    with pytest.raises(AttributeError) as caught:
        run(1)
    assert "t0 = toys.exp(x)" in "".join(traceback.format_exception(caught.value))


def test_objects_without_a_literal_are_referred_to_by_name():
    thing = object()
    trace = trace_of(lambda x: toys.describe(x, thing, thing), Tensor((2,)))
    assert "toys.describe(x, _object, _object)" in str(trace)
    assert "# _object is builtins.object" in trace.python()


def test_a_class_learns_to_print_itself_once():
    class Mine:
        pass

    register_literal(Mine, lambda value, context: f"{context.imported('math', 'import math', math)}.pi")
    assert literal(Mine(), Context()) == "math.pi"
    with pytest.raises(DuplicateRuleError, match="Mine"):
        register_literal(Mine, lambda value, context: "None")


def test_executing_the_printed_program_records_the_same_program():
    def program(x, y):
        a, b = toys.split(toys.add(x, y))
        return {"sum": toys.mul(a, 2.5), "rest": [b, x]}

    trace = trace_of(program, Tensor((2, 3)), Tensor((2, 3)))
    again = record(trace.python_callable(), trace.inputs)
    assert str(again) == str(trace)


def test_symbols_that_only_the_program_holds_print_by_namespace_and_name():
    symbol = Symbol("weird name", "space", meta=lambda a: a.like())
    assert "_space_weird_name(x)" in str(trace_of(lambda x: symbol(x), Tensor((2,))))


@dataclasses.dataclass
class Computed:
    content: object
    twice: object = dataclasses.field(init=False)

    def __post_init__(self):
        self.twice = (self.content, self.content)


class Tagged(dict):
    def __init__(self, tag, *args):
        super().__init__(*args)
        self.tag = tag


CONTAINERS = [
    lambda x, y: OrderedDict(b=x, a=y),
    lambda x, y: defaultdict(list, {"k": [x], "l": y}),
    lambda x, y: Point(x, {"y": y}),
    lambda x, y: Computed(x),
    lambda x, y: ((), [x], {1: y, "1": x}),
    lambda x, y: slice(x, y),
]


@pytest.mark.parametrize("number", range(len(CONTAINERS)))
def test_programs_return_containers_of_what_they_computed(number):
    build = CONTAINERS[number]
    trace = trace_of(build, Tensor(()), Tensor(()))
    assert trace.python_callable()(1, 2) == build(1, 2)
    assert substitute(trace.output, {"x": 3, "y": 4}) == build(3, 4)


def test_a_container_that_cannot_be_written_is_refused_rather_than_returned_as_it_was():
    trace = trace_of(lambda x: Tagged("t", {"k": x}), Tensor(()))
    with pytest.raises(TraceFormatError, match="cannot write a Tagged that holds its values"):
        trace.python()
    assert substitute(trace.output, {"x": 3}) == {"k": 3}
    assert substitute(trace.output, {"x": 3}).tag == "t"


def test_the_lines_of_a_generated_program_go_with_it():
    run = trace_of(lambda x: x, Tensor(())).python_callable()
    filename = run.__code__.co_filename
    assert filename in linecache.cache
    del run
    gc.collect()
    assert filename not in linecache.cache
