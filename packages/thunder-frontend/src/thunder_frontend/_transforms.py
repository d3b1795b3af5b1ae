"""User transforms: what may be done to a module and to the stages of its program."""

from __future__ import annotations

from typing import Any

import torch

from thunder_ir import Trace


class Transform:
    """Override what is wanted and pass an instance in ``thunder.jit(..., transforms=[...])``.

    Transforms are applied in the order given; those of state dicts in reverse when going back.

    Example:
        >>> import torch
        >>> from thunder_frontend import Transform, jit
        >>> class Count(Transform):
        ...     def transform_traces_pre_prologue(self, prologue, computation, epilogue, **kwargs):
        ...         print(len(computation.bound_symbols), "operations")
        ...         return prologue, computation, epilogue
        >>> jit(lambda x: x * 2 + 1, transforms=[Count()])(torch.ones(2))
        2 operations
        tensor([3., 3.])
    """

    def transform_module(self, model: torch.nn.Module) -> None:
        """Change the module, once, when it is compiled: replace parameters, say.

        Args:
            model: the compiled one, a :class:`~thunder_frontend.ThunderModule`.
        """

    def transform_traces_pre_prologue(
        self, prologue_trace: Trace, computation_trace: Trace, epilogue_trace: Trace, **kwargs: Any
    ) -> tuple[Trace, Trace, Trace]:
        """Return the program as acquired, changed: before it is differentiated and given to executors.

        What a prologue does not check any more, the user answers for: a program whose guard would have failed runs all
        the same, and what it returns is then that of the state in which it was acquired.

        Args:
            prologue_trace: checks guards and fetches what the computation gets. Checks may be left out or added, by
                :func:`thunder_guards.traces.check`; the kinds of input tensors are always checked.
            computation_trace: from input tensors to results; the inputs must stay, and outputs keep their order and
                meaning.
            epilogue_trace: makes the writes that each call leaves, and returns the result. Writes may be left out or
                added, by :func:`thunder_guards.traces.write`.
            kwargs: ``compile_data``, the options.
        """
        return prologue_trace, computation_trace, epilogue_trace

    def transform_trace_post_optimization(self, computation_trace: Trace, **kwargs: Any) -> Trace:
        """Return an execution trace, changed: the forward program's first and then, if there is one, the backward's.

        Args:
            computation_trace: with every call given to an executor; its name ends in ``_forward`` or ``_backward``
                where there are both.
            kwargs: ``compile_data``, the options.
        """
        return computation_trace

    def transform_state_dict_for_submodule(
        self, model: torch.nn.Module, submodule_name: str, state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        """Return entries of a state dict of the original as they fit the changed module."""
        return state_dict

    def reverse_transform_state_dict_for_submodule(
        self, model: torch.nn.Module, submodule_name: str, state_dict: dict[str, Any]
    ) -> dict[str, Any]:
        """Return entries of the changed module's state dict as they fit the original."""
        return state_dict
