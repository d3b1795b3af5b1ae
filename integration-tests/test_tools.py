"""The tools of the workspace, on a small workspace with faults planted in it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
PYPROJECT = """
[build-system]
requires = ["hatchling>=1.27,<2"]
build-backend = "hatchling.build"

[project]
name = "{name}"
requires-python = ">=3.11,<3.15"
dynamic = ["version"]
dependencies = {dependencies}

[tool.hatch.version]
path = "src/{module}/_version.py"

[tool.hatch.build.targets.wheel]
packages = ["src/{module}"]
"""


class Workspace:
    """A copy of the tools, with two small packages: thunder-prims on top of thunder-ir."""

    def __init__(self, root: Path) -> None:
        self.root = root
        shutil.copytree(ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", root)
        self.package("thunder-ir", [])
        self.package("thunder-prims", ["thunder-ir>=0.1,<0.2"])
        self.write("thunder-ir", "traces.py", "import math\n\nTRACE = math.pi\n_HIDDEN = 1\n")
        self.write("thunder-prims", "shape.py", "from thunder_ir.traces import TRACE\n\nPRIM = TRACE\n")

    def package(self, name: str, dependencies: list[str]) -> None:
        folder, module = self.root / "packages" / name, name.replace("-", "_")
        (folder / "src" / module).mkdir(parents=True)
        (folder / "tests").mkdir()
        pyproject = PYPROJECT.format(name=name, module=module, dependencies=dependencies)
        (folder / "pyproject.toml").write_text(pyproject.replace("'", '"'))
        (folder / "README.md").write_text(f"# {name}\n")
        (folder / "CHANGELOG.md").write_text(f"# Changelog of {name}\n\n## Unreleased\n\n- Something new.\n")
        (folder / "tests" / "test_it.py").write_text(f"import {module}\n\n\ndef test_it():\n    assert {module}\n")
        self.write(name, "__init__.py", "")
        self.write(name, "_version.py", '__version__ = "0.1.0"\n')
        self.write(name, "py.typed", "")

    def write(self, name: str, file: str, text: str) -> None:
        (self.root / "packages" / name / "src" / name.replace("-", "_") / file).write_text(text)

    def read(self, name: str, file: str) -> str:
        return (self.root / "packages" / name / file).read_text()

    def declare(self, name: str, dependencies: str) -> None:
        file = self.root / "packages" / name / "pyproject.toml"
        lines = [
            f"dependencies = {dependencies}" if x.startswith("dependencies") else x
            for x in file.read_text().splitlines()
        ]
        file.write_text("\n".join(lines) + "\n")

    def run(self, tool: str, *words: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(map(str, self.root.glob("packages/*/src")))
        command = [sys.executable, str(self.root / "tools" / tool), *words]
        env = os.environ | {"PYTHONPATH": paths}
        return subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace")


def test_a_sound_workspace_keeps_its_boundaries(workspace):
    done = workspace.run("boundaries.py")
    assert (done.returncode, done.stdout) == (0, "boundaries: 2 packages keep them\n"), done.stderr


@pytest.mark.parametrize(
    ("package", "file", "text", "message"),
    [
        ("thunder-ir", "up.py", "import thunder_prims.shape\n", "thunder_ir.up -> thunder_prims.shape"),
        ("thunder-ir", "late.py", "def late():\n    import thunder_prims\n", "thunder_ir.late -> thunder_prims"),
        ("thunder-prims", "peek.py", "from thunder_ir.traces import _HIDDEN\n", "thunder_ir.traces._HIDDEN is private"),
        (
            "thunder-prims",
            "peek.py",
            "from thunder_ir import traces\n\nX = traces._HIDDEN\n",
            "thunder_ir.traces._HIDDEN is private",
        ),
        ("thunder-ir", "traces.py", "import thunder_ir.ring\n", "modules import each other in a ring"),
        ("thunder-ir", "heavy.py", "def f():\n    import torch\n", "thunder-ir does without torch"),
        ("thunder-prims", "extra.py", "import optree\n", "imports optree, but thunder-prims declares no optree"),
    ],
    ids=["layer", "layer in a function", "private name", "private attribute", "ring", "torch", "undeclared"],
)
def test_a_breach_is_found_and_named(workspace, package, file, text, message):
    workspace.write("thunder-ir", "ring.py", "import thunder_ir.traces\n")
    workspace.write(package, file, text)
    done = workspace.run("boundaries.py")
    assert done.returncode == 1
    assert message in done.stdout


def test_a_declaration_that_nothing_imports_is_found(workspace):
    workspace.declare("thunder-prims", '["thunder-ir>=0.1,<0.2", "optree>=0.13"]')
    done = workspace.run("boundaries.py")
    assert (done.returncode, done.stdout) == (1, "thunder-prims declares optree, and imports nothing of it\n")


def test_an_extra_may_be_imported_where_its_absence_is_handled(workspace):
    file = workspace.root / "packages" / "thunder-prims" / "pyproject.toml"
    file.write_text(file.read_text() + '\n[project.optional-dependencies]\nfast = ["optree>=0.13"]\n')
    workspace.write("thunder-prims", "fast.py", "try:\n    import optree\nexcept ImportError:\n    optree = None\n")
    assert workspace.run("boundaries.py").returncode == 0
    workspace.write("thunder-prims", "fast.py", "import optree\n")
    assert "imported where its absence is not handled" in workspace.run("boundaries.py").stdout


def test_a_package_in_no_layer_is_found(workspace):
    workspace.package("thunder-surprise", [])
    done = workspace.run("boundaries.py")
    assert (done.returncode, "thunder_surprise is in no layer" in done.stdout) == (1, True)


def test_the_release_check_finds_a_range_that_the_tree_falls_out_of(workspace):
    workspace.declare("thunder-prims", '["thunder-ir>=0.2,<0.3"]')
    done = workspace.run("release.py", "check")
    expected = "thunder-prims declares thunder-ir<0.3,>=0.2, but thunder-ir is at 0.1.0\n"
    assert (done.returncode, done.stdout) == (1, expected)


def test_a_minor_release_dates_the_changelog_and_moves_dependents(workspace):
    done = workspace.run("release.py", "thunder-ir", "minor")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "git tag thunder-ir-v0.2.0" in done.stdout
    assert "release after it: thunder-prims" in done.stdout
    assert (workspace.root / "dist" / "thunder_ir-0.2.0-py3-none-any.whl").is_file()
    assert (workspace.root / "dist" / "thunder_ir-0.2.0.tar.gz").is_file()
    assert '"thunder-ir>=0.2,<0.3"' in workspace.read("thunder-prims", "pyproject.toml")
    assert "## 0.2.0 (" in workspace.read("thunder-ir", "CHANGELOG.md")
    assert workspace.run("release.py", "tag-check", "thunder-ir-v0.2.0").returncode == 0
    assert workspace.run("release.py", "tag-check", "thunder-ir-v0.1.0").returncode == 1


def test_a_patch_release_moves_no_range(workspace):
    done = workspace.run("release.py", "thunder-ir", "patch")
    assert "git tag thunder-ir-v0.1.1" in done.stdout
    assert '"thunder-ir>=0.1,<0.2"' in workspace.read("thunder-prims", "pyproject.toml")


def test_nothing_is_released_without_a_word_in_the_changelog(workspace):
    file = workspace.root / "packages" / "thunder-ir" / "CHANGELOG.md"
    file.write_text("# Changelog\n\n## Unreleased\n")
    done = workspace.run("release.py", "thunder-ir", "patch")
    assert done.returncode == 1
    assert "says nothing under `## Unreleased`" in done.stderr
    assert workspace.read("thunder-ir", "src/thunder_ir/_version.py") == '__version__ = "0.1.0"\n'


@pytest.mark.parametrize("blocks", ["assert 1 == 2", ">>> 1\n2"], ids=["code", "doctest"])
def test_a_false_block_in_a_readme_fails(tmp_path, blocks):
    readme = tmp_path / "README.md"
    readme.write_text(f"# Title\n\n```python\nx = 1\n```\n\n```python\n{blocks}\n```\n")
    env = os.environ | {"PYTHONPATH": str(ROOT / "tools" / "pytest_plugins")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_readme", "-p", "no:cacheprovider", str(readme)]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout
    readme.write_text("```python\nx = 1\n```\n\n```python\n>>> x\n1\n```\n\n```python notest\nboom()\n```\n")
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert (done.returncode, "1 passed" in done.stdout) == (0, True), done.stdout


def test_a_block_that_needs_a_module_is_a_test_of_its_own_and_skipped_without_it(tmp_path):
    readme = tmp_path / "README.md"
    block = "```python\nx = 1\n```\n\n```python needs={}\nassert 'x' not in globals(), 'it stands alone'\n{}\n```\n"
    env = os.environ | {"PYTHONPATH": str(ROOT / "tools" / "pytest_plugins")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_readme", "-p", "no:cacheprovider", str(readme)]
    for module, line, told in [
        ("no_such_module", "boom()", "1 passed, 1 skipped"),
        ("json", "pass", "2 passed"),
        ("json", "boom()", "1 failed, 1 passed"),
    ]:
        readme.write_text(block.format(module, line))
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert told in done.stdout, done.stdout


def test_blocks_without_a_fence_run_too_and_leave_no_files(tmp_path):
    readme = tmp_path / "README.md"
    env = os.environ | {"PYTHONPATH": str(ROOT / "tools" / "pytest_plugins")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pytest_readme", "-p", "no:cacheprovider", str(readme)]
    shell, item = "    pip install thunder-jit\n", "- an item\n\n    boom()\n"
    write = "    x = 1\n\n    open('left.txt', 'w').close()\n"
    for block, passed in [("    assert x == 1\n", True), ("    >>> x\n    1\n", True), ("    assert x == 2\n", False)]:
        readme.write_text(f"# Title\n\n{shell}\nText:\n\n{write}\nMore:\n\n{block}\n{item}")
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert (done.returncode == 0) is passed, done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]


def load_dev():
    spec = importlib.util.spec_from_file_location("thunder_dev_tool", ROOT / "tools" / "dev.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("output", "sentence"),
    [
        ("ERROR: No matching distribution found for torch==9.9", "pip finds no torch==9.9 for Python"),
        ("ERROR: No matching distribution found for optree>=99", "pip finds no optree>=99"),
        ("OSError: [Errno 28] No space left on device", "The disk is full"),
        ("NewConnectionError('...')", "The package index could not be reached"),
        (
            "Cannot install a and b because\nERROR: ResolutionImpossible: see",
            "The declared versions of a and b exclude",
        ),
        ("something else", "Setting up failed (something else)"),
    ],
)
def test_a_failed_set_up_is_one_sentence_with_a_way_out(output, sentence):
    said = load_dev().reason(output)
    assert said.startswith(sentence)
    assert "\n" not in said


def test_another_python_is_refused_in_one_sentence(monkeypatch):
    dev = load_dev()
    monkeypatch.setattr(dev.sys, "version_info", (3, 9, 1))
    with pytest.raises(dev.SetupError, match=r"Python 3.11 to 3.14 is needed and this is 3.9: install one"):
        dev.check_machine("test")


def test_isolation_finds_what_a_package_forgot_to_declare(workspace):
    sound = workspace.run("isolated.py", "--python", VERSION)
    assert sound.returncode == 0, sound.stdout + sound.stderr
    assert f"thunder-prims on {VERSION}: ok: 3 modules import beside thunder-ir; 1 passed" in sound.stdout

    workspace.write("thunder-prims", "rich.py", "import packaging\n")  # pytest needs it, and would hide its absence
    workspace.declare("thunder-prims", "[]")
    broken = workspace.run("isolated.py", "--python", VERSION)
    assert broken.returncode == 1
    assert "No module named 'packaging'" in broken.stdout
    assert f"failed in isolation: thunder-prims on {VERSION}" in broken.stdout


def test_isolation_reports_a_python_that_is_not_there(workspace):
    done = workspace.run("isolated.py", "--python", "3.99")
    assert done.returncode == 1
    assert "Python 3.99: not found on this machine; not tried for 2 packages" in done.stdout


def test_a_machine_without_node_is_reported_and_fails_only_where_it_is_required(tmp_path):
    command = [sys.executable, str(ROOT / "tools" / "pyodide.py")]
    for words, status in (([], 0), (["--required"], 1)):
        done = subprocess.run(
            [*command, *words], env={**os.environ, "PATH": str(tmp_path)}, capture_output=True, text=True
        )
        assert done.returncode == status, done.stderr
        assert done.stdout == "Python 3.14 (Pyodide): not tried: Node.js with npm is not on this machine\n"
