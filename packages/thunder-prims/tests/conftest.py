"""Makes the modules that the tests share importable: ``prims_machine``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
