"""The package imports where llvmlite does not, and says why it cannot run."""

import importlib.util
import sys

from thunder_executors_llvm import binding


def test_a_missing_llvmlite_is_a_reason_and_no_failure(monkeypatch):
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    spec = importlib.util.spec_from_file_location("binding_without_llvmlite", binding.__file__)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    assert module.IMPORT_ERROR.startswith("llvmlite cannot be imported")
