"""``grad`` and ``value_and_grad`` of compiled functions and modules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from thunder_frontend._compiled import CompiledFunction
from thunder_frontend._jit import asking, jit
from thunder_frontend._library_code.module_calls import is_acquired
from thunder_frontend._module import ThunderModule


def value_and_grad(fn: Callable[..., Any]) -> Callable[..., tuple[Any, tuple[Any, ...]]]:
    """Return a function that returns what ``fn`` returns, and the gradients of the sum of it.

    Args:
        fn: a callable or module, compiled by ``jit`` or not.

    Returns:
        A function of the same arguments, which can be differentiated and compiled in turn. Its gradients are one per
        tensor that requires grad, first those among the arguments, in order, then, for a module, its parameters;
        ``None`` for one that the result does not depend on.

    Raises:
        TypeError: when called with nothing that requires grad, or if nothing returned has a gradient.

    Example:
        >>> import torch
        >>> from thunder_frontend import value_and_grad
        >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
        >>> value_and_grad(lambda x: (x**2).sum())(x)
        (tensor(5., grad_fn=<CompiledBackward>), (tensor([2., 4.]),))
    """
    compiled = fn if isinstance(fn, (CompiledFunction, ThunderModule)) else jit(fn)

    def run(*args: Any, **kwargs: Any) -> tuple[Any, tuple[Any, ...]]:
        inputs = [t for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.requires_grad]
        if isinstance(compiled, ThunderModule):
            inputs += [p for p in compiled.parameters() if p.requires_grad]
        if not inputs:
            raise TypeError("nothing requires grad: neither a tensor among the arguments nor a parameter")
        with torch.enable_grad():
            value = compiled(*args, **kwargs)
        results = [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor) and t.requires_grad]
        if not results:
            raise TypeError("nothing that was returned has a gradient")
        ones = [torch.ones_like(t) for t in results]
        # Inside of another program, which may be differentiated itself, gradients have gradients.
        again = is_acquired()
        return value, torch.autograd.grad(results, inputs, ones, create_graph=again, allow_unused=True)

    return asking(compiled, run)


def grad(fn: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
    """Return a function that returns the gradients of the sum of what ``fn`` returns; see :func:`value_and_grad`.

    Args:
        fn: a function or module.

    Returns:
        a function of the arguments of ``fn``.

    Example:
        >>> import torch
        >>> from thunder_frontend import grad
        >>> grad(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0], requires_grad=True))
        (tensor([ 3., 12.]),)
    """
    both = value_and_grad(fn)

    def run(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return both(*args, **kwargs)[1]

    return asking(both, run)
