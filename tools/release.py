"""Check what the packages declare of each other, and release one of them.

    python tools/release.py check                        every declaration agrees with every version in the tree
    python tools/release.py order                        the packages, each after those that it needs
    python tools/release.py thunder-ir minor             new version (or: patch, major, 0.3.1, current), changelog,
                                                         ranges of dependents, sdist and wheel in dist/, and the tag
    python tools/release.py tag-check thunder-ir-v0.3.0  the tag names the version in the tree
    python tools/release.py build thunder-ir             sdist and wheel in dist/

What the next release changes stands in the CHANGELOG.md under `## Unreleased`; releasing dates that section. The
version lies in `src/<import name>/_version.py`. Commits and tags are left to a person.
"""

import re
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from dev import NEWEST, OLDEST
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version
from workspace import ROOT, Package, packages

UNRELEASED = re.compile(r"^## (?:\S+ \()?[Uu]nreleased\)?[ ]*\n(?P<text>.*?)(?=^## |\Z)", re.M | re.S)
SECTION = re.compile(r"^## (\S+)", re.M)
FILES = (
    "README.md",
    "CHANGELOG.md",
    "src/{module}/__init__.py",
    "src/{module}/py.typed",
    "src/{module}/_version.py",
    "tests",
)
PARTS = ("major", "minor", "patch", "current")


def span(version: Version) -> str:
    """Write the range that a dependent declares: the series that ``version`` begins or continues."""
    if version.major:
        return f">={version.major}.{version.minor},<{version.major + 1}"
    return f">=0.{version.minor},<0.{version.minor + 1}"


def between(package: Package, every: dict[str, Package]) -> list[tuple[Requirement, Package]]:
    """List what a package declares of others of the workspace."""
    found = [(r, every.get(canonicalize_name(r.name))) for r in package.requirements + package.extras]
    return [(requirement, other) for requirement, other in found if other is not None and other is not package]


def check(every: dict[str, Package]) -> list[str]:
    """List what does not agree."""
    wrong = []
    for package in every.values():
        for requirement, other in between(package, every):
            if other.version not in requirement.specifier:
                wrong.append(f"{package.name} declares {requirement}, but {other.name} is at {other.version}")
            if not any(s.operator in {"<", "==", "~="} for s in requirement.specifier):
                wrong.append(f"{package.name} declares {requirement} without an upper bound")
        for name in FILES:
            if not (package.folder / name.format(module=package.module)).exists():
                wrong.append(f"packages/{package.folder.name} has no {name.format(module=package.module)}")
        if package.name != package.folder.name and package.folder.name != "thunder":
            wrong.append(f"{package.name} lies in packages/{package.folder.name}")
        if "version" not in package.data["project"].get("dynamic", []):
            wrong.append(f"{package.name} does not take its version from _version.py")
        wrong += check_changelog(package)
    wanted = f">={OLDEST[0]}.{OLDEST[1]},<{NEWEST[0]}.{NEWEST[1] + 1}"
    for package in every.values():
        if (found := package.data["project"].get("requires-python")) != wanted:
            wrong.append(f"{package.name} has requires-python {found!r}, and tools/dev.py says {wanted!r}")
    try:
        order(every)
    except CycleError as error:
        wrong.append(f"packages need each other in a ring: {' <- '.join(error.args[1])}")
    return wrong


def check_changelog(package: Package) -> list[str]:
    """The topmost section is the one being written, or that of the version in the tree."""
    file = package.folder / "CHANGELOG.md"
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    first = SECTION.search(text)
    if UNRELEASED.search(text) or (first and first[1] == str(package.version)):
        return []
    return [f"{package.name}: CHANGELOG.md begins with neither `## Unreleased` nor `## {package.version}`"]


def order(every: dict[str, Package]) -> list[str]:
    """Sort the packages, each after those that it needs."""
    return list(
        TopologicalSorter({p.name: [o.name for _, o in between(p, every)] for p in every.values()}).static_order()
    )


def release(name: str, part: str) -> None:
    """Bump, date the changelog, move dependents' ranges, build, and print the tag."""
    package = packages()[name]
    new = next_version(package.version, part)
    date_changelog(package, new)
    package.version_file.write_text(f'__version__ = "{new}"\n', encoding="utf-8")
    moved = [dependent.name for dependent in packages().values() if move_range(dependent, name, new)]
    every = packages()
    wrong = check(every)
    if wrong:
        raise SystemExit("\n".join(wrong))
    for file in build(every[name]):
        print(f"built {file.relative_to(ROOT)}")
    print(f"commit, then: git tag {name}-v{new}")
    if moved:
        print("their ranges moved, so release after it: " + " ".join(n for n in order(every) if n in moved))


def next_version(old: Version, part: str) -> Version:
    """Count up, or take the version given."""
    if part == "current":
        return old
    major, minor, patch = old.release
    counted = {"major": (major + 1, 0, 0), "minor": (major, minor + 1, 0), "patch": (major, minor, patch + 1)}
    if part in counted:
        return Version("{}.{}.{}".format(*counted[part]))
    try:
        new = Version(part)
    except InvalidVersion:
        raise SystemExit(f"{part} is neither a version nor one of {', '.join(PARTS)}") from None
    if new <= old:
        raise SystemExit(f"{new} is not above {old}")
    return new


def date_changelog(package: Package, new: Version) -> None:
    """Give what was unreleased its version and the date of today."""
    file = package.folder / "CHANGELOG.md"
    text = file.read_text(encoding="utf-8")
    match = UNRELEASED.search(text)
    if match is None or not match["text"].strip():
        raise SystemExit(f"{file.relative_to(ROOT)} says nothing under `## Unreleased`: write there what {new} changes")
    heading = f"## {new} ({datetime.now(UTC):%Y-%m-%d})\n"
    file.write_text(text[: match.start()] + heading + text[match.start("text") :], encoding="utf-8")


def move_range(dependent: Package, name: str, new: Version) -> bool:
    """Rewrite what ``dependent`` declares of ``name`` where ``new`` lies outside of it."""
    found = [r for r in dependent.requirements + dependent.extras if canonicalize_name(r.name) == name]
    if all(new in requirement.specifier for requirement in found):
        return False
    file = dependent.folder / "pyproject.toml"
    pattern = re.compile(rf'"{re.escape(name)}(\[[^]]*\])?[<>=~!][^";]*')
    text = pattern.sub(lambda m: f'"{name}{m[1] or ""}{span(new)}', file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    return True


def build(package: Package, folder: Path = ROOT / "dist", targets: tuple[str, ...] = ("sdist", "wheel")) -> list[Path]:
    """Build a package with hatchling, and look into the wheel."""
    words = [word for target in targets for word in ("-t", target)]
    command = [sys.executable, "-m", "hatchling", "build", *words, "-d", str(folder)]
    done = subprocess.run(command, cwd=package.folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{package.name} could not be built:\n{done.stdout}{done.stderr}")
    stem = f"{package.name.replace('-', '_')}-{package.version}"
    wheel = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        outside = [n for n in archive.namelist() if not n.startswith((f"{package.module}/", f"{stem}.dist-info/"))]
        if outside or f"{package.module}/py.typed" not in archive.namelist():
            raise SystemExit(f"{wheel.name} holds {outside or 'no py.typed'}")
    return [wheel, folder / f"{stem}.tar.gz"] if "sdist" in targets else [wheel]


def known(name: str) -> Package:
    every = packages()
    if name not in every:
        raise SystemExit(f"there is no package {name}; there are {', '.join(every)}")
    return every[name]


def main() -> int:
    match sys.argv[1:]:
        case ["check"]:
            every = packages()
            wrong = check(every)
            print("\n".join(wrong) or f"release: {len(every)} packages agree")
            return bool(wrong)
        case ["order"]:
            print("\n".join(order(packages())))
        case ["build", name]:
            print("\n".join(str(file.relative_to(ROOT)) for file in build(known(name))))
        case ["tag-check", tag]:
            name, _, version = tag.rpartition("-v")
            if str(known(name).version) != version:
                print(f"the tag is {tag}, but the tree holds {name} {known(name).version}")
                return 1
        case [name, part]:
            release(known(name).name, part)
        case _:
            print(__doc__)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
