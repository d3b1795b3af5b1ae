"""Looking for nested tensors of the old kind among the inputs, at which PyTorch's check of tensors ends the process.

Those among the arguments, and what comes from elsewhere, are looked at on each call. Parameters and buffers of modules
are many, and hardly ever others than before: they are looked at when something was put into the tables that have them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from thunder_frontend.program import Input
from thunder_frontend.sources import Source
from thunder_ir import Context

try:
    from torch._C._dynamo.guards import dict_version
except ImportError:  # a PyTorch without it: all are looked at on each call
    dict_version = None


class Tables:
    """Tables of modules, as they were when nobody found a nested tensor in them.

    Args:
        tables: dicts of parameters or buffers.
    """

    __slots__ = ("tables", "versions")

    def __init__(self, tables: Sequence[dict[str, Any]]) -> None:
        self.tables = list(tables)
        self.versions: list[int] | None = None

    def without_nested(self, *tensors: Any) -> bool:
        """Look at what is in the tables, and remember if there are no nested tensors."""
        versions = list(map(dict_version, self.tables))
        if any([getattr(t, "is_nested", False) for t in tensors]):
            return False
        self.versions = versions
        return True


def looks(named: Sequence[tuple[Input, str]], context: Context) -> list[str]:
    """Return conditions that no input is a nested tensor of the old kind.

    The classes of arguments are known before.

    Args:
        named: the inputs, each with an expression for it.
        context: takes the names that the conditions use.
    """
    conditions, in_tables = [], []
    for given, name in named:
        kind = given.metadata.type
        if kind not in (torch.Tensor, torch.nn.Parameter):
            continue
        if dict_version is not None and _in_table(given):
            in_tables.append((given, name))
            continue
        if not _is_argument(given.source):
            conditions.append(f"{name}.__class__ is {context.object(kind, kind.__name__)}")
        conditions.append(f"not {name}.is_nested")
    if in_tables:
        found = list({id(i.slot[0]): i.slot[0] for i, _ in in_tables}.values())  # type: ignore[index]
        tables = Tables(found)
        version, those = context.object(dict_version, "version_of"), context.object(tables.tables, "tables")
        known = f"[{version}(t) for t in {those}] == {context.object(tables, 'known')}.versions"
        look = context.object(tables.without_nested, "without_nested")
        conditions.append(f"({known} or {look}({', '.join([name for _, name in in_tables])}))")
    return conditions


def _is_argument(source: Source) -> bool:
    return source.base is not None and source.base.base is None and not source.base.is_held


def _in_table(given: Input) -> bool:
    """Whether an input is one of the parameters or buffers of a module."""
    base = given.source.base
    module = base.held if base is not None and base.is_held else None
    if not isinstance(module, torch.nn.Module) or given.slot is None or given.slot[0] is module.__dict__:
        return False
    return isinstance(given.slot[0], dict)


__all__ = ["looks"]
