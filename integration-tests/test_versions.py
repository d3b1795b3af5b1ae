"""What is declared, tested in CI and written of versions is what `thunder_torch` and `tools/dev.py` say."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from thunder_torch._supported import NEWEST, OLDEST

ROOT = Path(__file__).resolve().parent.parent
NUMPY = "numpy>=1.26"
DECLARATIONS = sorted(ROOT.glob("packages/*/pyproject.toml"))


def pythons():
    """The oldest and the newest Python, as tools/dev.py has them."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "tools" / "dev.py")
    dev = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dev)
    return dev.OLDEST, dev.NEWEST


def text(*path):
    return ROOT.joinpath(*path).read_text(encoding="utf-8")


@pytest.mark.parametrize("file", DECLARATIONS, ids=lambda file: file.parent.name)
def test_packages_declare_the_same_versions(file):
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    (_, oldest), (major, newest) = pythons()
    assert data["project"]["requires-python"] == f">=3.{oldest},<{major}.{newest + 1}"
    required = [*data["project"].get("dependencies", []), *data.get("dependency-groups", {}).get("test", [])]
    assert {r for r in required if re.match(r"torch\b", r)} <= {"torch", "torch>={}.{}".format(*OLDEST)}
    assert {r for r in required if re.match(r"numpy\b", r)} <= {NUMPY}


def test_development_uses_a_version_of_the_range():
    pinned = re.search(r'^torch = "torch==(\d+)\.(\d+)', text("pyproject.toml"), re.M)
    assert OLDEST <= (int(pinned[1]), int(pinned[2])) <= NEWEST


def test_ci_runs_both_ends_of_the_range_and_every_python():
    tests, isolation = text(".github", "workflows", "test.yml"), text(".github", "workflows", "isolation.yml")
    for version in (OLDEST, NEWEST):
        assert "torch=={}.{}.*".format(*version) in tests
    (_, oldest), (_, newest) = pythons()
    assert re.search(r"matrix: \{python: (.*)\}", isolation)[1] == str(
        [f"3.{minor}" for minor in range(oldest, newest + 1)]
    ).replace("'", '"')
    assert all([f'"3.{minor}"' in tests for minor in range(oldest, newest + 1)])
    assert f"--numpy {NUMPY.partition('>=')[2]}\n" in tests
