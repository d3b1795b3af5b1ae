"""Calls of compiled functions that something watches which a program would hide operations from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from thunder_frontend import jit

CALLS = 12
"""After how many native code and all checks that are made for frequent calls are there."""


class Counting(TorchDispatchMode):
    """Counts what is dispatched."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


class CountingFunctions(TorchFunctionMode):
    """Counts calls of PyTorch's functions."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


class Held(nn.Module):
    """Has many parameters, and no tensor among its arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(300, 300)) for _ in range(8)])

    def forward(self) -> Tensor:
        x = self.weights[0]
        for weight in self.weights[1:]:
            x = torch.tanh(x * weight + 1)
        return x.sum()


def chain(x: Tensor) -> Tensor:
    return ((x.sin() * 2).relu() + 1).tanh()


def without_tensors(count: int) -> Tensor:
    return torch.full((300, 300), 2.0).sin().mul(count).tanh()


def called_often(function: Callable[..., Any], *args: Any) -> Any:
    compiled = jit(function)
    for _ in range(CALLS):
        compiled(*args)
    return compiled


@pytest.mark.parametrize("size", [4, 300 * 300])
def test_tangents_of_a_function_called_before(size: int) -> None:
    x, tangent = torch.randn(size), torch.randn(size)
    compiled = called_often(chain, x)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, tangent)
        found, expected = (forward_ad.unpack_dual(f(dual)).tangent for f in (compiled, chain))
    assert found is not None
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("gradients", [False, True])
def test_tangents_of_a_module_called_before(gradients: bool) -> None:
    model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(6)])
    x, tangent = torch.randn(2, 4), torch.randn(2, 4)
    with torch.set_grad_enabled(gradients):
        compiled = called_often(model, x)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, tangent)
            found, expected = (forward_ad.unpack_dual(f(dual)).tangent for f in (compiled, model))
    assert found is not None
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("function", "args"), [(Held(), ()), (without_tensors, (3,)), (chain, (torch.randn(300, 300),))]
)
def test_modes_see_each_operation_of_what_was_called_before(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    compiled = called_often(function, *args)
    with Counting() as expected:
        function(*args)
    with Counting() as found:
        compiled(*args)
    assert found.count == expected.count > 3


def test_modes_of_functions_where_programs_were_compiled_for_a_device() -> None:
    x = torch.randn(3)
    with torch.device("cpu"):
        compiled = called_often(chain, x)
    with CountingFunctions() as expected:
        chain(x)
    with CountingFunctions() as found:
        compiled(x)
    assert found.count == expected.count


@pytest.mark.parametrize(("function", "args"), [(Held(), ()), (without_tensors, (3,))])
def test_vmap_of_what_was_called_before_and_reads_no_batched_tensor(
    function: Callable[..., Any], args: tuple[Any, ...]
) -> None:
    compiled = called_often(function, *args)
    with torch.no_grad():
        found = torch.vmap(lambda x: x + compiled(*args))(torch.zeros(2))
        torch.testing.assert_close(found, torch.vmap(lambda x: x + function(*args))(torch.zeros(2)))


def test_tracing_writes_out_what_was_called_before() -> None:
    compiled = called_often(without_tensors, 3)
    traced = torch.jit.trace(lambda x: x + compiled(3), (torch.zeros(300, 300),), check_trace=False)
    assert {"aten::sin", "aten::tanh"} <= {node.kind() for node in traced.graph.nodes()}
