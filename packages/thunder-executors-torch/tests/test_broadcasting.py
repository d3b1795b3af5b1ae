"""Operands that arithmetic repeats by itself are not expanded before, and results have the same bits."""

import pytest
import torch

import thunder_prims as prims
from thunder_executors import runnable, transform_for_execution
from thunder_ir import trace_of
from thunder_torch import proxy_of


def spread(a, shape, *dims):
    return prims.broadcast_in_dim(a, shape, dims)


def expanded(program, *tensors):
    """Return how often a program that is ready to run expands a tensor; its results are those call by call."""
    trace = trace_of(program, *[proxy_of(t, "") for t in tensors])
    made = transform_for_execution(trace, [])
    found, expected = runnable([made], [])(*tensors), program_in_torch(program, tensors)
    assert found.shape == expected.shape and found.stride() == expected.stride() and torch.equal(found, expected)
    return sum(bound.symbol.path == "torch.Tensor.expand" for bound in made.bound_symbols)


def program_in_torch(program, tensors):
    """Run a program whose tensors are expanded as they say."""
    names = {"add": torch.add, "mul": torch.mul, "where": torch.where, "pow": torch.pow, "lt": torch.lt}
    with pytest.MonkeyPatch.context() as patch:
        for name, function in names.items():
            patch.setattr(prims, name, function)

        def broadcast_in_dim(a, shape, dims):
            sizes = [a.shape[dims.index(d)] if d in dims else 1 for d in range(len(shape))]
            return a.view(sizes).expand(shape)

        patch.setattr(prims, "broadcast_in_dim", broadcast_in_dim)
        return program(*tensors)


X, ROW, COLUMN, ONE, MASK = torch.randn(4, 6), torch.randn(6), torch.randn(4), torch.tensor(3.0), torch.randn(4, 6) > 0


def test_what_arithmetic_repeats_is_not_expanded():
    assert not expanded(lambda x, r: prims.mul(x, spread(r, (4, 6), 1)), X, ROW)
    assert not expanded(lambda x, c: prims.add(spread(c, (4, 6), 0), x), X, COLUMN)
    assert not expanded(lambda r, c: prims.add(spread(c, (4, 6), 0), spread(r, (4, 6), 1)), ROW, COLUMN)
    assert not expanded(lambda m, x, r: prims.where(m, spread(r, (4, 6), 1), x), MASK, X, ROW)


def test_what_nothing_else_has_the_shape_of_stays_expanded():
    assert expanded(lambda r: prims.mul(spread(r, (4, 6), 1), 2.0), ROW) == 1
    assert expanded(lambda r: prims.add(spread(r, (4, 6), 1), spread(r, (4, 6), 1)), ROW) == 1


def test_what_others_read_or_has_no_dimensions_stays_expanded():
    assert expanded(lambda x, r: prims.pow(x, spread(r, (4, 6), 1)), X.abs(), ROW) == 1
    assert expanded(lambda x, a: prims.mul(x, spread(a, (4, 6))), X, ONE) == 1
