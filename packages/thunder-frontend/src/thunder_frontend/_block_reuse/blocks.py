"""Block reuse: of the blocks that a model repeats one is acquired by running it, its equals by recording that again.

While a module with parts runs, all that it reads is logged. When another module of the class is called in the same
way, that log is gone through with the second module in place of the first: where each value read is the same, or the
counterpart of the first's, running it would do what running the first did. Then its reads become
guards of their own, and what the first recorded is recorded again on the second's tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._block_reuse.counterparts import Unlike
from thunder_frontend._block_reuse.reusing import Recording, ReusedBlock, Run, is_of_numbers
from thunder_frontend._library_code.module_calls import Again
from thunder_guards import environment
from thunder_ir import BoundSymbol, NumberProxy, TensorProxy, is_unknown

REMEMBERED = 4
"""How many runs of modules of one class are compared with a call: models alternate between a few kinds of block."""


class BlockReuse:
    """Remembers how modules ran in one acquisition.

    Args:
        recording: where what is reused is guarded and recorded.
        state: everything that a call depends on besides the module and its arguments, as values that compare equal.
    """

    def __init__(self, recording: Recording, state: Callable[[], Any]) -> None:
        self._recording = recording
        self._state = state
        self._runs: dict[Any, list[Run]] = {}

    def _state_now(self) -> Any:
        """Return what a call depends on besides the module and its arguments."""
        mutations = self._recording.external.mutations
        return (self._state(), mutations.version, mutations.consulted, self._recording.builder.tags, environment())

    def begin(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Run | Again | None:
        """Answer a call as an equal module was seen to, or begin to remember it; ``None`` where neither makes sense."""
        source = self._recording.external.source_of(module)
        if source is None or not source.is_held or torch._C._len_torch_function_stack() != 1:
            return None
        if not module.__dict__.get("_modules"):
            return None
        state = self._state_now()
        for run in reversed(self._runs.get((type(module), len(args)), ())):
            if run.state == state:
                try:
                    return Again(ReusedBlock(self._recording, run, module, args, kwargs)())
                except Unlike:
                    continue
        here = slice(len(self._recording.external.log), None)
        return Run(module, args, dict(kwargs), state, here, [], len(self._recording.builder.bound_symbols))

    def end(self, run: Run, result: object) -> None:
        """Remember a call that :meth:`begin` began to, unless it did what cannot be recorded again."""
        bound = self._recording.builder.bound_symbols[run.begins :]
        if self._state_now() != run.state:
            return
        if any([_finds_out(b) for b in bound]):  # the second call would have numbers and sizes of its own
            return
        run.result = result
        run.facts = slice(run.facts.start, len(self._recording.external.log))
        run.bound = bound
        runs = self._runs.setdefault((type(run.module), len(run.args)), [])
        runs.append(run)
        del runs[:-REMEMBERED]


def _finds_out(bound: BoundSymbol) -> bool:
    """Whether a call returns a number, or what has dimensions, that only the run of a program tells."""
    for proxy in bound.outputs:
        if isinstance(proxy, NumberProxy) and not is_of_numbers(bound):
            return True
        if isinstance(proxy, TensorProxy) and any([is_unknown(d) for d in proxy.shape]):
            return True
    return False
