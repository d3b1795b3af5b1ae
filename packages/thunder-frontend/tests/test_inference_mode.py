"""Tensors made in inference mode are inference tensors, whether the program enters the mode or the caller has."""

import pytest
import torch
from against_eager import same_as_eager

from thunder_frontend import jit


@torch.inference_mode()
def doubled(x):
    return x * 2


def makes(x):
    with torch.inference_mode():
        y = x * 2
        parts = (x[0], y[1:], torch.zeros(2), x.unbind(0)[0], y.unbind(0)[1], torch.as_tensor(x), x.detach())
    return *parts, y, y[0], y.clone(), y * 2, y.data, y.is_inference(), parts[0].is_inference(), y[0].is_inference()


def decorated(x):
    return doubled(x), doubled(x).view(-1), x.view(-1)


def writes_to_argument(x):
    with torch.inference_mode():
        x.add_(1)
        x[0].mul_(2)
    return x.is_inference()


def turns_argument(x):
    with torch.inference_mode():
        x = x.detach()
        x.t_()
    return x


def enables_gradients(x):
    with torch.inference_mode(), torch.enable_grad():
        y = x.clone()
        y.add_(x)
        x.add_(1)
        x.detach_()
    return x * y.requires_grad, y, x.requires_grad


def writes_to_made(x):
    y = doubled(x)
    with torch.inference_mode():
        y.add_(1)
        view = y.view(-1)
        view[0] = 9
    return y, view


def writes_outside(x):
    return doubled(x).add_(1)


def turns_outside(x):
    return doubled(x).t_()


def begins_leaf(x):
    return doubled(x).requires_grad_()


def asks_version(x):
    return doubled(x)._version


def leaves_mode(x):
    with torch.inference_mode(False):
        y = x.detach() * 2
    return y, y.view(-1), x.view(-1), y.is_inference()


def takes_memory(x):
    x.data = doubled(x)
    return x.is_inference(), x


def writes_data_outside(x):
    y = doubled(x)
    y.data.copy_(x.sum())
    return y


def returns_argument(x):
    with torch.inference_mode():
        y = torch.nn.functional.dropout(x, 0.3, False)
        z = x.contiguous().to(x.dtype)
    return y is x, z is x


def goes_on(x):
    return doubled(x) + x


def normal():
    return torch.ones(2, 2)


def inference():
    with torch.inference_mode():
        return normal()


def requiring():
    return normal().requires_grad_()


def told(function, make, mode):
    """What two calls return and leave, or raise, and which of it are inference tensors."""
    x, found = make(), []
    for _ in range(2):
        try:
            with torch.inference_mode(mode):
                result = function(x)
        except RuntimeError:
            found.append("raised")
            continue
        results = result if isinstance(result, tuple) else (result,)
        found += [
            (r.is_inference(), r.requires_grad, r.tolist()) if isinstance(r, torch.Tensor) else r for r in (*results, x)
        ]
    return found


@pytest.mark.parametrize("mode", [False, True])
@pytest.mark.parametrize("make", [normal, inference, requiring])
@pytest.mark.parametrize(
    "program",
    [
        makes, decorated, writes_to_argument, turns_argument, enables_gradients, writes_to_made, writes_outside, turns_outside, begins_leaf, asks_version,
        leaves_mode, takes_memory, writes_data_outside, returns_argument, goes_on,
    ],
)  # fmt: skip
def test_results_are_inference_tensors_where_eagers_are(program, make, mode):
    assert told(jit(program), make, mode) == told(program, make, mode)


def test_what_requires_grad_is_resized_to_the_shape_that_it_has():
    def program(x):
        with torch.inference_mode():
            x.resize_(x.shape)
        return x * 2

    same_as_eager(program, torch.ones(2, 3, requires_grad=True))


def test_what_was_made_in_inference_mode_is_resized_to_the_shape_that_it_has():
    def program(x):
        with torch.inference_mode():
            made = (x * 2).detach().requires_grad_()
        made.resize_(made.shape)
        return x * 3, made.clone()

    same_as_eager(program, torch.ones(2, 3, requires_grad=True))
