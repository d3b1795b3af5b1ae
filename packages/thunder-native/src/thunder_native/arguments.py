"""Arguments of a call, whether they were given by position or by name."""

from __future__ import annotations

from typing import Any

from thunder_ir import BoundSymbol
from thunder_native.table import CannotExpress


def arguments(bound: BoundSymbol, *names: str, **defaults: Any) -> list[Any]:
    """Return the arguments of a call in the order of their names.

    Args:
        bound: the call.
        names: of the arguments that it must have.
        defaults: names and values of those behind them that may be left out.

    Raises:
        CannotExpress: it has others, or lacks one.
    """
    order = (*names, *defaults)
    given = dict(zip(order, bound.args, strict=False)) | bound.kwargs
    values = defaults | given
    if len(given) != len(bound.args) + len(bound.kwargs) or values.keys() != set(order):
        raise CannotExpress(f"its arguments are other than {', '.join(order)}")
    return [values[name] for name in order]
