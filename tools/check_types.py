"""Check types, strictly, in all packages. Other words are passed on to mypy."""

import subprocess
import sys

from workspace import ROOT, packages


def main() -> int:
    folders = [str(package.source.relative_to(ROOT)) for package in packages().values()]
    return subprocess.call([sys.executable, "-m", "mypy", *sys.argv[1:], *folders], cwd=ROOT)


if __name__ == "__main__":
    sys.exit(main())
