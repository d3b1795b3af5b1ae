"""Which versions of PyTorch the tests were run on: the one place that names them."""

from __future__ import annotations

import re
import warnings

OLDEST, NEWEST = (2, 9), (2, 15)
"""The range of tested minor versions, both ends included."""


def range_text() -> str:
    """Return the range as text.

    Example:
        >>> from thunder_torch._supported import range_text
        >>> range_text()
        '2.9 to 2.15'
    """
    return " to ".join(["{}.{}".format(*version) for version in (OLDEST, NEWEST)])


def warn_if_untested(version: str) -> None:
    """Warn of a PyTorch that is newer than any that was tested; it is used as far as it goes.

    Args:
        version: as ``torch.__version__`` has it.
    """
    numbers = tuple([int(n) for n in re.findall(r"\d+", version)[:2]])
    if numbers > NEWEST:
        warnings.warn(
            f"PyTorch {version} is newer than the versions that Thunder is tested on, {range_text()}; it may lack what "
            "Thunder uses. Update Thunder, or install a PyTorch of that range if something fails.",
            UserWarning,
            stacklevel=3,
        )
