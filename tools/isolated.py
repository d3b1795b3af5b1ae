"""Prove that each package works where only it was `pip install`ed.

    python tools/isolated.py                          every package, on this Python; those without torch on all
    python tools/isolated.py --torch-free             only the packages without torch
    python tools/isolated.py --python 3.12 thunder-ir some packages on one Python (a version or a path)

Builds every wheel. For each package it takes a bare environment that holds the package's declared requirements and
nothing else, installs the package there by name and with no index (so that a thunder package can only come from the
wheels just built), imports every module of it, and, for a package without torch, asserts that torch is not there. Then
the package's tests run in a second environment on top, which adds pytest and the package's test group. Environments are
kept in `.hatch/isolated` and made afresh when requirements or Python change. A Python that is not found is reported.
"""

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import virtualenv
from dev import NEWEST, OLDEST
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from release import build
from workspace import BOUNDARIES, CONFIG, ROOT, Package, packages

KEPT = ROOT / ".hatch" / "isolated"
PYTHONS = tuple(f"3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1))
TORCH = os.environ.get("THUNDER_TORCH") or CONFIG["hatch"]["env"]["collectors"]["custom"]["torch"]
PYTEST = "pytest>=8.3"
NO_TESTS = 5  # pytest's exit status where nothing was collected
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")},
    "PIP_COMPILE": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONNOUSERSITE": "1",
}
IMPORT_ALL = """
import importlib, importlib.util, pkgutil, sys
name, torch_free, *extras = sys.argv[1:]
package = importlib.import_module(name)
count = 1
for found in pkgutil.walk_packages(package.__path__, name + "."):
    if found.name.rpartition(".")[2] != "__main__":
        try:
            importlib.import_module(found.name)
            count += 1
        except ImportError as error:
            chain = [error, error.__cause__, error.__context__]  # a module may say which extra brings what it needs
            missing = {e.name.split(".")[0] for e in chain if isinstance(e, ModuleNotFoundError) and e.name}
            if missing.isdisjoint(extras):
                raise
if torch_free == "yes" and (importlib.util.find_spec("torch") or "torch" in sys.modules):
    sys.exit("torch is there, and " + name + " does without it")
print(count)
"""


class Broken(Exception):
    """What went wrong for one package."""


def run(*command: object, cwd: Path | None = None) -> str:
    """Run a command in a clean process environment, and return what it prints."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode:
        raise Broken((done.stdout + done.stderr).strip())
    return done.stdout.strip()


def closure(requirements: list[Requirement], every: dict[str, Package]) -> tuple[list[str], list[str]]:
    """Split what ``requirements`` need, all the way down, into packages of the workspace and others."""
    own: list[str] = []
    others: set[str] = set()
    followed: set[tuple[str, str]] = set()
    todo = list(requirements)
    while todo:
        requirement = todo.pop()
        name = canonicalize_name(requirement.name)
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        if name not in every:
            others |= {str(requirement), TORCH} if name == "torch" else {str(requirement)}
            continue
        if name not in own:
            own.append(name)
            todo += every[name].requirements
        for extra in requirement.extras:
            if (name, extra) not in followed:
                followed.add((name, extra))
                todo += map(Requirement, every[name].data["project"]["optional-dependencies"][extra])
    return sorted(own), sorted(others)


@contextmanager
def only_one() -> Iterator[None]:
    """Keep two runs from using the same environments."""
    KEPT.mkdir(parents=True, exist_ok=True)
    with open(KEPT / "lock", "a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another isolation run of this clone to finish", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Layer:
    """A kept environment of some requirements, possibly on top of another one."""

    def __init__(self, base: str, wanted: list[str], below: "Layer | None" = None) -> None:
        under = str(below.folder) if below else ""
        key = hashlib.sha256("\n".join([version_of(base), base, under, *wanted]).encode()).hexdigest()[:12]
        self.folder = KEPT / key
        self.python = self.folder / "bin" / "python"
        self.below = below
        if not (self.folder / "ready").is_file():
            self.make(base, wanted)

    def make(self, base: str, wanted: list[str]) -> None:
        """Make the environment; leave nothing behind where that fails."""
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            virtualenv.cli_run([str(self.folder), "--no-setuptools", "--python", base], env=ENVIRONMENT)
            if self.below:
                (self.site / "below.pth").write_text(f"{self.below.site}\n", encoding="utf-8")
            if wanted:
                run(self.python, "-m", "pip", "install", "-q", *wanted)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        (self.folder / "ready").touch()

    @property
    def site(self) -> Path:
        """Where its packages lie."""
        return next(self.folder.glob("lib/*/site-packages"))

    def hold(self, names: list[str], every: dict[str, Package], wheels: Path, *words: str) -> None:
        """Let exactly these packages of the workspace be installed, from the wheels."""
        pip = (self.python, "-m", "pip")
        present = [n for n in every if any(self.site.glob(f"{n.replace('-', '_')}-*.dist-info"))]
        if present:
            run(*pip, "uninstall", "-qq", "-y", *present)
        if names:
            run(*pip, "install", "-q", "--no-index", "--find-links", wheels, *words, *names)


@cache
def version_of(python: str) -> str:
    return run(python, "-c", "import sys; print(sys.version)")


def isolate(package: Package, base: str, every: dict[str, Package], wheels: Path) -> str:
    """Install, import and test one package on one Python."""
    if not package.tests.is_dir():
        raise Broken(f"packages/{package.folder.name} has no tests")
    own, others = closure(package.requirements, every)
    layer = Layer(base, others)
    layer.hold([package.name], every, wheels)
    run(layer.python, "-m", "pip", "check")
    extras = [e for r in package.extras for e in (import_name(r), r.name.replace("-", "_"))]
    free = "yes" if package.torch_free else "no"
    with tempfile.TemporaryDirectory() as empty:
        modules = run(layer.python, "-I", "-c", IMPORT_ALL, package.module, free, *extras, cwd=Path(empty))
        found = f"{modules} modules import beside {', '.join(own) or 'nothing'}"
        test_own, test_others = closure(package.test_requirements, every)
        above = Layer(base, [PYTEST, *test_others], layer)
        above.hold([n for n in test_own if n not in own and n != package.name], every, wheels, "--no-deps")
        if package.torch_free:
            run(
                above.python,
                "-c",
                "import importlib.util as u, sys; sys.exit(u.find_spec('torch') and 'torch is there')",
            )
        tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", os.devnull]
        command = [above.python, *tests, "--rootdir", package.folder, package.tests]
        done = subprocess.run(list(map(str, command)), cwd=empty, env=ENVIRONMENT, capture_output=True, text=True)
    if done.returncode == NO_TESTS:
        return f"{found}; no tests"
    if done.returncode:
        raise Broken(done.stdout + done.stderr)
    return f"{found}; {done.stdout.strip().splitlines()[-1]}"


def import_name(requirement: Requirement) -> str:
    told = {canonicalize_name(dist): module for module, dist in BOUNDARIES["distributions"].items()}
    return told.get(canonicalize_name(requirement.name), requirement.name)


def find_python(version: str) -> str | None:
    """Find an interpreter: this one, on PATH, or among pyenv's."""
    if "/" in version:
        return version if works(version) else None
    if version == f"{sys.version_info[0]}.{sys.version_info[1]}":
        return os.path.realpath(sys.executable)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    on_path = shutil.which(f"python{version}")
    candidates = [*sorted(map(str, pyenv.glob(f"versions/*/bin/python{version}"))), *([on_path] if on_path else [])]
    return next((c for c in candidates if works(c)), None)


def works(python: str) -> bool:
    """Tell whether an interpreter starts: a shim of pyenv's may name a version that is not chosen."""
    try:
        return subprocess.run([python, "-c", ""], capture_output=True).returncode == 0
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help="names (all by default)")
    parser.add_argument("--torch-free", action="store_true", help="only the packages without torch")
    parser.add_argument("--python", action="append", help="a version or a path; may be given again")
    args = parser.parse_args()
    every = packages()
    unknown = [name for name in args.packages if name not in every]
    if unknown:
        parser.error(f"there is no package {unknown[0]}; there are {', '.join(every)}")
    chosen = [p for n, p in every.items() if n in (args.packages or every) and (p.torch_free or not args.torch_free)]
    this = f"{sys.version_info[0]}.{sys.version_info[1]}"
    failed, lines = [], []
    with only_one(), tempfile.TemporaryDirectory() as folder:
        for package in every.values():
            build(package, Path(folder), ("wheel",))
        for version in args.python or PYTHONS:
            mine = [p for p in chosen if args.python or p.torch_free or version == this]
            base = find_python(version)
            if base is None:
                lines.append(f"Python {version}: not found on this machine; not tried for {len(mine)} packages")
                print(lines[-1], flush=True)
                failed += [f"Python {version}"] if args.python else []
                continue
            for package in mine:
                start = time.perf_counter()
                try:
                    outcome = f"ok: {isolate(package, base, every, Path(folder))}"
                except Broken as error:
                    failed.append(f"{package.name} on {version}")
                    print(f"\n{error}\n")
                    outcome = "FAILED"
                lines.append(f"{package.name} on {version}: {outcome} ({time.perf_counter() - start:.1f} s)")
                print(lines[-1], flush=True)
    print(f"failed in isolation: {', '.join(failed)}" if failed else "isolation holds")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
