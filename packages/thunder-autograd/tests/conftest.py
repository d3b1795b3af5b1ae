"""Makes the modules beside the tests importable, whatever pytest's import mode, and gradients addable."""

import importlib
import sys
from pathlib import Path

import pytest

from thunder_ir.trace import DEFAULT

sys.path.insert(0, str(Path(__file__).parent))
toy = importlib.import_module("toy_language").toy


@pytest.fixture(autouse=True)
def the_toy_language_is_the_default(monkeypatch):
    """Whatever operations package is imported beside these tests."""
    monkeypatch.setattr(DEFAULT, "language", toy)
