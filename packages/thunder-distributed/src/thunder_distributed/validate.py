"""Print how far estimates are from published steps: ``python -m thunder_distributed.validate``."""

from __future__ import annotations

import statistics
import sys

from thunder_distributed.costs.validation import validate

MEDIAN, WORST = 0.05, 0.10
"""Relative errors of predictions that are accepted."""


def main() -> int:
    """Print the table; return 1 if predictions are further off than is accepted."""
    report = validate()
    print(report.table())
    errors = report.errors(predicted=True)
    return int(statistics.median(errors) > MEDIAN or max(errors) > WORST)


if __name__ == "__main__":
    sys.exit(main())
