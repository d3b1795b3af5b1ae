"""``torch._check`` and its kin, by which user code says what holds: a program checks it when it runs."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._torch_versions import CHECK_IS_SIZE_WARNING
from thunder_frontend._tracebacks import users_stacklevel
from thunder_interpreter import DECLINED
from thunder_ir import NumberProxy
from thunder_tracing.bailouts import is_single_and_unknown
from thunder_tracing.tensors.comparisons import compared

T = torch.Tensor
OF_TRUTHS = (
    torch._check, torch._check_index, torch._check_value, torch._check_type, torch._check_not_implemented,
)  # fmt: skip
ASSERT: Any = torch._assert
CHECK, CHECK_WITH = torch._check, torch._check_with
CHECK_IS_SIZE: Any = torch._check_is_size
CHECK_ALL, CHECK_ALL_WITH = torch._check_tensor_all, torch._check_tensor_all_with


def checks(acquisition: Acquiring) -> dict[Any, Any]:
    """Return what is run in place of PyTorch's checks; what they raise is for eager to say, should they fail.

    Args:
        acquisition: records that something must hold.
    """

    def check(cond: Any, *_: Any, **__: Any) -> Any:
        unknown = not isinstance(cond, T) and is_single_and_unknown(cond)
        return None if unknown and acquisition.expect(cond, True) else DECLINED

    def asserts(condition: object, message: object) -> Any:
        if not isinstance(condition, T):
            return DECLINED
        expected = is_single_and_unknown(condition) and acquisition.expect(condition, True)
        if not expected and not condition:
            raise AssertionError(message)
        return None

    def check_all(cond: object, *_: Any, **__: Any) -> Any:
        if not isinstance(cond, T) or cond.dtype is not torch.bool:
            return DECLINED
        return check(cond.all().item())

    def check_is_size(i: object, message: object = None, *, max: object = None) -> Any:
        if not isinstance(i, NumberProxy):
            return DECLINED
        if CHECK_IS_SIZE_WARNING is not None:
            warnings.warn(CHECK_IS_SIZE_WARNING, FutureWarning, stacklevel=users_stacklevel())
        for truth in (compared(operator.ge, i, 0), True if max is None else compared(operator.le, i, max)):
            if check(truth) is DECLINED:
                CHECK(truth, message)  # type: ignore[no-untyped-call]
        return None

    def after_the_error(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda error_type, cond, *rest, **kwargs: function(cond, *rest, **kwargs)

    return {
        **dict.fromkeys(OF_TRUTHS, check),
        ASSERT: asserts,
        CHECK_WITH: after_the_error(check),
        CHECK_ALL: check_all,
        CHECK_ALL_WITH: after_the_error(check_all),
        CHECK_IS_SIZE: check_is_size,
    }
