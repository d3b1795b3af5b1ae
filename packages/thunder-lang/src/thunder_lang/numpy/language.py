"""The numpy language: what operators and methods of proxies mean in programs written for NumPy."""

from __future__ import annotations

from thunder_ir import Language
from thunder_lang.language import core

numpy = Language("numpy", base=core)
"""Operators and methods with NumPy's promotion; what they do not define is as in the core language."""
