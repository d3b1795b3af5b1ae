"""The table of batching rules, and what a rule looks like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from thunder_ir import RuleTable, Symbol

BatchingRule = Callable[..., tuple[Any, Any]]
"""Takes the size of the batch, the symbol's positional arguments and for each of them where its batch dimension is
(``None``: not batched; a tuple of such for an argument that is a sequence of tensors), then its keyword arguments;
returns the output and where its batch dimension is, for several outputs a tuple of such.

    rule(size, args, dims, **kwargs) -> (output, dim)
"""

batching_rule: RuleTable[Symbol, BatchingRule] = RuleTable("batching", "@batching_rule")
