"""What functions of PyTorch call by name is asked anew each time, however fast."""

import itertools
import types

import pytest
import torch

from thunder_frontend import jit
from thunder_frontend._library_code.beneath_torch import Beneath, called_by_name


def doubled(*args, **kwargs):
    return 2


@pytest.fixture
def library():
    """A module of PyTorch's, whose function calls one beside it, which calls one of another module."""
    inner, outer = types.ModuleType("torch.inner"), types.ModuleType("torch.outer")
    exec("def deepest(x):\n    return x", inner.__dict__)
    outer.inner = inner
    exec("def beside(x):\n    return inner.deepest(x)\ndef top(x):\n    return beside(x)", outer.__dict__)
    return outer


@pytest.fixture
def beneath():
    """Asks anew each time, as if the program had written something since."""
    return Beneath(itertools.count().__next__)


def test_what_is_called_is_found_beside_a_function_and_in_other_modules(library):
    assert [name for _, name, _ in called_by_name(library.top)] == ["beside", "deepest"]


def replaced_at_once(library):
    library.beside = doubled


def replaced_beneath(library):
    library.inner.deepest = doubled


def replaced_module(library):
    library.inner = types.ModuleType("torch.inner")
    library.inner.deepest = doubled


def replaced_code(library):
    exec("def beside(x):\n    return inner.other(x)", scope := {"__name__": "torch.outer"})
    library.inner.other = doubled
    library.beside.__code__ = scope["beside"].__code__


@pytest.mark.parametrize("change", [replaced_at_once, replaced_beneath, replaced_module, replaced_code])
def test_a_replacement_is_seen_after_any_number_of_questions(beneath, library, change):
    for _ in range(3):
        assert not beneath.was_replaced(library.top)
    change(library)
    for _ in range(2):
        assert beneath.was_replaced(library.top)


def test_what_is_put_back_is_pytorchs_own_again(beneath, library):
    before = library.beside
    assert not beneath.was_replaced(library.top)
    library.beside = doubled
    assert beneath.was_replaced(library.top)
    library.beside = before
    assert not beneath.was_replaced(library.top)


def test_another_code_of_the_function_itself_is_looked_through(beneath, library):
    assert not beneath.was_replaced(library.top)
    library.inner.other = doubled
    exec("def top(x):\n    return inner.other(x)", scope := {"__name__": "torch.outer"})
    library.top.__code__ = scope["top"].__code__
    assert beneath.was_replaced(library.top)


def test_functions_of_pytorch_are_its_own(beneath):
    for function in (torch.nn.functional.layer_norm, torch.nn.functional.multi_head_attention_forward):
        assert not beneath.was_replaced(function)
        assert not beneath.was_replaced(function)


def test_where_nothing_was_written_the_answer_is_kept(library):
    version = [0]
    beneath = Beneath(lambda: version[0])
    assert not beneath.was_replaced(library.top)
    library.beside = doubled
    assert not beneath.was_replaced(library.top)
    version[0] += 1
    assert beneath.was_replaced(library.top)


COUNT = 2.0


def test_a_method_kept_before_it_was_replaced_is_itself_in_programs_that_leave_numbers_open(monkeypatch):
    kept = torch.Tensor.sin

    def program(x):
        global COUNT
        before, COUNT = COUNT, COUNT + 1
        return kept(x * before)

    compiled, x = jit(program), torch.tensor([0.5, 1.0])
    compiled(x)
    monkeypatch.setattr(torch.Tensor, "sin", lambda self: kept(self) * 2)
    for _ in range(2):
        expected = kept(x * COUNT)
        torch.testing.assert_close(compiled(x), expected)
