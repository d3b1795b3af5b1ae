"""``torch.compile`` around what ``thunder.jit`` made."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TypeVar

from torch._C._dynamo import eval_frame

from thunder_torch.internals import MissingInternalError

F = TypeVar("F", bound=Callable[..., object])
_SKIP = eval_frame._FrameAction.SKIP


def left_alone_by_dynamo(function: F) -> F:
    """Let ``torch.compile`` run a function, and all that it calls, as it is; it costs calls nothing."""
    with contextlib.suppress(MissingInternalError):  # what follows says it, too, if not of what the function calls
        eval_frame.set_code_exec_strategy(function.__code__, eval_frame._FrameExecStrategy(_SKIP, _SKIP))
    function._torchdynamo_disable = True  # type: ignore[attr-defined]
    function._torchdynamo_disable_msg = "it is compiled by thunder.jit"  # type: ignore[attr-defined]
    return function
