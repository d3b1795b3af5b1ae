"""What is taken where the user names no executor and this is a default one: what is faster in kernels."""

import pytest
import torch

from thunder_executors import (
    add_default_executor,
    get_default_executors,
    grad_rule,
    resolve_executors,
    set_default_executors,
    transform_for_execution,
    who_gains,
)
from thunder_executors_llvm import executor
from thunder_executors_llvm.paying import LARGE
from thunder_ir import dtypes, trace_of
from thunder_torch import proxy_of, symbol_of, torch_language

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"the executor cannot run: {executor.missing()}")

SIDE = 256
assert SIDE * SIDE >= LARGE


@pytest.fixture(autouse=True)
def by_default():
    before = get_default_executors()
    add_default_executor(executor)
    yield
    set_default_executors(before)


def kernels(program, *tensors):
    """Return the calls of kernels in a program for the default executors."""
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors], language=torch_language)
    made = transform_for_execution(trace, None)
    return [b for b in made.bound_symbols if b.symbol.module == executor.name]


def gated(x, y):
    return symbol_of(torch.relu)(x + y) * y


def test_it_takes_part_where_nobody_is_named():
    assert executor.careful in resolve_executors(None)
    assert executor in resolve_executors(["llvm"])
    assert executor.careful not in resolve_executors(["llvm"])


def test_large_tensors_are_in_kernels():
    x = torch.ones(SIDE, SIDE)

    assert len(kernels(gated, x, x)) == 1


def times(n, step):
    """Return the program that does a step again and again, with a matrix product after each."""

    def program(x):
        for i in range(n):
            x = torch_matmul(step(x, i), x)
        return x

    return program


torch_matmul = symbol_of(torch.matmul)


def alike(x, i):
    return symbol_of(torch.tanh)(x * x + x) * x - x


def long(x, i):
    return symbol_of(torch.tanh)((x * (i + 2.0) + i) * x) * (i + 3.0) - i


def short(x, i):
    return symbol_of(torch.tanh)(x * (i + 2.0) + i) * (i + 3.0)


@pytest.mark.parametrize(
    ("program", "x", "number"),
    [
        (times(20, alike), torch.ones(4, 4), 20),
        (times(10, alike), torch.ones(4, 4), 0),
        (times(15, long), torch.ones(4, 4), 15),
        (times(30, short), torch.ones(4, 4), 0),
        (times(100, lambda x, i: x + 1), torch.ones(4, 4), 0),
        (times(20, alike), torch.ones(4, 4, device="meta"), 0),
    ],
    ids=["one kernel", "few calls", "long kernels", "short kernels", "calls alone", "elsewhere"],
)
def test_small_tensors_are_in_kernels_where_these_save_many_calls(program, x, number):
    assert len(kernels(program, x)) == number


@pytest.mark.parametrize(
    "x",
    [torch.ones(SIDE, SIDE - 1), torch.ones(SIDE, SIDE, dtype=torch.bfloat16), torch.ones(SIDE, SIDE, device="meta")],
    ids=["small", "bfloat16", "elsewhere"],
)
def test_what_does_not_pay_is_left_to_others(x):
    assert not kernels(gated, x, x)


def test_small_tensors_of_a_program_with_large_ones_are_left_to_others():
    x, y = torch.ones(SIDE, SIDE), torch.ones(8, 8)

    def program(x, y):
        return gated(x, x), gated(y, y), symbol_of(torch.nn.functional.gelu)(y)

    (kernel,) = kernels(program, x, y)

    assert [p.shape for p in kernel.outputs] == [(SIDE, SIDE)]


def test_a_choice_by_elements_alone_is_in_a_kernel_and_arithmetic_alone_is_not():
    x = torch.randn(SIDE, SIDE)

    assert len(kernels(lambda x: symbol_of(torch.where)(x < 0, 0.0, x), x)) == 1
    assert len(kernels(lambda m, x: symbol_of(torch.where)(m, x, x), x < 0, x)) == 1
    assert not kernels(lambda x: x * x, x)


def test_a_choice_by_elements_is_in_a_kernel_with_the_sum_of_what_is_chosen():
    x = torch.randn(SIDE, SIDE)

    def gradients(mask, cotangent):
        chosen = symbol_of(torch.where)(mask, 0.0, cotangent)
        return chosen, symbol_of(torch.sum)(chosen, 0)

    assert len(kernels(gradients, x < 0, x)) == 1
    assert not kernels(lambda x: (symbol_of(torch.neg)(x), symbol_of(torch.sum)(symbol_of(torch.neg)(x), 0)), x)


def test_columns_times_rows_are_in_a_kernel_with_what_is_around_them():
    x = torch.randn(SIDE, SIDE)
    columns, rows = x[:, :1], x[:1]

    assert len(kernels(lambda a, b: symbol_of(torch.matmul)(a, b) + 1, columns, rows)) == 1
    assert not kernels(lambda a, b: symbol_of(torch.matmul)(a, b), columns, rows)


def test_dimensions_of_one_element_move_no_others():
    x = torch.randn(SIDE, SIDE)

    def product(a, b):
        return symbol_of(torch.matmul)(symbol_of(torch.permute)(a * 2, (1, 0)), b)

    assert len(kernels(product, x[:1], x[:1])) == 1


def test_what_moves_elements_is_left_to_others():
    x = torch.ones(SIDE, SIDE)

    assert not kernels(lambda x: symbol_of(torch.cat)([x, x]), x)
    assert not kernels(lambda x: symbol_of(torch.flip)(x, (0,)) * 2, x)


def test_what_joins_tensors_is_in_the_kernel_of_what_is_computed_around():
    x = torch.ones(SIDE, SIDE)

    assert len(kernels(lambda x: symbol_of(torch.cat)([-x, x]) * 2, x)) == 1


def test_a_loss_of_large_inputs_is_one_kernel_call():
    x, target = torch.ones(SIDE, SIDE), torch.zeros(SIDE, dtype=torch.int64)

    assert len(kernels(lambda x, t: symbol_of(torch.nn.functional.cross_entropy)(x, t), x, target)) == 1
    assert not kernels(lambda x: symbol_of(torch.softmax)(x, -1), x)


@pytest.mark.parametrize(("side", "mine"), [(8, False), (SIDE, True)])
def test_derivatives_of_small_tensors_are_those_of_pytorch_s_kernels(side, mine):
    x = proxy_of(torch.ones(side, side), "")
    (bound,) = trace_of(symbol_of(torch.nn.functional.mish), x, language=torch_language).bound_symbols

    assert (grad_rule(bound, resolve_executors(None)) is None) is mine


def derived_by_pytorch(program, *tensors):
    """Return the calls of a program whose derivatives are those of PyTorch's kernels."""
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors], language=torch_language)
    asked = who_gains(trace, resolve_executors(None))
    return [b.symbol.name for b in trace.bound_symbols if grad_rule(b, asked) is not None]


gelu, linear = symbol_of(torch.nn.functional.gelu), symbol_of(torch.nn.functional.linear)
relu, sigmoid, tanh = (symbol_of(function) for function in (torch.relu, torch.sigmoid, torch.tanh))


def normalised(x, w):
    return symbol_of(torch.nn.functional.layer_norm)(x, (SIDE,), w, w)


def test_layer_normalisation_is_fused_with_what_is_around_it_and_its_derivative_is_pytorchs():
    x, w = torch.ones(SIDE, SIDE), torch.ones(SIDE)

    assert kernels(normalised, x, w) == []
    (kernel,) = kernels(lambda x, w: symbol_of(torch.relu)(normalised(x, w)) * x, x, w)
    assert [len(kernel.inputs), len(kernel.outputs)] == [2, 1]
    assert derived_by_pytorch(lambda x, w: normalised(x + x, w) * x, x, w) == ["layer_norm"]


def test_gelu_is_fused_with_what_is_around_it():
    x = torch.ones(SIDE, SIDE)

    assert kernels(gelu, x) == []
    assert len(kernels(lambda x, y: gelu(x + y) + y, x, x)) == 1


def by_tanh(x):
    return gelu(x, approximate="tanh")


SLOW = [tanh, by_tanh, *map(symbol_of, (torch.exp, torch.sin, torch.trunc, torch.isfinite, torch.nn.functional.mish))]
FAST = [gelu, sigmoid, *map(symbol_of, (torch.floor, torch.nn.functional.silu, torch.softmax))]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("function", SLOW)
def test_functions_for_which_pytorch_takes_twice_as_long_have_kernels_of_their_own(function, dtype):
    x = torch.ones(SIDE, 2 * SIDE, dtype=dtype)

    assert len(kernels(function, x)) == 1
    assert kernels(function, x[:4, :4].contiguous()) == []


@pytest.mark.parametrize("function", FAST)
def test_other_functions_have_none(function):
    x = torch.ones(SIDE, SIDE)

    assert kernels(lambda x: function(x, -1) if function is symbol_of(torch.softmax) else function(x), x) == []


@pytest.mark.parametrize("function", [tanh, by_tanh, symbol_of(torch.nn.functional.mish)])
def test_derivatives_of_functions_with_a_hyperbolic_tangent_are_in_kernels_also_alone(function):
    x = torch.ones(SIDE, SIDE)

    assert derived_by_pytorch(function, x) == []
    assert "gelu" not in derived_by_pytorch(lambda x: linear(by_tanh(linear(x, x)), x), x)


@pytest.mark.parametrize(
    ("program", "by_pytorch"),
    [
        (gelu, True),
        (lambda x: linear(gelu(linear(x, x)), x), True),
        (lambda x: linear(gelu(linear(x, x)), x) + x, True),
        (lambda x: gelu(normalised(x, x[0])), False),
        (lambda x: gelu(x.reshape(-1, 2)).reshape(SIDE, SIDE), True),
        (lambda x: gelu(x + 1), False),
        (lambda x: linear(gelu(linear(x, x) + x[0]), x), False),
        (lambda x: gelu(x) * x, False),
        (lambda x: linear(relu(linear(x, x)), sigmoid(x)), True),
        (lambda x: relu(sigmoid(x)), False),
    ],
    ids=["alone", "products", "residual", "normalised", "views", "sum", "bias", "gate", "others", "both"],
)
def test_derivatives_of_activations_are_in_kernels_where_something_can_be_fused_with_them(program, by_pytorch):
    derived = derived_by_pytorch(program, torch.ones(SIDE, SIDE))
    assert (not {"gelu", "relu", "sigmoid"}.isdisjoint(derived)) is by_pytorch


def test_arithmetic_and_conversions_of_half_precision_are_in_kernels():
    x = torch.ones(SIDE, 2 * SIDE, dtype=torch.bfloat16)

    (kernel,) = kernels(gated, x, x)
    assert [p.dtype for p in kernel.outputs] == [dtypes.bfloat16]
    assert len(kernels(lambda x: (symbol_of(torch.tanh)(x.to(torch.float32)) * 2).to(torch.bfloat16), x)) == 1


def programs_of_functions(x):
    return symbol_of(torch.softmax)(symbol_of(torch.nn.functional.silu)(x), -1)


def test_functions_and_reductions_of_bfloat16_are_in_kernels_and_those_of_float16_are_not():
    x = torch.ones(SIDE, 2 * SIDE, dtype=torch.bfloat16)
    small = x[:SIDE, :SIDE].contiguous()

    assert len(kernels(programs_of_functions, x)) == 1
    assert not kernels(programs_of_functions, x.to(torch.float16))
    assert not kernels(gated, small, small)


def test_gelu_and_layer_normalisation_of_bfloat16_are_pytorchs_beside_what_is_in_kernels():
    def program(x):
        return gelu(symbol_of(torch.nn.functional.layer_norm)(x, (2 * SIDE,)) * x + x)

    (kernel,) = kernels(program, torch.ones(SIDE, 2 * SIDE, dtype=torch.bfloat16))

    assert [b.symbol.name for b in kernel.subsymbols] == ["mul", "add"]


@pytest.mark.parametrize(("shape", "taken"), [((SIDE, SIDE), True), ((8, SIDE * SIDE), False)], ids=["many", "few"])
def test_what_is_cumulative_along_many_rows_is_in_kernels(shape, taken):
    def program(x):
        return symbol_of(torch.cumsum)(symbol_of(torch.exp)(x), -1) * x

    inside = [b for k in kernels(program, torch.ones(shape)) for b in k.subsymbols]

    assert any([b.symbol.name == "cumsum" for b in inside]) is taken


def from_the_end(x, along=0, back=0):
    return symbol_of(torch.flip)(symbol_of(torch.cumsum)(symbol_of(torch.flip)(x, (along,)), along), (back,)) * x


def test_what_is_cumulative_from_the_end_is_in_one_kernel_as_nothing_moves():
    x = torch.ones(SIDE, SIDE)

    def names(program, x):
        return [b.symbol.name for k in kernels(program, x) for b in k.subsymbols]

    assert names(from_the_end, x) == ["flip", "cumsum", "flip", "mul"]
    assert "flip" not in names(lambda x: from_the_end(x, 0, 1), x)
    assert "flip" not in names(from_the_end, torch.ones(SIDE * SIDE))
    assert not names(lambda x: symbol_of(torch.flip)(x, (0,)), x)


def test_cumulative_integers_are_left_to_others_so_that_what_they_lead_to_is_not():
    def program(x, weight):
        places = symbol_of(torch.cumsum)(x, 1)
        return symbol_of(torch.exp)(symbol_of(torch.nn.functional.embedding)(places, weight)) * 2

    made = kernels(program, torch.zeros(SIDE, SIDE, dtype=torch.int64), torch.ones(3, 4))

    assert len(made) == 1 and "cumsum" not in [b.symbol.name for b in made[0].subsymbols]


@pytest.mark.parametrize("pool", [torch.nn.functional.max_pool2d, torch.nn.functional.avg_pool2d])
def test_pooling_is_worth_a_kernel(pool):
    x = torch.ones(4, 4, SIDE, SIDE)

    def program(x):
        return symbol_of(pool)(x, 2)

    assert len(kernels(program, x)) == 1
    assert len(kernels(lambda x: program(symbol_of(torch.relu)(x)), x)) == 1
    assert not kernels(program, torch.ones(4, 4, 8, 8))
