"""Writes of what requires grad to views of inputs that view something else themselves, by each way that comes to be."""

import pytest
import torch

from thunder_frontend import AcquisitionError, jit


def viewing():
    return torch.linspace(2, 1, 6).reshape(2, 3)


def viewing_without_grad_mode():
    with torch.no_grad():
        return torch.linspace(2, 1, 6).reshape(2, 3)


def detached():
    return torch.linspace(2, 1, 6).requires_grad_().reshape(2, 3).detach()


def part():
    return torch.linspace(2, 1, 9).reshape(3, 3)[1:]


def piece():
    return torch.linspace(2, 1, 12).reshape(4, 3).split(2)[1]


def leaf_that_views():
    return torch.linspace(2, 1, 6).reshape(2, 3).requires_grad_()


def alone():
    return torch.linspace(2, 1, 6).reshape(2, 3).clone()


def view_written(x, y):
    v = y.view(2, 3)
    v.mul_(x)
    return [v]


def view_and_input(x, y):
    v = y.view(6)
    v[1:] = x.flatten()[1:]
    return [v, y]


def input_and_view(x, y):
    v = y.permute(0, 1).reshape(2, 3)
    v[0] = x[1]
    return [y, v]


def computed_of(x, y):
    v = y.t()
    v.mul_(x.t())
    return [v * v, y]


def written_before(x, y):
    v = y.view(2, 3)
    y.mul_(x)
    return [v, y]


def written_twice(x, y):
    v = y.view(2, 3)
    y.mul_(x)
    v.mul_(3)
    return [v * 2, y]


def viewed_again(x, y):
    v = y.view(2, 3)
    v.mul_(x)
    return [v, y.view(3, 2), y]


GIVEN = (viewing, viewing_without_grad_mode, detached, part, piece, leaf_that_views, alone)
PROGRAMS = (view_written, view_and_input, input_and_view, computed_of, written_before, written_twice, viewed_again)


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_go_through_writes_to_views_of_inputs(program, given):
    def outcome(function):
        leaf = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
        y = given()
        try:
            results = function(leaf * 1, y)
        except RuntimeError:
            return "raised"
        sum([(i + 1) * result.sum() for i, result in enumerate(results)]).backward()
        return [r.detach() for r in results], leaf.grad, y.detach(), y.requires_grad, y.is_leaf

    compiled, expected = jit(program, fallback="error"), outcome(program)
    for _ in range(2):
        found = outcome(compiled)
        assert (found == "raised") is (expected == "raised")
        if expected != "raised":
            torch.testing.assert_close(found[:3], expected[:3])
            assert found[3:] == expected[3:]


def test_parts_of_a_written_tensor_that_values_tell_are_views_of_it():
    def function(x, at):
        x = x * 2
        x.add_(1)
        return x, *torch.tensor_split(x, at, 1)

    run = jit(function)
    for indices in ([1, 3], [2, 2]):
        x, at = torch.randn(3, 4), torch.tensor(indices)
        found, expected = run(x, at), function(x, at)
        torch.testing.assert_close(found, expected)
        assert len({t.untyped_storage().data_ptr() for t in found}) == 1


def test_a_write_through_a_part_that_values_place_is_refused_or_left_to_python():
    def program(x, at):
        torch.tensor_split(x, at)[0].mul_(2)
        return x

    ours, at = torch.ones(4), torch.tensor([3])
    with pytest.raises(AcquisitionError, match=r"a write through a part .* tensor_split\(\)") as raised:
        jit(program, fallback="error")(ours, at)
    assert "torch.tensor_split(x, at)[0].mul_(2)" in str(raised.value)
    torch.testing.assert_close(ours, torch.ones(4))
    assert jit(program, fallback="split")(ours, at) is ours
    torch.testing.assert_close(ours, program(torch.ones(4), at))
