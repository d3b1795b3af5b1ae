"""Functions that are wanted together are compiled together, and each is found on disk whatever others are wanted."""

import ctypes
import math

import pytest

from thunder_executors_llvm import binding, executor, loading
from thunder_executors_llvm.disk import Disk
from thunder_executors_llvm.library import address_of
from thunder_executors_llvm.loading import Function, functions_in_memory

pytestmark = pytest.mark.skipif(executor.missing() is not None, reason=f"it cannot run: {executor.missing()}")

CALLS = ("cos", "sin", "exp")


def functions(*names):
    return [Function(name, {name: address_of(name)}) for name in names]


def run(names, disk, address=address_of):
    """Return what functions make of 1.0, each of which calls one of the C library's, and what was compiled for it."""
    compiled = []

    def module(new):
        compiled.append([names[number] for number in new])
        texts = [f"declare double @{names[number]}(double)" for number in new]
        for number, name in new.items():
            call = f"%y = call double @{names[number]}(double %x)"
            texts.append(f"define double @{name}(double %x) {{\n{call}\nret double %y\n}}")
        return "\n".join(texts)

    places = functions_in_memory(functions(*names), module, binding.host(), disk, address)
    of_c = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)
    return [of_c(place)(1.0) for place in places], compiled


@pytest.fixture
def disk(tmp_path):
    return Disk(tmp_path / "objects")


def expected(*names):
    return [getattr(math, name)(1.0) for name in names]


def test_those_that_are_new_are_compiled_in_one_module(disk):
    assert run(CALLS, None) == (expected(*CALLS), [[*CALLS]])
    assert run(("cos", "sin"), disk) == (expected("cos", "sin"), [["cos", "sin"]])
    assert run(("exp", "sin", "cos"), disk) == (expected("exp", "sin", "cos"), [["exp"]])


@pytest.mark.parametrize("name", ["cos", "sin"])
def test_each_is_found_without_the_others(disk, name):
    run(("cos", "sin"), disk)
    assert run((name,), disk) == (expected(name), [])


def test_one_whose_neighbours_call_what_is_not_there_is_compiled_again(disk):
    run(("cos", "sin"), disk)
    assert run(("cos",), disk, lambda name: None) == (expected("cos"), [["cos"]])


def test_llvm_loads_what_nothing_else_does(disk, monkeypatch):
    run(("cos", "sin"), disk)
    monkeypatch.setattr(loading.objects, "load_object", lambda *given: None)
    assert run(("sin",), disk) == (expected("sin"), [])
