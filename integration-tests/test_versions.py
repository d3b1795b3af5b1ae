"""What is declared, tested in CI and written of versions is what `thunder_torch` and `tools/dev.py` say."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from thunder_interpreter._registry import SUPPORTED
from thunder_torch._supported import NEWEST, OLDEST, range_text

ROOT = Path(__file__).resolve().parent.parent
NUMPY = "numpy>=1.26"
DECLARATIONS = sorted(ROOT.glob("packages/*/pyproject.toml"))
TEXTS = (
    "*.md",
    "*.toml",
    "docs/**/*.md",
    "docs/*.ipynb",
    "packages/*/*.md",
    "packages/*/*.toml",
    "packages/*/src/**/*.py",
    "tools/*.py",
    ".ci/*",
    ".github/**/*.yml",
)
"""What is read by users and developers, but for tests, which say what they are about."""

PYTHON_RANGES = re.compile(r"\b3\.\d+\s+to\s+3\.\d+\b")
TORCH_RANGES = re.compile(r"\b2\.\d+ to 2\.\d+\b")
OLDEST_TORCH = re.compile(r"(?<!-)\btorch>=(\d+\.\d+)")
ONE_TORCH = re.compile(r"(?:--torch |(?<!-)\btorch==)(\d+)\.(\d+)")
ONE_PYTHON = re.compile(r"\bpython3\.(\d+)")


def pythons():
    """The oldest and the newest Python, as tools/dev.py has them."""
    spec = importlib.util.spec_from_file_location("dev", ROOT / "tools" / "dev.py")
    dev = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(dev)
    return dev.OLDEST, dev.NEWEST


def test_the_interpreter_knows_the_same_versions_of_python():
    (major, oldest), (_, newest) = pythons()
    assert SUPPORTED == tuple([(major, minor) for minor in range(oldest, newest + 1)])


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


def wrong_versions(words):
    """List the versions in a text that are not those of the one place."""
    python_range = " to ".join(["{}.{}".format(*version) for version in pythons()])
    (_, first), (_, last) = pythons()
    wrong = [found for found in PYTHON_RANGES.findall(words) if " ".join(found.split()) != python_range]
    wrong += [found for found in TORCH_RANGES.findall(words) if found != range_text()]
    wrong += [found for found in OLDEST_TORCH.findall(words) if found != "{}.{}".format(*OLDEST)]
    wrong += [".".join(found) for found in ONE_TORCH.findall(words) if not OLDEST <= tuple(map(int, found)) <= NEWEST]
    return wrong + [f"python3.{found}" for found in ONE_PYTHON.findall(words) if not first <= int(found) <= last]


def test_texts_name_the_versions_that_the_one_place_names():
    files = sorted({file for pattern in TEXTS for file in ROOT.glob(pattern)})
    assert {ROOT / "README.md", ROOT / "docs" / "workspace.md", ROOT / "tools" / "dev.py"} <= set(files)
    wrong = {str(file.relative_to(ROOT)): wrong_versions(file.read_text(encoding="utf-8")) for file in files}
    assert {name: found for name, found in wrong.items() if found} == {}


@pytest.mark.parametrize(
    "words",
    [
        "CPython 3.10 to\n3.14",
        "PyTorch 2.9 to 2.14",
        "THUNDER_TORCH='torch>=2.8' python3 tools/dev.py test",
        "python3 tools/dev.py matrix --torch 2.16",
        'torch = "torch==2.8.0"',
        "python3.15 tools/dev.py demo",
    ],
)
def test_other_versions_in_a_text_are_found(words):
    assert wrong_versions(words)
    assert not wrong_versions("Python 3.11 to 3.14, PyTorch 2.9 to 2.15, torch>=2.9, --torch 2.10, python3.12")
