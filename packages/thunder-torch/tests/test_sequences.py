"""Metadata of recurrent layers, told for few steps, are those of PyTorch's own results."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch
from torch import nn

from thunder_torch.convert import proxy_of
from thunder_torch.metadata import metadata_of, spec_of
from thunder_torch.sequences import told_by_fewer_steps, with_few_steps

LAYERS = {torch.gru: nn.GRU, torch.lstm: nn.LSTM, torch.rnn_tanh: nn.RNN}
CASES = list(itertools.product(LAYERS, (False, True), (False, True), (1, 2)))


def arguments(function: Any, batch_first: bool, bidirectional: bool, layers: int, length: int) -> Any:
    """Return the arguments that a layer of PyTorch calls its function with."""
    layer = LAYERS[function](4, 5, layers, bidirectional=bidirectional, batch_first=batch_first)
    shape = (3, length, 4) if batch_first else (length, 3, 4)
    hidden = torch.zeros(layers * (2 if bidirectional else 1), 3, 5)
    state = (hidden, hidden.clone()) if function is torch.lstm else hidden
    return torch.randn(shape), state, list(layer.parameters()), True, layers, 0.0, True, bidirectional, batch_first


@pytest.mark.parametrize("length", [3, 40])
@pytest.mark.parametrize(("function", "batch_first", "bidirectional", "layers"), CASES)
def test_metadata_are_those_of_the_result(
    function: Any, batch_first: bool, bidirectional: bool, layers: int, length: int
) -> None:
    args = arguments(function, batch_first, bidirectional, layers, length)
    found = metadata_of(function, proxies(args), {})
    for told, real in zip(found, function(*args), strict=True):
        assert told.shape == tuple(real.shape)
        assert told.requires_grad == real.requires_grad
        assert told.strides == real.stride()


def test_steps_do_not_grow_with_the_length() -> None:
    steps: list[int] = []

    def tell(args: tuple[Any, ...]) -> Any:
        steps.append(args[0].shape[0])
        return spec_of(torch.gru, args, {})

    for length in (40, 4000):
        args = proxies(arguments(torch.gru, False, False, 1, length))
        found = told_by_fewer_steps(tell, torch.gru, args)
        assert found[0].shape == (length, 3, 5)
    assert steps == [7, 11] * 2, "primes that are none of the layer's sizes"
    assert with_few_steps(torch.gru, args)[0].shape == (5, 3, 4)


def test_what_pytorch_refuses_is_refused() -> None:
    args = arguments(torch.gru, False, False, 1, 40)
    wrong = (torch.randn(40, 3, 9), *args[1:])
    with pytest.raises(RuntimeError) as theirs:
        torch.gru(*wrong)
    with pytest.raises(RuntimeError) as ours:
        metadata_of(torch.gru, proxies(wrong), {})
    assert str(ours.value) == str(theirs.value)


def proxies(args: Any) -> Any:
    """Return arguments with proxies in place of tensors."""
    if isinstance(args, torch.Tensor):
        return proxy_of(args)
    return type(args)(map(proxies, args)) if isinstance(args, (tuple, list)) else args
