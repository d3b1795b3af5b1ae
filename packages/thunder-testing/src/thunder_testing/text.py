"""Comparison of traces as text: a pass is tested program in, program out."""

from __future__ import annotations

import difflib
import textwrap

from thunder_ir import Trace

__all__ = ["assert_text"]


def assert_text(trace: Trace, expected: str) -> None:
    """Check that a trace prints as ``expected``.

    Args:
        trace: the program.
        expected: its text without imports, indented as suits the test.

    Raises:
        AssertionError: it prints otherwise; the message is the difference, line by line.

    Example:
        >>> from thunder_ir import Tensor, trace_of
        >>> assert_text(
        ...     trace_of(lambda x: x, Tensor((2,))),
        ...     '''
        ...     def program(x: "float32[2]"):
        ...         return x
        ...     ''',
        ... )
    """
    wanted = textwrap.dedent(expected).strip("\n").rstrip().splitlines()
    printed = str(trace).splitlines()
    if printed != wanted:
        difference = difflib.unified_diff(wanted, printed, "expected", "printed", lineterm="")
        raise AssertionError("the trace prints otherwise:\n" + "\n".join(difference))
