"""Every operation says what it does, and the examples in what it says run."""

import doctest

import pytest

import thunder_prims
from thunder_ir import Symbol

SYMBOLS = {name: s for name, s in vars(thunder_prims).items() if isinstance(s, Symbol)}


@pytest.mark.parametrize("name", sorted(SYMBOLS))
def test_operations_are_documented(name):
    assert SYMBOLS[name].doc.strip(), f"{name} says nothing"
    assert SYMBOLS[name].name == name


@pytest.mark.parametrize("name", sorted(n for n, s in SYMBOLS.items() if ">>>" in s.doc))
def test_examples_run(name):
    example = doctest.DocTestParser().get_doctest(SYMBOLS[name].doc, {}, name, None, None)
    assert doctest.DocTestRunner().run(example).failed == 0
