"""Calls that write to their arguments become calls that return values."""

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from thunder_ir import trace_of
from thunder_torch import find_symbol, functional_of, functionalise, opaque, proxy_of
from thunder_torch.convert import fake_of
from thunder_torch.errors import UnsupportedMutationError
from thunder_torch.names import PLACES
from thunder_torch.only_views import fake_views, is_only_view
from thunder_torch.views import view_argument, viewed


def agree(function, *args, seed=None, **kwargs):
    """Compare a call that writes with what its functional form says it writes."""
    copies = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    torch.manual_seed(0)
    expected = function(*copies, **kwargs)
    mutation = functionalise(function, args, kwargs)
    torch.manual_seed(0)
    output = mutation.function(*mutation.args, **mutation.kwargs)
    values = mutation.values(output)
    for target, value in zip(mutation.targets, values, strict=True):
        place = next(i for i, a in enumerate(args) if a is target)
        torch.testing.assert_close(value.to(target.dtype), copies[place], equal_nan=True)
    return expected, mutation, output


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (torch.Tensor.add_, (2,)),
        (torch.Tensor.__imul__, (3,)),
        (torch.Tensor.clamp_, (0, 1)),
        (torch.Tensor.zero_, ()),
        (torch.Tensor.fill_, (4.0,)),
        (torch.Tensor.copy_, (torch.arange(3),)),
        (torch.Tensor.index_fill_, (0, torch.tensor([1]), 5.0)),
        (torch.Tensor.normal_, ()),
        (torch.Tensor.bernoulli_, (0.3,)),
        (torch.Tensor.fill_diagonal_, (1.0,)),
        (torch.Tensor.__setitem__, (0, 7.0)),
        (torch.relu_, ()),
        (F.relu_, ()),
        (F.leaky_relu, (0.1, True)),
        (F.elu_, ()),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_values_are_what_eager_writes(function, args):
    a = torch.randn(3, 3) if function is torch.Tensor.fill_diagonal_ else torch.randn(3)
    agree(function, a, *args)


def test_inplace_argument_is_a_write_and_its_absence_none():
    assert functionalise(F.silu, (torch.ones(2),), {"inplace": True}).kwargs == {}
    assert functionalise(F.silu, (torch.ones(2),), {"inplace": False}) is None
    assert functionalise(torch.add, (torch.ones(2), 1), {}) is None


def test_out_is_a_write():
    out = torch.empty(2)
    mutation = functionalise(torch.add, (torch.ones(2), 1), {"out": out})
    assert mutation.targets[0] is out and mutation.kwargs == {}
    values = torch.empty(2), torch.empty(2, dtype=torch.long)
    mutation = functionalise(torch.max, (torch.ones(2, 2), 1), {"out": values})
    assert mutation.targets == values and mutation.written == 2


def test_running_statistics_are_written():
    a, mean, var = torch.randn(4, 3, 2), torch.zeros(3), torch.ones(3)
    expected, mutation, output = agree(F.batch_norm, a, mean, var, training=True)
    torch.testing.assert_close(mutation.result(output), expected)
    assert functionalise(F.batch_norm, (a, mean, var), {"training": False}) is None


def test_a_custom_operator_that_mutates_returns_what_it_writes():
    @torch.library.custom_op("thundertest::bump", mutates_args=("a",))
    def bump(a: torch.Tensor, by: float) -> torch.Tensor:
        a.add_(by)
        return a.sum()

    bump.register_fake(lambda a, by: a.new_empty(()))
    operator = torch.ops.thundertest.bump.default
    expected, mutation, output = agree(operator, torch.ones(3), 2.0)
    torch.testing.assert_close(mutation.result(output), expected)
    assert not mutation.returns_targets


def test_refuses_what_changes_metadata():
    with pytest.raises(UnsupportedMutationError, match="transpose_ changes the shape or memory"):
        functionalise(torch.Tensor.transpose_, (torch.ones(2, 2), 0, 1), {})


def test_every_inplace_method_has_a_functional_form():
    methods = [getattr(torch.Tensor, n) for n in dir(torch.Tensor) if n.endswith("_") and not n.endswith("__")]
    missing = [m.__name__ for m in methods if callable(m) and functional_of(m) is None]
    assert set(missing) <= {"requires_grad_", "share_memory_", "_view_func_unsafe", "apply_", "map_", "map2_"} | {
        n for n in missing if n.startswith("_")
    }


def test_functional_forms_of_composed_methods_are_composed():
    for name in ("add_", "mul_", "relu_", "clamp_", "sigmoid_", "masked_fill_", "scatter_add_", "tril_"):
        assert find_symbol(functional_of(getattr(torch.Tensor, name))) is not None


def test_knows_which_argument_is_viewed():
    for function in (torch.transpose, torch.Tensor.view, torch.Tensor.expand, torch.split, torch.Tensor.__getitem__):
        assert view_argument(function) == 0, function
    for function in (torch.add, torch.clone, torch.cat, F.linear, torch.flip):
        assert view_argument(function) is None, function
    assert view_argument(torch.Tensor.T.__get__) == 0
    assert view_argument(opaque(torch.as_strided)) == 0


def test_tells_views_from_copies_by_strides():
    a = proxy_of(torch.ones(2, 3), "a")
    t = proxy_of(torch.ones(3, 2).t(), "t")
    assert viewed(torch.reshape, (a, (6,)), {}) == [a] or viewed(torch.reshape, (a, (6,)), {})[0] is a
    assert viewed(torch.reshape, (t, (6,)), {})[0] is None
    assert viewed(torch.Tensor.contiguous, (t,), {})[0] is None
    assert viewed(torch.Tensor.__getitem__, (a, 0), {})[0] is a
    assert viewed(torch.Tensor.__getitem__, (a, [0, 1]), {})[0] is None


@pytest.mark.parametrize(
    ("function", "args", "kwargs"),
    [
        (torch.transpose, (0, 2), {}),
        (torch.Tensor.__getitem__, ((slice(1, None, 2), ..., -1),), {}),
        (torch.Tensor.__getitem__, (..., ), {}),
        (torch.as_strided, ((2, 2), (3, 1), 5), {}),
        (torch.split, (2,), {"dim": 1}),
        (torch.Tensor.chunk, (2,), {}),
        (torch.unbind, (1,), {}),
        (torch.Tensor.unfold, (2, 3, 2), {}),
        (torch.Tensor.view, (torch.int32,), {}),
        (torch.Tensor.expand, (2, 4, 5, 6), {}),
        (torch.detach, (), {}),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)  # fmt: skip
def test_views_of_tensors_without_data_are_those_that_pytorch_makes(function, args, kwargs):
    base = torch.ones(4, 5, 6)
    fake = fake_of(proxy_of(base, "a"))
    assert is_only_view(function, (fake, *args), kwargs)
    expected, made = function(base, *args, **kwargs), fake_views(function, (fake, *args), kwargs)

    expected, made = ([t] if isinstance(t, torch.Tensor) else list(t) for t in (expected, made))
    assert len(made) == len(expected)
    for view, like in zip(made, expected, strict=True):
        assert (view.shape, view.stride(), view.dtype) == (like.shape, like.stride(), like.dtype)
        assert view.storage_offset() == like.storage_offset() and view.device == like.device
        assert view.untyped_storage()._cdata == fake.untyped_storage()._cdata


def test_what_may_compute_is_not_taken_for_a_view():
    a = torch.ones(1, 1, 4, 4)
    for function, args in [
        (F.unfold, (2,)), (torch.reshape, (16,)), (torch.Tensor.to, ("cpu",)), (torch.Tensor.contiguous, ()),
        (torch.Tensor.resolve_conj, ()), (torch.Tensor.__getitem__, ([0],)), (torch.Tensor.expand, (a,)),
    ]:  # fmt: skip
        assert not is_only_view(function, (a, *args), {}), function


def test_names_of_the_language_are_found():
    assert all(place is not None for _, place, _ in PLACES)
    trace = trace_of(lambda x: find_symbol(torch.Tensor.add)(x, 1), proxy_of(torch.ones(2)))
    assert "ltorch.add" in str(trace)
