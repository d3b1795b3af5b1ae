"""Programs for batches: what is recorded for which inputs."""

import pytest

from thunder_ir import MissingRuleError, Names, OpTags, ShapeError, Symbol, Tensor, ThunderError, trace_of
from thunder_vmap import batch_transform_on_trace, batching_rule

add = Symbol("add", "toy", meta=lambda a, b: a.like())
pair = Symbol("pair", "toy", meta=lambda a: (a.like(), a.like()))
ruleless = Symbol("ruleless", "toy", meta=lambda a: a.like())
noise = Symbol("noise", "toy", meta=lambda a: a.like(), tags=frozenset({OpTags.RANDOM}))
spread = Symbol("spread", "toy", meta=lambda a, size: a.like(shape=(size, *a.shape)))
double = Symbol("double", "toy", decomposition=lambda a: add(a, a))
same = Symbol("same", "toy", meta=lambda a: a.like(), decomposition=lambda a: a)
gather = Symbol("gather", "toy", meta=lambda items: items[0].like())


@batching_rule(add)
def add_batching(size, args, dims):
    a, b = (spread(x, size) if d is None else x for x, d in zip(args, dims, strict=True))
    return add(a, b), 0


@batching_rule(pair)
def pair_batching(size, args, dims):
    return pair(*args), (dims[0], dims[0])


@batching_rule(noise)
def noise_batching(size, args, dims):
    return noise(args[0] if dims[0] is not None else spread(args[0], size)), 0


@batching_rule(gather)
def gather_batching(size, args, dims):
    (items,), (of,) = args, dims
    return gather([i if d is not None else spread(i, size) for i, d in zip(items, of, strict=True)]), 0


def batched(function, *dims, size=5, **options):
    trace = trace_of(function, *[Tensor((3,)) for _ in dims])
    return batch_transform_on_trace(trace, size, dims, **options)


def texts(trace):
    return [b.symbol.name for b in trace.bound_symbols]


def test_batches_what_reads_a_batch_and_leaves_the_rest():
    trace = batched(lambda x, y: (add(x, y), add(y, y)), 0, None)

    assert [p.type_string for p in trace.inputs] == ["float32[5, 3]", "float32[3]"]
    assert texts(trace) == ["spread", "add", "add"]
    outputs, dims = trace.output
    assert [p.shape for p in outputs] == [(5, 3), (3,)]
    assert dims == (0, None)


def test_puts_the_batch_dimension_where_it_is_told():
    assert batched(lambda x: pair(x), 1).inputs[0].shape == (3, 5)
    assert batched(lambda x: pair(x), 1).output[1] == (1, 1)


def test_goes_through_decompositions():
    trace = batched(lambda x: double(x), 0)

    assert texts(trace) == ["add"] and trace.output[0].shape == (5, 3)


def test_a_decomposition_may_return_its_input():
    trace = batched(lambda x: add(same(x), x), 0)

    assert texts(trace) == ["add"]


def test_a_sequence_of_tensors_has_a_dimension_for_each():
    trace = batched(lambda x, y: gather([x, y]), 0, None)

    assert texts(trace) == ["spread", "gather"]


def test_an_output_that_is_an_input_is_a_batch():
    trace = batched(lambda x: x, 0)

    assert trace.output[0].shape == (5, 3) and trace.output[1] == (0,)


def test_names_the_symbol_whose_rule_is_missing():
    with pytest.raises(MissingRuleError, match=r"toy.ruleless has no batching rule.*@batching_rule\(toy.ruleless\)"):
        batched(lambda x: ruleless(x), 0)


def test_random_operations_are_refused_unless_told():
    with pytest.raises(ThunderError, match="draws random numbers under vmap; say randomness="):
        batched(lambda x, y: add(x, noise(y)), 0, None)


@pytest.mark.parametrize("randomness, shape", [("different", (5, 3)), ("same", (3,))])
def test_random_operations_draw_apart_or_together(randomness, shape):
    trace = batched(lambda x, y: add(x, noise(y)), 0, None, randomness=randomness)

    (drawn,) = [b for b in trace.bound_symbols if b.symbol is noise]
    assert drawn.output.shape == shape


def test_a_batch_dimension_must_fit():
    with pytest.raises(ShapeError, match=r"input x, float32\[3\], cannot have a batch dimension at 2"):
        batched(lambda x: x, 2)


def test_outputs_that_are_missing_have_no_batch():
    partly = Symbol("partly", "toy", meta=lambda a: (None, a.like()))
    rule = {partly: lambda size, args, dims: (partly(*args), (None, dims[0]))}
    trace = batched(lambda x: partly(x)[1], 1, rule_of=lambda bound: rule.get(bound.symbol))
    assert trace.output[1] == (1,)


def test_parts_of_constants_are_constants():
    constant = Symbol("constant", "toy", decomposition=double, tags=frozenset({OpTags.CONSTANT_FOR_DERIVATIVE}))
    trace = batched(lambda x: add(constant(x), x), 0)
    assert [b.has_tag(OpTags.CONSTANT_FOR_DERIVATIVE) for b in trace.bound_symbols] == [True, False]


def test_new_values_take_their_names_from_the_allocator_given():
    names = Names(["a", "t0", "t1", "t2"])
    trace = batched(lambda a: add(a, a), 0, names=names)
    assert [p.name for p in trace.bound_symbols[0].outputs] == ["t3"]
