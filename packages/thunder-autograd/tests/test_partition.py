"""What is saved and what is computed again: bytes, budgets, tags, order."""

import numpy as np
import pytest
import toy_language as toy
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_language import joint_of, run, texts, traced

from thunder_autograd import (
    Replay,
    forward_and_backward,
    grad_transform_on_trace,
    split_into_forward_and_backward,
    vjp_rule,
)
from thunder_ir import AnyProxy, OpTags, Symbol, current_builder

BUDGETS = [1.0, 0.9, 0.7, 0.5, 0.35, 0.2, 0.1, 0.0]


def block(x, w, v):
    h = toy.tanh(toy.matmul(x, w))
    s, c = toy.sincos(h * 0.5)
    return toy.matmul(toy.wave(s) * c, v) + x


def network(depth):
    def program(x, w, v):
        for _ in range(depth):
            x = block(x, w, v)
        return x

    return program


SHAPES = [(64, 16), (16, 64), (64, 16)]


def saved_bytes(split):
    """Bytes of what is handed over and is no input, which is what a memory profile would see."""
    inputs = {p.name for p in split.forward.inputs}
    return sum([p.numel * p.dtype.bytes for p in split.saved if p.name not in inputs])


@pytest.mark.parametrize("budget", BUDGETS)
def test_saves_no_more_than_the_budget(budget):
    joint = joint_of(network(6), *SHAPES)
    everything = saved_bytes(split_into_forward_and_backward(joint, partition="save-all"))

    assert saved_bytes(split_into_forward_and_backward(joint, memory_budget=budget)) <= budget * everything


def test_a_budget_in_bytes():
    split = split_into_forward_and_backward(joint_of(network(6), *SHAPES), memory_budget=100_000)

    assert 50_000 < saved_bytes(split) <= 100_000


def test_a_smaller_budget_never_saves_more():
    joint = joint_of(network(5), *SHAPES)
    sizes = [saved_bytes(split_into_forward_and_backward(joint, memory_budget=b)) for b in BUDGETS]

    assert sizes == sorted(sizes, reverse=True)


KINDS = [
    lambda a, b, w: a * b,
    lambda a, b, w: a + b,
    lambda a, b, w: toy.sin(a),
    lambda a, b, w: toy.matmul(a, w),
    lambda a, b, w: toy.transpose(a),
    lambda a, b, w: toy.nested(a),
    lambda a, b, w: toy.sincos(a)[1] * b,
]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=14))
def test_any_program_at_any_budget_computes_the_same_and_saves_less_for_less(steps):
    def program(x, w):
        values = [x, toy.tanh(x)]
        for kind, i, j in steps:
            values.append(KINDS[kind](values[i % len(values)], values[j % len(values)], w))
        return values[-1], values[len(values) // 2]

    trace = traced(program, (3, 3), (3, 3))
    joint = grad_transform_on_trace(trace)
    random = np.random.default_rng(0)
    x, w = random.standard_normal((2, 3, 3)) / 3
    cotangents = [random.standard_normal((3, 3)) for _ in joint.inputs[2:]]
    _, expected = run(joint, x, w, *cotangents)
    before = None
    for budget in (1.0, 0.6, 0.3, 0.0):
        split = split_into_forward_and_backward(joint, memory_budget=budget)
        _, saved = run(split.forward, x, w)
        for a, b in zip(run(split.backward, *saved, *cotangents), expected, strict=True):
            assert (a is None) == (b is None)
            if a is not None:
                np.testing.assert_allclose(a, b)
        assert before is None or split.saved_bytes <= before
        before = split.saved_bytes


def test_computes_cheap_values_again_where_that_takes_little_time():
    function = lambda x, w, v: toy.matmul(toy.sin(toy.matmul(x, w)), v)  # noqa: E731
    small = forward_and_backward(traced(function, *SHAPES))
    large = [(2048, 2048)] * 3
    at_scale = forward_and_backward(traced(function, *large))

    assert texts(small.backward).count("matmul") == texts(at_scale.backward).count("matmul") == 4
    assert texts(small.backward).count("sin") == 0
    assert texts(at_scale.backward).count("sin") == 1


def test_computes_no_chain_of_elementwise_operations_twice_by_default():
    def chain(x):
        for _ in range(20):
            x = toy.sin(x)
        return x

    assert texts(forward_and_backward(traced(chain, (64, 64))).backward).count("sin") <= 2


def test_where_compilers_fuse_it_is_computed_twice_for_what_it_saves():
    def chain(x):
        for _ in range(20):
            x = toy.sin(x)
        return x

    joint = joint_of(chain, (64, 64))
    fused = split_into_forward_and_backward(joint, partition="fused")
    assert saved_bytes(fused) == 0 < saved_bytes(split_into_forward_and_backward(joint))
    network_joint = joint_of(network(4), *SHAPES)
    assert texts(split_into_forward_and_backward(network_joint, partition="fused").backward).count("matmul") == 16


def test_multiplies_again_only_when_asked():
    joint = joint_of(network(4), *SHAPES)

    assert texts(split_into_forward_and_backward(joint).backward).count("matmul") == 16
    assert texts(split_into_forward_and_backward(joint, memory_budget=0.0).backward).count("matmul") > 16


def test_a_view_is_not_saved_beside_what_it_is_a_view_of():
    def program(x, w):
        h = toy.matmul(x, w)
        return toy.sin(h), toy.sin(toy.transpose(h))

    split = forward_and_backward(traced(program, (8, 8), (8, 8)), partition="save-all")

    assert saved_bytes(split) == 8 * 8 * 8


def test_inputs_cost_nothing():
    assert forward_and_backward(traced(lambda x, w: toy.matmul(x, w), (8, 8), (8, 8))).saved_bytes == 0


def of_sine(x, w):
    return toy.matmul(toy.sin(x), w)


def of_reshaped(x, w):
    return toy.matmul(toy.reshaped(toy.transpose(x)), w)


def of_reshaped_sine(x, w):
    return toy.matmul(toy.sin(toy.reshaped(x)), w)


def of_transposed(x, w):
    return toy.matmul(toy.transpose(x), w)


@pytest.mark.parametrize("partition", ["min-cut", "save-all"])
def test_what_is_computed_from_an_input_that_is_not_kept_is_computed_once(partition):
    def again(program):
        split = forward_and_backward(traced(program, *[(2048, 2048)] * 2), partition=partition)
        primal = {p.name for b in split.forward.bound_symbols for p in b.outputs}
        return [b.symbol.name for b in split.backward.bound_symbols if any([p.name in primal for p in b.outputs])]

    assert again(of_sine) == again(of_reshaped) == again(of_reshaped_sine) == []
    assert again(of_transposed) == ["transpose"]
    kept = again(lambda x, w: of_sine(x, w) * x)
    assert kept == ([] if partition == "save-all" else ["sin"])


def biased(x, b, w):
    y = toy.matmul(x, w) * w
    return toy.matmul(toy.tanh(y + toy.expand(b, x.shape[0])), w)


def with_and_without_copies(program, *shapes, **options):
    joint = joint_of(program, *shapes)
    return [split_into_forward_and_backward(joint, copy=copy, **options) for copy in (None, toy.copy)]


def test_copies_of_small_inputs_are_saved_rather_than_what_is_computed_from_them():
    plain, copying = with_and_without_copies(biased, (256, 256), (256,), (256, 256), in_regions=lambda bound: 1.0)

    assert texts(copying.forward).count("copy") == 1
    assert saved_bytes(copying) <= saved_bytes(plain) - 256 * 256 * 4 + 256 * 4
    arguments = [np.random.default_rng(0).standard_normal(s) / 16 for s in ((256, 256), (256,), (256, 256))]
    results, saved = run(copying.forward, *arguments)
    expected, plainly_saved = run(plain.forward, *arguments)
    np.testing.assert_array_equal(results, expected)
    plain_gradients = run(plain.backward, *plainly_saved, expected)
    arguments[1] *= 2  # the bias, between the two passes
    for found, gradient in zip(run(copying.backward, *saved, results), plain_gradients, strict=True):
        np.testing.assert_allclose(found, gradient, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("program", "shapes", "options"),
    [
        (biased, [(64, 64), (64,), (64, 64)], {}),  # too little to save
        (lambda x, b, w: toy.matmul(toy.tanh(x + b), w), [(256, 256)] * 3, {}),  # no small input
        (biased, [(256, 256), (256,), (256, 256)], {"memory_budget": 0.5}),  # what is read again is asked for
        (biased, [(256, 256), (256,), (256, 256)], {"partition": "save-all"}),
    ],
    ids=["small", "large", "budget", "save-all"],
)
def test_no_copy_is_made_that_saves_nothing(program, shapes, options):
    plain, copying = with_and_without_copies(program, *shapes, in_regions=lambda bound: 1.0, **options)

    assert texts(copying.forward) == texts(plain.forward)
    assert texts(copying.backward) == texts(plain.backward)


@pytest.mark.parametrize("options", [{}, {"partition": "fused"}, {"memory_budget": 0.0}], ids=str)
def test_what_may_be_rounded_otherwise_is_not_compared_again(options):
    def greatest(x, w):
        y = toy.wave(x * w)
        return y * toy.expand(toy.max0(y), x.shape[0])

    split = forward_and_backward(traced(greatest, *[(256, 256)] * 2), in_regions=lambda bound: 1.0, **options)

    assert "mul" in texts(split.backward)
    assert texts(split.forward).count("equal") == 1
    assert "equal" not in texts(split.backward)


def test_inputs_are_compared_again():
    split = forward_and_backward(traced(lambda x: toy.sin(toy.max0(x) * 2.0), (256, 256)), in_regions=lambda bound: 1.0)

    assert "equal" in texts(split.backward)
    assert "equal" not in texts(split.forward)


def test_a_budget_lets_what_is_computed_from_inputs_be_computed_again():
    split = forward_and_backward(traced(of_reshaped_sine, *SHAPES[:2]), memory_budget=0.0)

    assert {"reshaped", "sin"} <= set(texts(split.backward))
    assert saved_bytes(split) == 0


def test_a_tagged_region_is_computed_again_whatever_it_costs():
    def program(x, w, v):
        with current_builder().tagged(OpTags.RECOMPUTE):
            x = block(x, w, v)
        return toy.tanh(x)

    for partition in ("min-cut", "save-all"):
        split = forward_and_backward(traced(program, *SHAPES), partition=partition)
        assert saved_bytes(split) <= 64 * 16 * 8  # the result of the region, which the tanh behind it reads
        assert texts(split.backward).count("matmul") >= 5  # four gradients, and the one of the region
        assert any(d.why == "in a checkpointed region" for d in split.decisions)
        assert not any(OpTags.RECOMPUTE in b.tags for b in split.backward.bound_symbols)


def test_what_communicates_is_done_again_only_where_that_is_asked_for():
    gather = Symbol("gather", "test", meta=lambda a: a.like(), tags=frozenset({OpTags.COLLECTIVE}))
    vjp_rule(gather)(lambda a: (gather(a), lambda dy: gather(dy)))

    def program(*tags):
        def gathers(x, w):
            with current_builder().tagged(*tags):
                w = gather(w)
            return toy.matmul(toy.tanh(toy.matmul(x, w)), w)

        return gathers

    for tags, again in (((), 0), ((OpTags.RECOMPUTE,), 1), ((OpTags.RECOMPUTE, OpTags.DONT_RECOMPUTE), 0)):
        split = forward_and_backward(traced(program(*tags), (8, 8), (8, 8)))
        assert [b.symbol for b in split.backward.bound_symbols].count(gather) == 1 + again


def test_a_call_tagged_so_is_never_computed_again():
    def program(x, w, v):
        with current_builder().tagged(OpTags.DONT_RECOMPUTE):
            h = toy.sin(toy.matmul(x, w))
        return toy.matmul(toy.tanh(h), v)

    split = forward_and_backward(traced(program, *SHAPES), memory_budget=0.0)

    assert "sin" not in texts(split.backward)


def test_random_numbers_are_drawn_once():
    def program(x):
        return toy.masked(toy.above(toy.noise(x)), toy.sin(x))

    split = forward_and_backward(traced(program, (8, 8)), memory_budget=0.0)

    assert "noise" not in texts(split.backward)
    assert [p.dtype.name for p in split.saved if p.name not in {q.name for q in split.forward.inputs}] == ["bool8"]


states = Symbol("states", "toy", meta=lambda generators: AnyProxy(), tags=frozenset({OpTags.RANDOM}))
exchange = Symbol("exchange", "toy", meta=lambda generators, states: AnyProxy(), tags=frozenset({OpTags.DONT_DCE}))
REPLAY = Replay(lambda bound: "cpu", states, exchange)


def noisy(x):
    return toy.masked(toy.above(toy.noise(x)), toy.sin(x))


def test_random_numbers_are_drawn_again_from_the_state_before_them():
    split = forward_and_backward(traced(noisy, (80, 80)), memory_budget=0.0, replay=REPLAY)

    assert texts(split.forward)[:2] == ["states", "noise"]
    again = texts(split.backward)
    assert again[again.index("noise") - 1 : again.index("noise") + 2] == ["exchange", "noise", "exchange"]
    there, _, back = [b for b in split.backward.bound_symbols if b.symbol.name in ("exchange", "noise")]
    (state,) = [p for p in split.saved if isinstance(p, AnyProxy)]
    assert there.args[1].name == state.name and back.args[1].name == there.outputs[0].name
    assert not [p for p in split.saved if p.name not in {q.name for q in split.forward.inputs} and p is not state]


def test_few_random_numbers_are_saved_rather_than_a_state():
    split = forward_and_backward(traced(noisy, (8, 8)), memory_budget=0.0, replay=REPLAY)

    assert "states" not in texts(split.forward)


def test_random_numbers_are_drawn_once_unless_a_budget_or_a_region_asks_for_more():
    def region(x):
        with current_builder().tagged(OpTags.RECOMPUTE):
            return noisy(x)

    assert "states" not in texts(forward_and_backward(traced(noisy, (80, 80)), replay=REPLAY).forward)
    assert "states" in texts(forward_and_backward(traced(region, (8, 8)), replay=REPLAY).forward)


def test_what_is_computed_again_stands_just_before_its_first_use():
    split = forward_and_backward(traced(network(4), *SHAPES), memory_budget=0.3)
    forward = {p.name for b in split.forward.bound_symbols for p in b.outputs}
    calls = split.backward.bound_symbols
    again = [any([p.name in forward for p in b.outputs]) for b in calls]
    first: dict[str, int] = {}
    for i, bound in enumerate(calls):
        for p in bound.inputs:
            first.setdefault(p.name, i)

    assert sum(again) > 10
    for i in [i for i, is_again in enumerate(again) if is_again]:
        used = min([first[p.name] for p in calls[i].outputs if p.name in first])
        assert all(again[i:used]), f"{calls[i]} stands too early"


def test_the_table_says_what_became_of_each_value_and_why():
    split = forward_and_backward(traced(network(1), *SHAPES), memory_budget=0.3)
    lines = split.table().splitlines()

    assert lines[0].split() == ["bytes", "what", "value", "why"]
    assert any("saved" in line for line in lines) and any("recomputed" in line for line in lines)


def test_refuses_budgets_and_partitions_that_mean_nothing():
    joint = joint_of(network(1), *SHAPES)
    with pytest.raises(ValueError, match="memory_budget is a fraction"):
        split_into_forward_and_backward(joint, memory_budget=-1)
    with pytest.raises(ValueError, match="partition is 'min-cut', 'fused' or 'save-all', not 'best'"):
        split_into_forward_and_backward(joint, partition="best")


def chain(x, w):
    return toy.matmul(toy.tanh(toy.tanh(x) * 0.5) * x, w)


def test_what_regions_compute_again_is_not_saved():
    joint = joint_of(lambda x: toy.tanh(toy.wave(toy.tanh(x)) * 0.5) * x, (64, 64))
    alone = split_into_forward_and_backward(joint)
    fused = split_into_forward_and_backward(joint, in_regions=lambda bound: 1.0)

    assert saved_bytes(fused) == 0 < saved_bytes(alone)


def test_what_an_operation_that_stands_alone_reads_counts_in_full():
    def outside_of_products(bound):
        return None if bound.symbol.name == "matmul" else 1.0

    joint = joint_of(chain, (64, 64), (64, 64))
    fused = split_into_forward_and_backward(joint, in_regions=outside_of_products)

    (product,) = [b for b in fused.forward.bound_symbols if b.symbol.name == "matmul"]
    assert {p.name for p in fused.saved} == {"x", "w", product.args[0].name}


def test_what_is_dear_in_regions_is_saved():
    joint = joint_of(lambda x: toy.tanh(toy.tanh(x)), (64, 64))

    assert saved_bytes(split_into_forward_and_backward(joint, in_regions=lambda bound: 1e9))
