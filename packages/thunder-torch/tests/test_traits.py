"""Traits are those of an operation, by whatever callable of PyTorch's it is reached."""

import pytest
import torch
import torch.nn.functional as F

from thunder_torch.traits import Trait, has_trait, state


@pytest.mark.parametrize(
    "function", [torch.split, torch.Tensor.split, torch.ops.aten.split.Tensor, torch.ops.aten.split]
)
def test_an_operation_has_its_traits_wherever_pytorch_has_it(function):
    assert has_trait(function, Trait.SPLITS)
    assert not has_trait(function, Trait.DRAWS)


def test_what_another_operation_is_called_is_not_mistaken_for_it():
    assert has_trait(torch.Tensor.unfold, Trait.ONLY_VIEWS)
    assert not has_trait(F.unfold, Trait.ONLY_VIEWS)  # puts patches side by side: another operation by that name


def test_a_function_of_the_users_is_not_mistaken_for_pytorchs_by_its_name():
    def dropout(a):
        return a

    assert has_trait(F.dropout, Trait.DRAWS)
    assert not has_trait(dropout, Trait.DRAWS)
    state(dropout, traits=(Trait.DRAWS,))
    assert has_trait(dropout, Trait.DRAWS)


def test_nothing_is_said_of_what_no_table_can_hold():
    class Unhashable:
        __hash__ = None

        def __call__(self, a):
            return a

    assert not has_trait(Unhashable(), Trait.MAY_FAIL)
