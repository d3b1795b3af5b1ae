"""Runs a callable eagerly and compiled, on copies of the same arguments, and compares all that a caller can see."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from thunder_frontend import compile_data, jit


def copied(value: Any) -> Any:
    """Return a deep copy in which tensors are leaves of their own."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if hasattr(value, "_make"):
        return value._make([copied(item) for item in value])
    if isinstance(value, (list, tuple)):
        return type(value)([copied(item) for item in value])
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return copy.deepcopy(value)


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the tensors in a tree, in order."""
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def sharing(found: list[torch.Tensor]) -> list[list[bool]]:
    """Return for each pair of tensors whether they share memory."""
    return [[a.untyped_storage()._cdata == b.untyped_storage()._cdata for a in found] for b in found]


def outcome(function: Callable[..., Any], args: Any, kwargs: Any, seed: int) -> Any:
    """Return what a call returns, or the exception that it raises."""
    torch.manual_seed(seed)
    try:
        return function(*args, **kwargs)
    except Exception as error:  # compared by the caller
        return error


def differentiate(result: Any) -> None:
    """Call ``backward`` on all that has a gradient in a result."""
    found = [t for t in tensors(result) if t.requires_grad]
    if found:
        sum((t.abs().sum() if t.is_complex() else t.float().sum()) for t in found).backward()


def same_as_eager(function: Callable[..., Any], *args: Any, calls: int = 2, strides: bool = True, **kwargs: Any) -> Any:
    """Compare values, dtypes, strides, aliasing, writes to arguments, gradients and exceptions over several calls.

    Args:
        function, args, kwargs: what is called with what.
        calls: how often.
        strides: whether results must be laid out in the same way.

    Returns:
        The compiled function.
    """
    compiled = jit(function)
    eager_args, our_args = copied((args, kwargs)), copied((args, kwargs))
    for seed in range(calls):
        expected = outcome(function, *eager_args, seed)
        result = outcome(compiled, *our_args, seed)
        if isinstance(expected, Exception):
            assert type(result) is type(expected), (result, expected)
            if not compile_data(compiled).compiled:  # else it was raised when the program ran, as a whole
                compare(None, None, our_args, eager_args)
            continue
        if isinstance(result, Exception):
            raise result
        compare(result, expected, our_args, eager_args, strides)
    return compiled


def compare(result: Any, expected: Any, our_args: Any, eager_args: Any, strides: bool = True) -> None:
    """Compare two results, and the arguments after the calls."""
    assert type(result) is type(expected)
    ours, eagers = tensors((our_args, result)), tensors((eager_args, expected))
    assert len(ours) == len(eagers)
    for our, eager in zip(ours, eagers, strict=True):
        torch.testing.assert_close(our, eager, rtol=1e-6, atol=1e-6)
        assert our.stride() == eager.stride() or not strides
        assert our.requires_grad == eager.requires_grad
        assert type(our) is type(eager)
    assert sharing(ours) == sharing(eagers)
    rest = [x for x in pytree.tree_leaves(result) if not isinstance(x, torch.Tensor)]
    assert rest == [x for x in pytree.tree_leaves(expected) if not isinstance(x, torch.Tensor)]
    differentiate(result)
    differentiate(expected)
    for our, eager in zip(tensors(our_args), tensors(eager_args), strict=True):
        if eager.is_leaf and eager.requires_grad:
            assert (our.grad is None) == (eager.grad is None)
            if eager.grad is not None:
                torch.testing.assert_close(our.grad, eager.grad)


def module_same_as_eager(make: Callable[[], torch.nn.Module], *args: Any, calls: int = 3) -> None:
    """Compare the results, parameters, buffers and gradients of a module over several calls.

    Args:
        make: makes the module, equal ones each time.
        args: what it is called with.
        calls: how often.
    """
    eager, ours = make(), make()
    compiled = jit(ours)
    kept = list(ours.state_dict(keep_vars=True).values())
    for _ in range(calls):
        expected, result = eager(*args), compiled(*args)
        differentiate(expected)
        differentiate(result)
        states = [module.state_dict(keep_vars=True) for module in (ours, eager)]
        assert list(states[0]) == list(states[1])
        for name, our in states[0].items():
            other = states[1][name]
            torch.testing.assert_close(our, other, msg=name)
            assert (our.requires_grad, our.is_leaf, type(our)) == (other.requires_grad, other.is_leaf, type(other)), (
                name
            )
            assert (our.grad is None) == (other.grad is None), name
            if other.grad is not None:
                torch.testing.assert_close(our.grad, other.grad, msg=name)
        found = [[*tensors(r), *s.values()] for r, s in zip((result, expected), states, strict=True)]
        for our, other in zip(*found, strict=True):
            torch.testing.assert_close(our, other)
            assert our.stride() == other.stride() and our.requires_grad == other.requires_grad
        assert sharing(found[0]) == sharing(found[1])
    assert [a is b for a, b in zip(kept, states[0].values(), strict=True)] == [True] * len(kept)
