"""Makes the module that the tests share importable: ``ir_toys``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
