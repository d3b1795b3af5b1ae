"""What Thunder makes of a program: what it supports, saves, costs and holds, and why; as text, JSON and a page."""

from thunder_examine._version import __version__
from thunder_examine.costs import Cost, costs
from thunder_examine.facts import Facts, facts_of
from thunder_examine.fusions import get_fusion_symbols, get_fusions
from thunder_examine.memory import Memory, get_alloc_memory, memory
from thunder_examine.operations import Declined, Operation, OperationsReport, examine
from thunder_examine.report import Report, report
from thunder_examine.roofline import Roof, roof_of
from thunder_examine.saved import SavedReport, get_saved_for_backward_tensors, saved_for_backward

__all__ = [
    "Cost", "Declined", "Facts", "Memory", "Operation", "OperationsReport", "Report", "Roof", "SavedReport",
    "__version__", "costs", "examine", "facts_of", "get_alloc_memory", "get_fusion_symbols", "get_fusions",
    "get_saved_for_backward_tensors", "memory", "report", "roof_of", "saved_for_backward",
]  # fmt: skip
