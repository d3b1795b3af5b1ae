"""Check types: strictly in the packages without PyTorch. Other words are passed on to mypy."""

import subprocess
import sys

from workspace import ROOT, packages


def main() -> int:
    strict = [package for package in packages().values() if package.torch_free]
    folders = [str(package.source.relative_to(ROOT)) for package in strict]
    return subprocess.call([sys.executable, "-m", "mypy", *sys.argv[1:], *folders], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
