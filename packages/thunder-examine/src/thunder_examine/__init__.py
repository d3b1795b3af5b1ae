"""What Thunder makes of a program: what it supports, what it saves for the backward program, and why."""

from thunder_examine._version import __version__
from thunder_examine.operations import Operation, OperationsReport, examine
from thunder_examine.saved import SavedReport, saved_for_backward

__all__ = ["Operation", "OperationsReport", "SavedReport", "__version__", "examine", "saved_for_backward"]
