"""Seeds and states of PyTorch's generators of random numbers: a program ends before what sets or asks for one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_guards.errors import AcquisitionError
from thunder_interpreter import DECLINED

MANUAL_SEED = torch.random.manual_seed
"""What ``torch.manual_seed`` is, until user code imports ``torch._dynamo``, which puts a wrapper of it in its place."""

CALLS: tuple[Any, ...] = (
    MANUAL_SEED, torch.set_rng_state, torch.get_rng_state, torch.cuda.manual_seed, torch.cuda.manual_seed_all,
    torch.Generator.manual_seed, torch.Generator.set_state, torch.Generator.get_state,
)  # fmt: skip


def seeds(acquisition: Acquiring) -> dict[Any, Any]:
    """Return what is run in place of such calls."""
    return {function: partial(_between_programs, acquisition, function) for function in CALLS}


def of_wrapper(acquisition: Acquiring, function: object) -> Any:
    """Return what is run in place of a wrapper of ``torch.manual_seed``; ``None`` for anything else."""
    if type(function) is FunctionType and function.__dict__.get("__wrapped__") is MANUAL_SEED:
        return partial(_between_programs, acquisition, MANUAL_SEED)
    return None


def _between_programs(acquisition: Acquiring, function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
    found = acquisition.paused(function, args, kwargs) if type(function) is FunctionType else DECLINED
    if found is DECLINED:
        raise AcquisitionError(
            f"{function.__name__}() sets or asks for the state of a generator of random numbers, which no program "
            "does; call it before or after the compiled function"
        )
    return found
