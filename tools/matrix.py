"""Run the tests on a version of PyTorch, and write what came out, with the date, to docs/support.md.

python3 tools/dev.py matrix --torch 2.15                           all packages that use PyTorch, in an environment made
python3 tools/dev.py matrix --torch 2.15 --python python3.12       ... of another Python
python3 tools/dev.py matrix --torch 2.15 thunder-torch             one package
python3 tools/dev.py matrix --environment DIR                      in an environment that is there already

An environment is made once, in .hatch/matrix; builds of PyTorch with CUDA run on machines without a GPU, too.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "support.md"
NAME = re.compile(r"^[A-Za-z0-9._-]+")
HEADER = "| PyTorch | Python | package | passed | failed | skipped | date |"
INTRODUCTION = f"""# Versions of PyTorch

What `python3 tools/dev.py matrix --torch VERSION` found: the tests of packages on versions of PyTorch, one row for the
last run of each. What is not listed was not run. Of a newer version than the newest that was tested, one warning when
Thunder is imported names the range.

{HEADER}
|---|---|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Row:
    """What one run of a package's tests came to."""

    torch: str
    python: str
    package: str
    passed: int
    failed: int
    skipped: int
    date: str

    def line(self) -> str:
        """Return it as a row of the page."""
        cells = (self.torch, self.python, self.package, self.passed, self.failed, self.skipped, self.date)
        return f"| {' | '.join(map(str, cells))} |"

    @property
    def key(self) -> tuple[list[int], list[int], str]:
        """What it is the last run of, in the order of the page."""
        return _numbers(self.torch), _numbers(self.python), self.package


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version)[:3]]


def members() -> dict[str, dict[str, list[str]]]:
    """Return what each package declares: its dependencies, and those of its tests."""
    found = {}
    for file in sorted(ROOT.glob("packages/*/pyproject.toml")):
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        found[file.parent.name] = {
            "dependencies": data["project"].get("dependencies", []),
            "test": data.get("dependency-groups", {}).get("test", []),
        }
    return found


def named(requirement: str) -> str:
    """Return the name of the distribution that a requirement asks for."""
    found = NAME.match(requirement)
    assert found is not None, requirement
    return found.group().lower().replace("_", "-")


def make(torch: str, python: str) -> Path:
    """Return an environment with a version of PyTorch and all packages, made where there is none yet."""
    label = subprocess.check_output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True)
    folder = ROOT / ".hatch" / "matrix" / f"torch-{torch}-python-{label.strip()}"
    if not (folder / "made").exists():
        subprocess.run([python, "-m", "venv", "--clear", str(folder)], check=True)
        declared = members()
        everything = {r for m in declared.values() for r in (*m["dependencies"], *m["test"])}
        outside = sorted({r for r in everything if not named(r).startswith("thunder") and named(r) != "torch"})
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, f"torch=={torch}.*", "pytest>=8.3", *outside], check=True)
        editable = [word for name in declared for word in ("--editable", str(ROOT / "packages" / name))]
        subprocess.run([*pip, "--no-deps", *editable], check=True)
        (folder / "made").touch()
    return folder


def versions(environment: Path) -> tuple[str, str]:
    """Return the versions of PyTorch and Python of an environment."""
    code = "import sys, torch; print(torch.__version__.split('+')[0], '.'.join(map(str, sys.version_info[:3])))"
    torch, python = subprocess.check_output([str(environment / "bin" / "python"), "-c", code], text=True).split()[-2:]
    return torch, python


def run(environment: Path, package: str) -> Row:
    """Run the tests of a package and return what came out."""
    results = ROOT / ".hatch" / "matrix" / f"{environment.name}-{package}.xml"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)
    words = ["-q", "--no-header", "-p", "no:cacheprovider", f"--junitxml={results}", str(ROOT / "packages" / package)]
    path = os.pathsep.join([str(environment / "bin"), os.environ["PATH"]])
    subprocess.run(
        [str(environment / "bin" / "python"), "-m", "pytest", *words],
        cwd=ROOT,
        env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "tools" / "pytest_plugins")},
        check=False,
    )
    suites = list(ET.parse(results).getroot().iter("testsuite"))
    tests, failures, errors, skipped = (
        sum([int(s.get(what, 0)) for s in suites]) for what in ("tests", "failures", "errors", "skipped")
    )
    failed = failures + errors
    torch, python = versions(environment)
    today = datetime.date.today().isoformat()
    return Row(torch, python, package, tests - failed - skipped, failed, skipped, today)


def write(row: Row) -> None:
    """Put a row on the page, in the place of that of an earlier run."""
    rows = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines() if PAGE.exists() else ():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == 7 and cells[0][:1].isdigit():
            before = Row(*cells[:3], *map(int, cells[3:6]), cells[6])  # type: ignore[arg-type]
            rows[before.torch, before.python, before.package] = before
    rows[row.torch, row.python, row.package] = row
    ordered = sorted(rows.values(), key=lambda r: r.key)
    PAGE.write_text(INTRODUCTION + "".join([r.line() + "\n" for r in ordered]), encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help="all that use PyTorch, if none is named")
    parser.add_argument("--torch", help="a minor version, such as 2.15")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--environment", type=Path, help="use this one, whatever PyTorch it holds")
    options = parser.parse_args()
    if (options.torch is None) == (options.environment is None):
        parser.error("name a version by --torch, or an environment by --environment")
    environment = options.environment or make(options.torch, options.python)
    uses = [n for n, m in members().items() if "torch" in [named(r) for r in m["dependencies"]]]
    failed = 0
    for package in options.packages or uses:
        row = run(environment.absolute(), package)
        print(row.line(), flush=True)
        write(row)
        failed += row.failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
