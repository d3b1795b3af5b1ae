"""Walk what the home page says, as somebody who has nothing else: the wheels in an empty environment.

    python tools/walk.py                the steps of integration-tests/test_new_user.py, in that environment

Builds the wheels, and installs `thunder-jit[all]` from them, with no index for Thunder's own packages; what these
declare comes from the index. The environment is kept in `.hatch/isolated` and made afresh when requirements change.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from isolated import ENVIRONMENT, PYTEST, Broken, Layer, closure, only_one, run
from packaging.requirements import Requirement
from release import build
from workspace import ROOT, packages

INSTALLED = "thunder-jit[all]"
STEPS = ROOT / "integration-tests" / "test_new_user.py"


def installed(wheels: Path) -> Layer:
    """Return an environment in which the wheels are installed, and pytest beside them."""
    every = packages()
    for package in every.values():
        build(package, wheels, ("wheel",))
    own, others = closure([Requirement(INSTALLED)], every)
    layer = Layer(os.path.realpath(sys.executable), [PYTEST, *others])
    layer.hold([INSTALLED], every, wheels)
    run(layer.python, "-m", "pip", "check")
    print(f"{len(own)} packages installed from wheels, beside {', '.join(others)}", flush=True)
    return layer


def main() -> int:
    with only_one(), tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as elsewhere:
        try:
            layer = installed(Path(folder))
        except Broken as error:
            print(error)
            return 1
        tests = [layer.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, STEPS, *sys.argv[1:]]
        return subprocess.call([str(t) for t in tests], cwd=elsewhere, env=ENVIRONMENT)


if __name__ == "__main__":
    sys.exit(main())
