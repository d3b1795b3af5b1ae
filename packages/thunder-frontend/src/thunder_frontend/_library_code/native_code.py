"""Python functions that are called as they are: Thunder's own, and what of PyTorch ends in its dispatcher."""

from __future__ import annotations

import warnings
from functools import cache
from types import FrameType, FunctionType

import torch

from thunder_frontend._library_code.control_flow import INTERPRETED_OPERATORS
from thunder_frontend._library_code.module_calls import FUNCTIONS
from thunder_guards.own_code import PACKAGES, name_in, package_of, package_of_callable
from thunder_ir import Symbol

INTERPRETED_TRANSFORMS = (
    "torch._functorch.apis", "torch._functorch.eager_transforms", "torch._functorch.vmap", "torch._vmap_internals",
    "torch.autograd.forward_ad",
    "torch._functorch.functional_call", "torch._functorch.deprecated", "torch.autograd.functional",
)  # fmt: skip
"""Modules of PyTorch whose functions are interpreted: they do in Python what levels do not."""

INTERPRETED_TORCH = (
    "torch.nn.modules", "torch.nn.utils", "torch.nn.parameter", "torch.optim", "torch.utils", "torch.amp",
    "torch.nn.attention", "torch.autograd.function", "torch.distributions", "torch.random", "torch.fx.graph_module",
    "torch.ao.nn", "torch.ao.pruning", "torch.ao.quantization", "torch.nn.parallel.data_parallel", "torch.testing",
    "torch.quasirandom", "torch.masked", "torch.signal", "torch.cuda.jiterator",
    "torch.distributed.tensor._api", "torch.distributed.tensor.parallel",
    *INTERPRETED_TRANSFORMS, *INTERPRETED_OPERATORS,
)  # fmt: skip
"""Modules of PyTorch whose functions are interpreted, those below them included."""

INTERPRETED_OWN = (
    "thunder_frontend._gradients",
    "thunder_frontend._suspensions",
    "thunder_frontend._lookasides.transform_calls",
    "thunder_frontend._library_code.control_flow",
    "thunder_frontend._lookasides.transformer_encoders",
    "thunder_frontend._library_code.in_python",
)
"""Modules of ours that say in terms of PyTorch or of Python what happens in place of something else."""

NATIVE_PACKAGES = PACKAGES - {"thunder_distributed"} | {"optree", "numpy", "linecache", "tokenize"}
"""Packages whose functions are called as they are; modules that run in parallel are programs like the user's."""

COUNTING = (torch.utils.hooks.RemovableHandle.__init__, torch.autograd.function.FunctionMeta.__init__)
"""Number all hooks, and all functions of autograd, that there ever were.

The count is no state that a program depends on, and is not to be taken back.
"""

COUNTING_CODE = frozenset({function.__code__ for function in COUNTING})

IMPORTS = "importlib._bootstrap"
"""The module of Python that runs those which are imported."""


def runs_natively(function: FunctionType) -> bool:
    """Whether a Python function is called as it is: Thunder's own, and what of PyTorch ends in its dispatcher."""
    module = name_in(function.__globals__)
    if function in FUNCTIONS:
        return False
    return function in COUNTING or module_runs_natively(module)


def is_of_torch(function: FunctionType) -> bool:
    """Whether a function that is called as it is belongs to PyTorch."""
    return package_of_callable(function) == "torch"


@cache
def module_runs_natively(module: str) -> bool:
    """Whether the functions of a module are called as they are."""
    if module in INTERPRETED_OWN:
        return False
    package = package_of(module)
    if package == "torch":
        return not module.startswith(INTERPRETED_TORCH)
    return package in NATIVE_PACKAGES


def is_own_operation(function: object) -> bool:
    """Whether something is one of Thunder's own operations, which run in programs only."""
    return isinstance(function, Symbol) or is_of_language(function)


def is_of_language(function: object) -> bool:
    """Whether something is a function of Thunder's own languages."""
    return type(function) is FunctionType and package_of_callable(function) == "thunder_lang"


def is_of_no_concern(frame: FrameType) -> bool:
    """Whether a function runs for the acquisition, or for a function of PyTorch's, of all of which nothing is seen."""
    if _is_native(frame) or _module_of(frame) == warnings.__name__:  # code in C warns, which listeners record
        return True
    of_torch = _module_of(frame).startswith("torch.")
    caller = frame.f_back
    while caller is not None and not _module_of(caller).startswith("thunder_interpreter"):
        module = _module_of(caller)
        if module == IMPORTS:  # a module that is imported now is there on later calls, as it would be in eager
            return True
        if module.startswith("thunder_") or of_torch and module.startswith("torch.") and _is_native(caller):
            return True
        caller = caller.f_back
    return False


def _module_of(frame: FrameType) -> str:
    return name_in(frame.f_globals)


def _is_native(frame: FrameType) -> bool:
    return frame.f_code in COUNTING_CODE or module_runs_natively(_module_of(frame))
