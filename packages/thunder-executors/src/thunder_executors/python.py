"""The executor of Python's own operations: numbers, and what the program around the tensors needs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from thunder_executors.executor import OperatorExecutor
from thunder_ir import BoundSymbol, Context, Symbol


def _print_comment(bound: BoundSymbol, context: Context) -> list[str]:
    """The text on one line, escaped where it could end the comment."""
    (text,) = bound.args
    return [f"# {text if text.isprintable() and text.isascii() else ascii(text)[1:-1]}"]


def _nothing(text: str) -> None:
    return None


executor = OperatorExecutor("python", always=True, priority=-200, checks=False)

NUMBER_OPERATIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "pow": operator.pow,
    "neg": operator.neg,
    "abs": operator.abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "round": round,
    "sqrt": math.sqrt,
    "sym_max": max,
    "sym_min": min,
    "int": int,
    "float": float,
    "bool": bool,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "lshift": operator.lshift,
    "rshift": operator.rshift,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
}

for _name, _function in NUMBER_OPERATIONS.items():
    executor.implements(f"prims.number_{_name}")(_function)


@executor.implements("prims.number_math")
def number_math(function: str, a: float) -> float:
    """A function of Python's ``math``."""
    result: float = getattr(math, function)(a)
    return result


executor.implements("prims.print")(print)
executor.runs(
    "prims.comment", Symbol("comment", "python", printer=_print_comment, implementation=_nothing, executor=executor)
)
