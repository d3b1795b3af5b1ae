"""Check types, strictly, in all packages but those that are named here. Other words are passed on to mypy."""

import subprocess
import sys

from workspace import ROOT, packages

NOT_YET = frozenset({"thunder_executors_torch", "thunder_torch"})
"""Packages that use what PyTorch's stubs do not describe, in more places than are worth a word each."""


def main() -> int:
    strict = [package for package in packages().values() if package.module not in NOT_YET]
    folders = [str(package.source.relative_to(ROOT)) for package in strict]
    return subprocess.call([sys.executable, "-m", "mypy", *sys.argv[1:], *folders], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
