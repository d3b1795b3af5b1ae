"""Makes the helpers beside the tests importable, and what has no program an error unless a test asks for more."""

import sys
from pathlib import Path

import pytest

import thunder_frontend

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def refusals_are_errors(monkeypatch):
    assert thunder_frontend._jit is not None
    monkeypatch.setattr(sys.modules["thunder_frontend._jit"], "DEFAULT_FALLBACK", "error")
