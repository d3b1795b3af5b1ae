"""Derivatives against central differences, batches against single calls."""

import numpy as np
import pytest
from prims_machine import check_batching, check_jvp, check_rules, check_second_derivative, check_vjp

import thunder_prims as prims

GENERATOR = np.random.default_rng(11)


def real(*shape):
    return GENERATOR.uniform(-2, 2, shape)


INDICES = np.array([[0, 2, 2], [1, 2, 4]])


@pytest.mark.parametrize("parameters", [(), (-1, True)], ids=str)
@pytest.mark.parametrize("indices", [INDICES, np.array(3), INDICES[0, :0]], ids=["matrix", "one", "none"])
def test_rules_of_embedding_hold(indices, parameters):
    weight = real(5, 4)
    if not parameters:
        check_rules(prims.embedding, indices, weight)
    else:
        check_batching(prims.embedding, indices, weight, *parameters)


@pytest.mark.parametrize("padding_index", [-1, 2])
@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("indices", [INDICES, np.array(3)], ids=["matrix", "one"])
def test_rules_of_embedding_backward_hold(indices, padding_index, scale):
    check_rules(prims.embedding_backward, real(*indices.shape, 4), indices, 5, padding_index, scale)


def test_one_hot_runs_in_batches():
    check_batching(prims.one_hot, INDICES, 5)


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_rules_of_extending_hold(mode):
    padding = ((0, 0), (1, 2), (0, 3))
    check_rules(prims.extend, real(2, 3, 4), padding, mode)
    check_rules(prims.extend_backward, real(2, 6, 7), padding, mode)


ENDS = np.array([1, 1, 4], np.int32)
GROUPED = {
    "rows": ((4, 2), (3, 2, 5)),
    "columns": ((3, 5, 2), (2, 4)),
    "sums": ((2, 4), (4, 5)),
}


@pytest.mark.parametrize("shapes", GROUPED.values(), ids=GROUPED.keys())
def test_rules_of_grouped_products_hold(shapes):
    a, b = map(lambda s: real(*s), shapes)
    check_vjp(prims.grouped_mm, a, b, ENDS)
    check_jvp(prims.grouped_mm, a, b, ENDS)
    check_second_derivative(prims.grouped_mm, a, b, ENDS)
    check_batching(prims.grouped_mm, a, b, ENDS[:1].repeat(3))


# shape of input and weight; stride, padding, dilation, transposed, output padding, groups
CONVOLUTIONS = {
    "plain": ((2, 2, 5), (3, 2, 3), ((1,), (0,), (1,), False, (0,), 1)),
    "strided": ((1, 2, 7), (2, 2, 3), ((2,), (1,), (2,), False, (0,), 1)),
    "groups": ((2, 4, 5), (6, 2, 2), ((1,), (1,), (1,), False, (0,), 2)),
    "planes": ((1, 2, 4, 5), (3, 2, 2, 3), ((1, 2), (1, 0), (1, 1), False, (0, 0), 1)),
    "transposed": ((2, 2, 4), (2, 3, 3), ((2,), (1,), (1,), True, (1,), 1)),
    "transposed groups": ((1, 4, 3), (4, 2, 2), ((2,), (0,), (2,), True, (0,), 2)),
}


@pytest.mark.parametrize("case", CONVOLUTIONS.values(), ids=CONVOLUTIONS.keys())
@pytest.mark.parametrize("bias", [False, True])
def test_rules_of_convolution_hold(case, bias):
    a, weight, parameters = case
    transposed, groups = parameters[3], parameters[5]
    channels = weight[1] * groups if transposed else weight[0]
    check_rules(prims.convolution, real(*a), real(*weight), real(channels) if bias else None, *parameters)


def test_rules_of_convolution_hold_for_complex_numbers():
    a, weight, parameters = CONVOLUTIONS["strided"]
    arguments = [real(*s) + 1j * real(*s) for s in (a, weight, weight[:1])]
    check_rules(prims.convolution, *arguments, *parameters)


MASKS = [(True, False, False), (False, True, False), (False, False, True), (True, True, True), (True, False, True)]


@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("name", ["strided", "groups", "transposed groups"])
def test_rules_of_convolution_backward_hold(name, mask):
    a, weight, parameters = CONVOLUTIONS[name]
    lengths = {"strided": (1, 2, 3), "groups": (2, 6, 6), "transposed groups": (1, 4, 7)}[name]
    arguments = real(*lengths), real(*a), real(*weight), *parameters, mask
    check_batching(WANTED[mask], *arguments[:-1])
    check_vjp(WANTED[mask], *arguments[:-1])
    check_jvp(WANTED[mask], *arguments[:-1])


class Wanted:
    """``convolution_backward`` for one mask, without the gradients that are not wanted: they are no arrays."""

    def __init__(self, mask):
        self.mask = mask
        self.name = f"convolution_backward_{mask}"
        self.id = self.name

    def __call__(self, *arguments):
        return tuple([g for g in prims.convolution_backward(*arguments, self.mask) if g is not None])


def _register(mask):
    from thunder_autograd import jvp_rule, vjp_rule
    from thunder_vmap import batching_rule

    wanted = Wanted(mask)
    kept = [i for i, w in enumerate(mask) if w]

    def vjp(*arguments):
        output, pullback = vjp_rule[prims.convolution_backward](*arguments, mask)

        def pulled(*cotangents):
            whole = [None, None, None]
            for i, c in zip(kept, cotangents, strict=True):
                whole[i] = c
            return pullback(*whole)

        return tuple([output[i] for i in kept]), pulled

    def jvp(*both):
        middle = len(both) // 2
        output, tangents = jvp_rule[prims.convolution_backward](*both[:middle], mask, *both[middle:], None)
        return tuple([output[i] for i in kept]), tuple([tangents[i] for i in kept])

    def batching(size, args, dims):
        output, places = batching_rule[prims.convolution_backward](size, (*args, mask), (*dims, None))
        return tuple([output[i] for i in kept]), tuple([places[i] for i in kept])

    vjp_rule(wanted)(vjp)
    jvp_rule(wanted)(jvp)
    batching_rule(wanted)(batching)
    return wanted


WANTED = {mask: _register(mask) for mask in MASKS}

# window, stride, padding, dilation
WINDOWS = {
    "line": ((2, 3, 6), ((2,), (2,), (0,), (1,))),
    "overlapping": ((1, 2, 5, 6), ((3, 2), (2, 1), (1, 1), (1, 1))),
    "unbatched": ((3, 7), ((3,), (2,), (1,), (1,))),
}


@pytest.mark.parametrize("case", WINDOWS.values(), ids=WINDOWS.keys())
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_rules_of_max_pool_hold(case, ceil_mode):
    shape, windows = case
    a = GENERATOR.permutation(np.prod(shape)).reshape(shape) / 7
    check_rules(prims.max_pool, a, *windows, ceil_mode)


def test_rules_of_dilated_max_pool_hold():
    check_rules(prims.max_pool, real(2, 2, 7), (2,), (1,), (1,), (3,), False)


@pytest.mark.parametrize("case", WINDOWS.values(), ids=WINDOWS.keys())
@pytest.mark.parametrize("options", [(False, True, None), (True, False, None), (True, True, None), (False, False, 5)])
def test_rules_of_avg_pool_hold(case, options):
    shape, (window, stride, padding, _) = case
    check_rules(prims.avg_pool, real(*shape), window, stride, padding, *options)


def test_rules_of_avg_pool_backward_hold():
    check_rules(prims.avg_pool_backward, real(2, 3, 3), (2, 3, 6), (2,), (2,), (0,), False, True, None)


def test_rules_of_adaptive_pooling_hold():
    check_rules(prims.adaptive_avg_pool, real(2, 3, 5, 4), (3, 2))
    check_rules(prims.adaptive_avg_pool, real(2, 3, 3), (5,))
    check_rules(prims.adaptive_avg_pool_backward, real(2, 3, 3, 2), (5, 4))
