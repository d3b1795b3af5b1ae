"""What a program computes for the call at hand, while it is acquired: for Python to look at."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from itertools import zip_longest
from typing import Any

import torch

from thunder_executors import grad_rule, resolve_executors, transform_for_execution
from thunder_frontend._draws import DrawnFrom, opened
from thunder_frontend._outcomes import Look
from thunder_guards.errors import DataDependentError
from thunder_ir import BoundSymbol, NumberProxy, TensorProxy, Trace
from thunder_ir.passes import read_from_outside
from thunder_tracing.bailouts import Check
from thunder_tracing.derivatives.written_out import computes_gradients, with_gradients_written_out
from thunder_tracing.tracer import Tracer


class Evaluation:
    """Computes what was recorded so far, piece by piece, on the tensors at hand.

    Random numbers are drawn as the program will draw them; afterwards the generators are as they were.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Tracer) -> None:
        self._calls = calls
        self._values: dict[str, Any] = {}
        self._done: list[BoundSymbol] = []
        self._states: dict[Any, Any] = {}

    def __call__(self, proxy: Any) -> Any:
        """Return the value of a proxy.

        Raises:
            DataDependentError: it cannot be computed yet.
        """
        if proxy.name not in self._values:
            self._go_on()
        if proxy.name not in self._values:
            raise DataDependentError(f"Python needs the value of {proxy.name}, which cannot be computed before the run")
        return self._values[proxy.name]

    def _go_on(self) -> None:
        """Compute what was recorded since the last time."""
        recorded = self._calls.builder.bound_symbols
        if any([a is not b for a, b in zip_longest(recorded[: len(self._done)], self._done)]):
            self._begin_anew()
        new = list(recorded[len(self._done) :])
        self._done += new
        for given in self._calls.inputs:
            if given.example is not None:
                self._values.setdefault(given.proxy.name, given.example)
        self._values.update({n.proxy.name: n.proxy.value for n in self._calls.numbers})
        if computes_gradients(new):  # of what was computed from the beginning
            new = self._done
            self._states.clear()
        pieces = [b for b in new if not (b.args and isinstance(b.args[0], (Look, Check)))]
        made = {p.name: p for b in pieces for p in b.outputs if isinstance(p, (TensorProxy, NumberProxy)) and p.name}
        read = {p.name: p for b in pieces for p in b.inputs if p.name not in made}
        if absent := [name for name in read if name not in self._values]:  # gradients, which backward passes bring
            raise DataDependentError(
                f"Python needs what depends on {absent[0]}, which cannot be computed before the run"
            )
        try:
            self._run(Trace("piece", tuple(read.values()), tuple(pieces), tuple(made.values())))
        except (RuntimeError, ValueError, IndexError, TypeError, NotImplementedError) as error:
            raise DataDependentError(f"Python needs a value that cannot be computed before the run: {error}") from error

    def _begin_anew(self) -> None:
        """Forget what was computed: a level in which Python looked at a value has ended, and rewrote its calls."""
        self._values.clear()
        self._done.clear()
        self._states.clear()

    def _run(self, piece: Trace) -> None:
        made = piece.output
        if computes_gradients(piece.bound_symbols):
            piece, _ = with_gradients_written_out(
                piece, self._calls.rules, partial(grad_rule, executors=resolve_executors(()))
            )
            read = read_from_outside(piece.bound_symbols, piece.outputs)  # sizes, too, which its calls did not read
            piece = piece.replace(inputs=tuple(read.values()))
        with ExitStack() as stack:
            stack.enter_context(torch._C.DisableTorchFunction())
            stack.enter_context(torch.no_grad())
            for kind in ("cpu", "cuda"):
                stack.enter_context(torch.autocast(kind, enabled=False))
            drawn = DrawnFrom(opened(piece, self._calls.rules))
            before = drawn.states()
            run = transform_for_execution(piece, ()).python_callable()
            stack.callback(drawn.set_states, before)
            drawn.set_states(before | self._states)
            results = run(*[self._values[p.name] for p in piece.inputs])
            self._states.update(drawn.states())
        self._values.update({p.name: value for p, value in zip(made, results, strict=True)})
