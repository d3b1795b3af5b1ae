"""Without llvmlite the executor says so, and programs run without it."""

import sys

import pytest

from thunder_executors_llvm import binding, compiler, executor
from thunder_ir import Tensor, trace_of
from thunder_prims import add


@pytest.fixture
def no_llvmlite(monkeypatch):
    asked = (binding.missing, binding.load_error, binding._llvm, compiler._key, compiler._remembered)
    for name in ("llvmlite", "llvmlite.binding"):
        monkeypatch.setitem(sys.modules, name, None)
    for question in asked:
        question.cache_clear()
    yield
    for question in asked:
        question.cache_clear()


def test_a_missing_llvmlite_is_a_reason_and_no_failure(no_llvmlite):
    assert executor.missing() == "llvmlite is not installed"


def test_a_library_that_does_not_load_leaves_programs_to_others(no_llvmlite):
    large = trace_of(lambda x: add(x, x), Tensor((1024, 1024)))

    assert compiler.load_error().startswith("llvmlite cannot be imported")
    assert executor.careful.within(large) is None
    assert executor.within(large) is executor  # who names it hears what is wrong
