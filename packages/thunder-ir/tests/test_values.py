"""What programs are made of: dtypes, devices, proxies, names, languages, rules, pytrees."""

import dataclasses
import itertools
import pickle
import subprocess
import sys
import time
from collections import OrderedDict, namedtuple

import ir_toys as toys
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thunder_ir import (
    BoundSymbol,
    Builder,
    DeviceError,
    DTypeError,
    DuplicateRuleError,
    Language,
    MissingRuleError,
    Names,
    OutsideTraceError,
    RuleTable,
    Symbol,
    Tensor,
    TensorProxy,
    Trace,
    device,
    dtypes,
    flat_proxies,
    map_values,
    number_proxy,
    recording,
    substitute,
    trace_of,
    tree_map,
    verify,
)
from thunder_ir.trees import flatten, unflatten

of_numpy = [d for d in dtypes.STRONG if d.name not in ("bfloat16", "complex32") and "8_" not in d.name]


@pytest.mark.parametrize("a", dtypes.STRONG, ids=str)
@pytest.mark.parametrize("b", dtypes.STRONG, ids=str)
def test_joining_dtypes_is_symmetric(a, b):
    def joined(a, b):
        try:
            return dtypes.join(a, b)
        except DTypeError:
            return None

    assert joined(a, b) is joined(b, a)
    assert dtypes.join(a, a) is a


def test_joining_dtypes_is_associative_where_it_is_defined():
    some = [dtypes.bool8, dtypes.int8, dtypes.int64, dtypes.bfloat16, dtypes.float32, dtypes.float64, dtypes.complex64]
    for a, b, c in itertools.product(some, repeat=3):
        assert dtypes.join(dtypes.join(a, b), c) is dtypes.join(a, dtypes.join(b, c))


@pytest.mark.parametrize("of", of_numpy, ids=str)
def test_sizes_and_limits_are_numpys(of):
    theirs = np.dtype("bool" if of.is_bool else of.name)
    assert theirs.itemsize == of.bytes
    if of.is_integer:
        assert (dtypes.smallest(of), dtypes.largest(of)) == (np.iinfo(theirs).min, np.iinfo(theirs).max)
    elif of.is_floating:
        assert dtypes.largest(of) == np.finfo(theirs).max == -dtypes.smallest(of)
    else:
        with pytest.raises(DTypeError):
            dtypes.largest(of)


def test_weak_dtypes_yield_to_strong_ones_of_their_kind():
    assert dtypes.join(dtypes.weak_int, dtypes.int8) is dtypes.int8
    assert dtypes.join(dtypes.weak_float, dtypes.int8).kind is dtypes.Kind.FLOAT


def test_there_is_one_object_per_dtype_even_after_pickling():
    assert all(pickle.loads(pickle.dumps(d)) is d for d in dtypes.STRONG + dtypes.WEAK)
    with pytest.raises(DTypeError, match="no dtype is named 'float31'"):
        dtypes.dtype("float31")
    with pytest.raises(DTypeError, match="no complex dtype has parts of float8_e5m2"):
        dtypes.complex_of(dtypes.float8_e5m2)


@pytest.mark.parametrize("text", ["cpu", "cuda:0", "meta", "mps", "xpu:2"])
def test_a_device_reads_back_from_its_text(text):
    assert device(str(device(text))) == device(text)


@pytest.mark.parametrize("text", ["gpu", "cuda:", "cuda:-1", "cuda:x", "", "cuda:0:1"])
def test_refuses_what_is_no_device(text):
    with pytest.raises(DeviceError):
        device(text)


@given(st.lists(st.text()))
def test_names_are_identifiers_and_never_given_twice(wanted):
    names = Names()
    taken = [names.take(w) for w in wanted] + [names.fresh("t") for _ in wanted]
    assert len(set(taken)) == len(taken)
    assert all(name.isidentifier() and name.isascii() for name in taken)


def test_names_of_open_sizes_are_taken_where_a_part_of_a_program_does_not_define_them():
    rows, more = number_proxy(3, "i0"), number_proxy(6, "i1")
    x, y = TensorProxy((rows, 2), name="x"), TensorProxy((more,), name="y")
    part = Trace("part", (x,), (BoundSymbol(toys.exp, (x,), {}, y),), y)
    assert part.names().fresh("i") == "i2"


def test_a_language_finds_methods_of_its_base_and_computes_attributes():
    base, top = Language("base"), Language("top")
    top.base = base
    base.method("exp")(toys.exp)

    @top.attribute("size")
    def size(a):
        return a.shape

    def program(x):
        assert x.size == (2, 3)
        return x.exp()

    assert [b.symbol for b in trace_of(program, Tensor((2, 3)), language=top).bound_symbols] == [toys.exp]
    with pytest.raises(DuplicateRuleError):
        top.method("size")(size)
    with pytest.raises(AttributeError, match="the top language has no method 'nothing'"):
        trace_of(lambda x: x.nothing(), Tensor((2,)), language=top)


def test_operators_outside_of_a_program_say_so():
    with pytest.raises(OutsideTraceError, match="only while a trace is recorded"):
        Tensor((2,)) + 1
    with pytest.raises(OutsideTraceError, match="no language is active"):
        with recording(Builder()):
            Tensor((2,)) + 1


def test_a_rule_table_refuses_duplicates_and_explains_gaps():
    table = RuleTable("toy", "@toy_rule")
    table(toys.exp)(lambda a: a)
    with pytest.raises(DuplicateRuleError, match="toys.exp has a toy rule already"):
        table(toys.exp)(lambda a: a)
    with pytest.raises(MissingRuleError, match=r"toys.tanh has no toy rule; add one with @toy_rule\(toys.tanh\)"):
        table[toys.tanh]
    assert toys.exp in table and table.get(toys.tanh) is None and list(table) == [toys.exp]


def test_a_call_that_returns_its_own_input_is_not_recorded():
    same = Symbol("same", "toys", meta=lambda a: a)
    assert trace_of(lambda x: same(x), Tensor((2,))).bound_symbols == ()


Pair = namedtuple("Pair", ["first", "second"])


@dataclasses.dataclass
class Box:
    content: object
    label: str = "box"


@dataclasses.dataclass(frozen=True)
class Frozen:
    content: object


TREES = [
    {"b": 1, "a": 2}, OrderedDict(b=1, a=2), (1, [2, None]), Pair(1, (2,)), Box([1, 2]), Frozen({"z": Box(1), "y": 2}),
    None, 3, {}, [], {1: 2, "1": 3},
]  # fmt: skip


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_a_pytree_is_put_together_from_its_leaves(tree):
    leaves, structure = flatten(tree)
    assert unflatten(structure, leaves) == tree
    assert tree_map(lambda leaf: leaf, tree) == tree


def test_pytrees_keep_the_order_of_dicts_and_open_dataclasses():
    assert flatten({"b": 1, "a": Box(2)})[0] == [1, 2, "box"]
    assert tree_map(lambda a, b: (a, b), {"b": 1, "a": 2}, {"b": 3, "a": 4}) == {"b": (1, 3), "a": (2, 4)}


def test_map_values_goes_into_containers_of_classes_of_their_own():
    pair = namedtuple("pair", "a b")
    text = {1: "one"}.get
    assert map_values(lambda v: text(v, v), pair(1, [2, slice(1, 3)])) == pair("one", [2, slice("one", 3)])
    assert map_values(lambda v: text(v, v), OrderedDict(a=1)) == {"a": "one"}
    assert map_values(lambda v: text(v, v), time.gmtime(1))[5] == "one"


def test_map_values_keeps_containers_of_classes_of_their_own_in_which_nothing_is_replaced():
    pair = namedtuple("pair", "a b")
    for container in (pair(1, 2), OrderedDict(a=1), time.gmtime(1)):
        assert map_values(lambda v: v, container) is container


def test_proxies_are_found_and_replaced_in_any_container():
    x, y = trace_of(lambda x, y: None, Tensor(()), Tensor(())).inputs
    value = (x, [1, {"k": y}], slice(x, None), Pair(x, y), Box(y))
    assert [p.name for p in flat_proxies(value)] == ["x", "y", "x", "x", "y", "y"]
    assert substitute(value, {}) is value
    assert substitute(value, {"x": 1, "y": 2}) == (1, [1, {"k": 2}], slice(1, None), Pair(1, 2), Box(2))


def test_comparing_a_symbolic_dimension_is_a_constraint_once():
    n = number_proxy(4)

    def program(x, m):
        assert x.shape[0] > 2 and x.shape[0] > 2 and not m == 3
        assert x.shape[0] == x.shape[0]
        return x

    trace = trace_of(program, Tensor((n, 3)), n, language=toys.language)
    assert [(c.relation, c.left.name, c.right, c.holds) for c in trace.constraints] == [
        ("gt", "x_0", 2, True), ("eq", "x_0", 3, False),
    ]  # fmt: skip
    assert [p.name for p in trace.inputs] == ["x_0", "x"]


def test_using_a_symbolic_number_as_a_plain_one_fixes_it():
    trace = trace_of(lambda n: list(range(n)), number_proxy(3))
    assert trace.output == [0, 1, 2]
    assert [(c.relation, c.right) for c in trace.constraints] == [("eq", 3)]


def test_bits_of_symbolic_integers_and_truths_fix_them():
    def program(n, b):
        return [b & True, False | b, b ^ b, n & b, 6 ^ n, b << 1, "xy"[b]]

    trace = trace_of(program, number_proxy(3), number_proxy(True))
    assert trace.output == [True, True, False, 1, 5, 2, "y"]
    assert [type(v) for v in trace.output[:4]] == [bool, bool, bool, int]
    fixed = {(c.left.python_type, c.relation, c.right) for c in trace.constraints}
    assert fixed == {(int, "eq", 3), (bool, "eq", True)}


def test_arithmetic_on_dimensions_is_recorded_even_inside_a_composite():
    longer = Symbol("longer", "toys", meta=lambda a: a.like(shape=(a.shape[0] + 1,)), language=toys.language)
    twice = Symbol("twice", "toys", decomposition=lambda a: longer(longer(a)), language=toys.language)
    trace = verify(trace_of(lambda x: twice(x), Tensor((number_proxy(4),)), language=toys.language))
    assert [b.symbol.name for b in trace.bound_symbols] == ["number_add", "number_add", "twice"]
    assert trace.output.type_string == "float32[i1]"


def test_a_call_that_returns_one_new_value_twice_is_recorded():
    twice = Symbol("twice", "toys", decomposition=lambda a: (toys.exp(a),) * 2, language=toys.language)
    trace = verify(trace_of(lambda x: twice(x)[1], Tensor((4,)), language=toys.language))
    assert [b.symbol.name for b in trace.bound_symbols] == ["twice"]
    assert trace.output.name in [p.name for p in trace.bound_symbols[0].outputs]


def test_importing_the_package_loads_neither_torch_nor_numpy():
    program = "import sys, thunder_ir, thunder_ir.passes; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
