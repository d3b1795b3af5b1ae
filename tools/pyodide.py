"""Run the tests of the packages without torch on CPython 3.14 as WebAssembly (Pyodide), which Node.js runs.

    python tools/pyodide.py                          every package whose requirements there are builds of
    python tools/pyodide.py thunder-interpreter      some packages
    python tools/pyodide.py --required               fail where Node.js, or the npm registry, is not at hand

Installs the pinned npm package and, with pip, what the tests need into `.hatch/pyodide`. A package whose requirements
have no build for this platform is reported and passed over. `tools/pyodide.mjs` is the interpreter as a command.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from isolated import PYTEST, closure
from workspace import ROOT, Package, packages

VERSION = "314.0.7"
PYTHON = "3.14"  # of that version of Pyodide
NODE = 20
HOME = ROOT / ".hatch" / "pyodide"
PLATFORM = ("--platform", "pyemscripten_2026_0_wasm32", "--python-version", PYTHON, "--implementation", "cp")
LIMIT = 600  # seconds for the tests of one package


COMPILE = """
import pathlib, sys, warnings
warnings.simplefilter('error')
for folder in sys.argv[1:]:
    for file in sorted(pathlib.Path(folder).rglob("*.py")):
        compile(file.read_bytes(), file, "exec", dont_inherit=True)
"""


class Absent(Exception):
    """What is not on this machine, or cannot be got."""


class NoBuild(Exception):
    """A requirement that this platform has no build of."""


def say(*command: object) -> subprocess.CompletedProcess[str]:
    """Run a command and keep what it prints."""
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=HOME)


def interpreter() -> list[str]:
    """The words that start Python, installed on first use."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Absent("Node.js with npm is not on this machine")
    found = subprocess.run([node, "--version"], capture_output=True, text=True).stdout.strip()
    if int(found.lstrip("v").split(".")[0]) < NODE:
        raise Absent(f"Node.js {NODE} is needed, and this is {found}")
    HOME.mkdir(parents=True, exist_ok=True)
    about = HOME / "node_modules" / "pyodide" / "package.json"
    if not about.is_file() or json.loads(about.read_text(encoding="utf-8"))["version"] != VERSION:
        done = say(
            npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", HOME, f"pyodide@{VERSION}"
        )
        if done.returncode:
            raise Absent(f"npm could not install pyodide {VERSION}: {last_line(done.stderr)}")
    return [node, str(ROOT / "tools" / "pyodide.mjs")]


def last_line(text: str) -> str:
    """The last line with words."""
    return ([line for line in text.splitlines() if line.strip()] or ["no reason given"])[-1].strip()


def site(requirements: list[str]) -> Path:
    """A folder with what the tests of a package import beyond the workspace."""
    folder = HOME / hashlib.sha256("\n".join(requirements).encode()).hexdigest()[:12]
    if not (folder / "ready").is_file():
        shutil.rmtree(folder, ignore_errors=True)
        options = ("--quiet", "--disable-pip-version-check", "--only-binary", ":all:", *PLATFORM)
        done = say(sys.executable, "-m", "pip", "install", *options, "--target", folder, *requirements)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            raise NoBuild(last_line(done.stderr).removeprefix("ERROR: "))
        (folder / "ready").touch()
    return folder


def test(package: Package, python: list[str], every: dict[str, Package]) -> tuple[bool, str]:
    """Run the tests of a package; whether they pass, and what there is to say."""
    own, others = closure([*package.requirements, *package.test_requirements], every)
    sources = [site([PYTEST, *others]), *(every[name].source.parent for name in [package.name, *own])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, sources)),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONSAFEPATH": "1",
    }
    words = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-c", os.devnull]
    command = [*python, *words, "--rootdir", str(package.folder), str(package.tests)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=LIMIT, cwd=ROOT)
    except subprocess.TimeoutExpired:
        return False, f"no end after {LIMIT} s"
    said = done.stdout + done.stderr
    return done.returncode == 0, last_line(said) if done.returncode == 0 else said


def compile_all(python: list[str], every: dict[str, Package]) -> str:
    """Compile every source of the workspace there; what is wrong, if anything is."""
    folders = [str(package.source) for package in every.values()]
    done = subprocess.run([*python, "-c", COMPILE, *folders], capture_output=True, text=True, cwd=ROOT)
    return done.stdout + done.stderr if done.returncode else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", help="names (all without torch by default)")
    parser.add_argument("--required", action="store_true", help="fail where this Python cannot be had")
    args = parser.parse_args()
    every = packages()
    free = [name for name, package in every.items() if package.torch_free]
    unknown = [name for name in args.packages if name not in free]
    if unknown:
        parser.error(f"there is no package {unknown[0]} without torch; there are {', '.join(free)}")
    try:
        python = interpreter()
    except Absent as reason:
        print(f"Python {PYTHON} (Pyodide): not tried: {reason}")
        return int(args.required)
    failed = []
    if not args.packages:
        wrong = compile_all(python, every)
        failed += ["compiling"] * bool(wrong)
        print(wrong or f"all sources compile on {PYTHON} without a warning", flush=True)
    for name in args.packages or free:
        start = time.perf_counter()
        try:
            passed, said = test(every[name], python, every)
        except NoBuild as reason:
            print(f"{name} on {PYTHON} (Pyodide): not tried: {reason}", flush=True)
            continue
        if not passed:
            failed.append(name)
            print(f"\n{said}\n")
        outcome = f"ok: {said}" if passed else "FAILED"
        print(f"{name} on {PYTHON} (Pyodide): {outcome} ({time.perf_counter() - start:.1f} s)", flush=True)
    print(f"failed on Python {PYTHON}: {', '.join(failed)}" if failed else f"what can run on Python {PYTHON} passes")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
