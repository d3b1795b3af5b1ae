"""Run the tests on versions of PyTorch, NumPy and transformers, and write what came out to docs/support.md.

python3 tools/dev.py matrix --torch 2.15                           the whole test suite, in an environment made for it
python3 tools/dev.py matrix --torch 2.15 --python python3.12       ... of another Python
python3 tools/dev.py matrix --torch 2.15 thunder-torch             one package
python3 tools/dev.py matrix --torch 2.13 --numpy 1.26              ... with another NumPy
python3 tools/dev.py matrix --torch 2.13 --transformers 4.55 integration     ... with another transformers
python3 tools/dev.py matrix --torch 2.9 --failed                   only files in which a test failed the last time
python3 tools/dev.py matrix --torch 2.9 --rest                     only files that a run that was cut off did not reach
python3 tools/dev.py matrix --torch 2.9 --discard                  ... and remove the environment afterwards
python3 tools/dev.py matrix --environment DIR                      in an environment that is there already

An environment is made once, in .hatch/matrix; builds of PyTorch with CUDA run on machines without a GPU, too.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import astuple, dataclass, fields, replace
from pathlib import Path

from run_tests import plan, relative

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".hatch" / "matrix"
PAGE = ROOT / "docs" / "support.md"
NAME = re.compile(r"^[A-Za-z0-9._-]+")
EDITABLE = "editables>=0.5"  # what the build backend needs to install a folder as it is
INTRODUCTION = """# Supported versions

Test results of `python3 tools/dev.py matrix --torch VERSION`, with one column for each combination of versions. A row
is one package, with its docstrings and its README; `integration` stands for the tests across packages and the code on
these pages. Each number counts passed tests, of the package's latest run between the days in the row `date`. Failed
and skipped tests are listed beside it, and an empty cell was not run. If your PyTorch is newer than the newest one
tested, `import thunder` warns once and names the tested range.

"""
PROBE = """
import importlib.metadata, platform
for name in ("torch", "numpy", "transformers"):
    try:
        print(importlib.metadata.version(name).split("+")[0])
    except importlib.metadata.PackageNotFoundError:
        print("none")
print(platform.python_version())
"""


@dataclass(frozen=True)
class Versions:
    """What a column of the page is about."""

    torch: str
    python: str
    numpy: str
    transformers: str
    date: str

    @property
    def order(self) -> tuple[list[int], ...]:
        """Where the column stands."""
        return tuple([_numbers(text) for text in astuple(self)])


TO = " to "
"""What stands between the first day and the last one."""
LABELS = ("PyTorch", "Python", "NumPy", "transformers", "date")
Results = dict[Versions, dict[str, str]]
Counts = dict[str, dict[str, dict[str, int]]]
"""Of each package, how many tests of each file passed, failed and so on."""


@dataclass(frozen=True)
class Wanted:
    """Which versions an environment is to have; of what is ``None``, the newest or what the workspace pins."""

    torch: str
    python: str
    numpy: str | None = None
    transformers: str | None = None

    @property
    def folder(self) -> Path:
        """Where the environment lies."""
        label = subprocess.check_output([self.python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"])
        words = ["torch", self.torch, "python", label.decode().strip()]
        for name in ("numpy", "transformers"):
            if getattr(self, name) is not None:
                words += [name, getattr(self, name)]
        return HOME / "-".join(words)

    def requirements(self) -> list[str]:
        """What is to be installed, beside the packages of the workspace."""
        versions = {"torch": self.torch, "numpy": self.numpy, "transformers": self.transformers}
        exact = {name: f"{name}=={version}.*" for name, version in versions.items() if version is not None}
        return sorted({r for r in outside() if named(r) not in exact} | set(exact.values()))


def _numbers(version: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", version)[:3]]


def outside() -> set[str]:
    """Return what the packages, their builds, their tests and the tools need that is not in the workspace."""
    root = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["env"]
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["envs"]["default"]
    found = {EDITABLE, *root["collectors"]["custom"]["test-dependencies"], *tools["dependencies"]}
    for file in members():
        data = tomllib.loads(file.read_text(encoding="utf-8"))
        found |= {*data["project"].get("dependencies", []), *data.get("dependency-groups", {}).get("test", [])}
        found |= set(data["build-system"]["requires"])
    return {requirement for requirement in found if not named(requirement).startswith("thunder")}


def members() -> list[Path]:
    """Return the declarations of all packages."""
    return sorted(ROOT.glob("packages/*/pyproject.toml"))


def named(requirement: str) -> str:
    """Return the name of the distribution that a requirement asks for."""
    found = NAME.match(requirement)
    assert found is not None, requirement
    return found.group().lower().replace("_", "-")


def make(wanted: Wanted) -> Path:
    """Return an environment with the versions wanted and all packages, made where there is none yet."""
    folder = wanted.folder
    if not (folder / "made").exists():
        subprocess.run([wanted.python, "-m", "venv", "--clear", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-compile"]
        subprocess.run([*pip, *wanted.requirements()], check=True)
        editable = [word for file in members() for word in ("--editable", str(file.parent))]
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", *editable], check=True)
        (folder / "made").touch()
    return folder


def versions(environment: Path) -> Versions:
    """Return what an environment holds, today."""
    found = subprocess.check_output([str(environment / "bin" / "python"), "-c", PROBE], text=True).split()
    torch, numpy, transformers, python = found
    return Versions(torch, python, numpy, transformers, datetime.date.today().isoformat())


def run(environment: Path, words: list[str]) -> Counts:
    """Run the tests of packages or files, of all if none is named, and return how many passed, failed and so on."""
    reports = reports_of(environment)
    shutil.rmtree(reports, ignore_errors=True)
    reports.mkdir(parents=True)
    subprocess.run(
        [str(environment / "bin" / "python"), str(ROOT / "tools" / "run_tests.py"), *words],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": os.pathsep.join([str(environment / "bin"), os.environ["PATH"]]),
            "PYTHONDONTWRITEBYTECODE": "",  # else every process would compile torch's sources anew
            "THUNDER_TEST_REPORTS": str(reports),
        },
        check=False,
    )
    return counts_in(reports / "files.json")


def reports_of(environment: Path) -> Path:
    """Where the last run in an environment put its reports."""
    return HOME / f"{environment.name}-reports"


def counts_in(file: Path) -> Counts:
    """Return what a run wrote, which is nothing if there was none."""
    found: Counts = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found


def failed(before: Counts) -> list[str]:
    """Return the files in which a test failed."""
    return [file for files in before.values() for file, counts in files.items() if counts.get("failed")]


def unreached(before: Counts, packages: list[str]) -> list[str]:
    """Return the files of packages, of all if none is named, of which it is not known what they came to."""
    paths = {path: share.package for share in plan(packages) for path in share.paths}
    files = {f: paths[path] for path in paths for f in files_in(path)}
    return [file for file, package in files.items() if file not in before.get(package, {})]


def files_in(path: str) -> list[str]:
    """Return the files that a path of a run stands for."""
    inside = [p for p in ROOT.joinpath(path).rglob("*") if p.suffix in (".py", ".md")]
    return sorted(map(relative, inside)) if ROOT.joinpath(path).is_dir() else [path]


def add(before: Counts, now: Counts) -> Counts:
    """Return what all files of the packages run now came to: those run now, and those that had not failed before."""
    kept = {
        package: {file: counts for file, counts in before.get(package, {}).items() if not counts.get("failed")}
        for package in now
    }
    return {package: {**kept[package], **files} for package, files in now.items()}


def joined(before: Counts, now: Counts) -> Counts:
    """Return what all files came to, of those in both what they came to now."""
    return {**before, **{package: {**before.get(package, {}), **files} for package, files in now.items()}}


def run_and_keep(environment: Path, packages: list[str], which: str | None) -> Counts:
    """Run the tests, and keep what each file came to beside the environment, for a run of some of them.

    Args:
        environment: where.
        packages: which; all, if none is named.
        which: ``"failed"``: only the files of them in which a test failed the last time; ``"rest"``: only those that no
            run reached, one that was cut off among them.
    """
    file = HOME / f"{environment.name}.json"
    before = joined(
        counts_in(file), counts_in(reports_of(environment) / "files.json")
    )  # of a run that was cut off, too
    asked = {package: files for package, files in before.items() if not packages or package in packages}
    kept = before if which is not None else {p: files for p, files in before.items() if p not in asked}
    file.write_text(json.dumps(kept), encoding="utf-8")
    if which is None:
        found = run(environment, packages)
    elif which == "failed":
        words = failed(asked)
        found = add(asked, run(environment, words)) if words else {}
    else:
        words = unreached(asked, packages)
        found = joined(asked, run(environment, words)) if words else asked
    file.write_text(json.dumps({**kept, **found}), encoding="utf-8")
    return found


def cell(files: dict[str, dict[str, int]]) -> str:
    """Return what one package came to, as the page has it.

    Example:
        >>> cell({"tests/test_a.py": {"passed": 4}, "tests/test_b.py": {"passed": 3, "failed": 1}})
        '7, 1 failed'
    """
    counts = sum(map(Counter, files.values()), Counter())
    words = [str(counts.get("passed", 0))]
    words += [f"{counts[what]} {what}" for what in ("failed", "skipped", "xfailed") if counts.get(what)]
    return ", ".join(words)


def read(text: str) -> Results:
    """Return what a page says."""
    table = [[c.strip() for c in line.strip().strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]
    rows = {row[0]: row[1:] for row in table if set(row[0]) != {"-"}}
    if not set(LABELS) <= set(rows):
        return {}
    columns = [Versions(*column) for column in zip(*[rows.pop(label) for label in LABELS], strict=True)]
    return {
        column: {package: cells[i] for package, cells in rows.items() if cells[i]} for i, column in enumerate(columns)
    }


def merge(results: Results, now: Versions, cells: dict[str, str]) -> Results:
    """Return results with those of a run added, to those of earlier days of the same versions.

    Example:
        >>> before, now = (Versions("2.15.0", "3.11.7", "2.4.6", "none", day) for day in ("2026-11-26", "2026-11-27"))
        >>> found = merge({before: {"thunder-ir": "709", "thunder-vmap": "15"}}, now, {"thunder-ir": "710"})
        >>> [(column.date, sorted(cells.items())) for column, cells in found.items()]
        [('2026-11-26 to 2026-11-27', [('thunder-ir', '710'), ('thunder-vmap', '15')])]
    """
    same = [column for column in results if astuple(column)[:-1] == astuple(now)[:-1]]
    earlier = {p: c for column in same for p, c in results[column].items() if p not in cells}
    days = sorted({now.date, *[day for column in same if earlier for day in column.date.split(TO)]})
    column = replace(now, date=TO.join(dict.fromkeys([days[0], days[-1]])))
    kept = {c: found for c, found in results.items() if c not in same} | {column: {**earlier, **cells}}
    return {c: kept[c] for c in sorted(kept, key=lambda c: c.order)}


def page(results: Results) -> str:
    """Return the page."""
    packages = sorted({package for cells in results.values() for package in cells})
    rows = [[label, *[getattr(c, f.name) for c in results]] for label, f in zip(LABELS, fields(Versions), strict=True)]
    rows.insert(1, ["---"] * (len(results) + 1))
    rows += [[package, *[cells.get(package, "") for cells in results.values()]] for package in packages]
    return INTRODUCTION + "".join([f"| {' | '.join(row)} |\n" for row in rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help="names of packages, and 'integration'; all, if none is named")
    parser.add_argument("--torch", help="a version of PyTorch, such as 2.15")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--numpy", help="a version of NumPy, such as 1.26")
    parser.add_argument("--transformers", help="a version of transformers, such as 4.55")
    some = parser.add_mutually_exclusive_group()
    some.add_argument("--failed", dest="which", action="store_const", const="failed", help="only files with failures")
    some.add_argument("--rest", dest="which", action="store_const", const="rest", help="only files not run before")
    parser.add_argument("--discard", action="store_true", help="remove the environment afterwards")
    parser.add_argument("--environment", type=Path, help="use this one, whatever it holds")
    options = parser.parse_args()
    if (options.torch is None) == (options.environment is None):
        parser.error("name a version by --torch, or an environment by --environment")
    if options.environment is not None and (options.numpy or options.transformers or options.discard):
        parser.error("--numpy, --transformers and --discard are of an environment that --torch makes")
    environment = (
        options.environment or make(Wanted(options.torch, options.python, options.numpy, options.transformers))
    ).absolute()
    found = run_and_keep(environment, options.packages, options.which)
    now = versions(environment)
    cells = {package: cell(files) for package, files in found.items()}
    before = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(page(merge(read(before), now, cells)), encoding="utf-8")
    if options.discard:
        shutil.rmtree(environment)
    return 1 if failed(found) else 0


if __name__ == "__main__":
    sys.exit(main())
