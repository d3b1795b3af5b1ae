"""Deciding who runs each call of a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from thunder_executors.checked import Checked
from thunder_executors.errors import ExecutorError, UnclaimedError
from thunder_executors.executor import Executor
from thunder_executors.fusion import FusionExecutor
from thunder_executors.implementation import Declined, Implementation
from thunder_executors.registry import get_all_executors
from thunder_ir import (
    BoundSymbol,
    Builder,
    Names,
    OpTags,
    Proxy,
    Symbol,
    Trace,
    recording,
    substitute,
)
from thunder_ir.passes import trace_pass

_NOT_FUSED = Declined("the call is tagged not to be fused")


@dataclass(frozen=True, slots=True)
class Refusal:
    """An executor that was asked to run a call, and why it declined.

    Args:
        operation: id of the symbol.
        executor: name of the executor.
        reason: in its own words.
        location: where in the user's program the call came from, if known.
    """

    operation: str
    executor: str
    reason: str
    location: Any = None


@trace_pass
def claim(trace: Trace, executors: Sequence[Executor], refusals: list[Refusal] | None = None) -> Trace:
    """Give every call to the first executor that takes it: the whole call, or else what it decomposes into.

    Calls that a fusion executor takes stay as they are, tagged with that executor; all others become calls of
    execution symbols. The cost is linear in the number of calls that are looked at.

    Args:
        trace: the program.
        executors: who is asked, in this order.
        refusals: a list to which the reasons of those who declined are added.

    Raises:
        UnclaimedError: no executor runs a prim; the message says why each executor declined.
        ExecutorError: a checker or a transform of an executor failed.

    Example:
        >>> import operator
        >>> from thunder_executors import OperatorExecutor, claim
        >>> from thunder_ir import Symbol, Tensor, trace_of
        >>> mul = Symbol("mul", "prims", meta=lambda a, b: a.like())
        >>> square = Symbol("square", "prims", decomposition=lambda a: mul(a, a))
        >>> executor = OperatorExecutor("doc")
        >>> executor.implements(mul)(operator.mul)
        <built-in function mul>
        >>> print(claim(trace_of(lambda x: square(x), Tensor((2,))), [executor]))
        def program(x: "float32[2]"):
            t0 = _doc_mul(x, x)  # float32[2]
            return t0
    """
    claimer = _Claimer(trace.names(), executors, refusals)
    for bound in trace.bound_symbols:
        claimer.visit(bound)
    output = substitute(trace.output, claimer.replaced) if claimer.replaced else trace.output
    return trace.replace(bound_symbols=tuple(claimer.claimed), output=output)


class _Claimer:
    """The state of one walk: what is claimed so far, and which names now stand for other values."""

    def __init__(self, names: Names, executors: Sequence[Executor], refusals: list[Refusal] | None) -> None:
        self.names = names
        self.executors = executors
        self.refusals = refusals
        self.claimed: list[BoundSymbol] = []
        self.replaced: dict[str, Any] = {}
        self.underway: list[Implementation] = []  # transforms that we are inside of; they must not take their own work

    def visit(self, bound: BoundSymbol) -> None:
        if self.replaced:
            bound = bound.substituted(self.replaced)
        if bound.symbol.implementation is not None:
            self.run_operator(bound)
            return
        for executor in self.executors:
            if isinstance(executor, FusionExecutor):
                answer: Any = _NOT_FUSED if bound.has_tag(OpTags.DONT_FUSE) else executor.can_fuse(bound)
                if answer:
                    self.claimed.append(bound.replace(tags=bound.tags | {executor.mark}))
                    return
                opened = executor.opened(bound)
                if opened is not None and opened not in self.underway:
                    self.run(bound, opened)
                    return
            else:
                answer = executor.find(bound)
                if isinstance(answer, Implementation) and answer not in self.underway:
                    self.run(bound, answer)
                    return
            if self.refusals is not None:
                self.refusals.append(
                    Refusal(bound.symbol.id, executor.name, getattr(answer, "reason", ""), bound.location)
                )
        self.descend(bound)

    def run_operator(self, bound: BoundSymbol) -> None:
        """Take a call of an executor's operator: as it is, unless the executor says how else it is run."""
        executor = bound.symbol.executor
        if executor is not None and executor.implementations(bound.symbol):
            other = executor.find(bound)
            if isinstance(other, Implementation) and other not in self.underway and other.operator is not bound.symbol:
                self.run(bound, other)
                return
        self.claimed.append(_ready(bound))

    def run(self, bound: BoundSymbol, implementation: Implementation) -> None:
        if implementation.transform is not None:
            calls, output = self.transformed(bound, implementation.executor, implementation.transform)
            self.underway.append(implementation)
            self.splice(bound, calls, output)
            self.underway.pop()
            return
        operator = implementation.execution_symbol()
        if operator is not None:
            tags = bound.tags | bound.symbol.tags if bound.symbol.tags else bound.tags
            if implementation.arrange is None:
                made = bound.as_call_of(operator, tags)
            else:
                arranged = implementation.arrange(*bound.args, **bound.kwargs)
                made = BoundSymbol(operator, arranged.args, arranged.kwargs, bound.output, bound.location, tags)
            self.claimed.append(_ready(made))

    def transformed(
        self, bound: BoundSymbol, executor: Executor, transform: Callable[..., Any]
    ) -> tuple[list[BoundSymbol], Any]:
        """Return what an execution transform records, and its output."""
        builder = Builder(self.names, bound.symbol.language, lambda: bound.location)
        builder.tags = bound.tags
        try:
            with recording(builder):
                output = transform(*bound.args, **bound.kwargs)
        except Exception as error:
            raise ExecutorError(
                f"executor {executor.name}, operation {bound.symbol.id}: its execution transform raised "
                f"{type(error).__name__}: {error}"
            ) from error
        return builder.bound_symbols, output

    def descend(self, bound: BoundSymbol) -> None:
        if bound.symbol.is_prim:
            raise UnclaimedError(self.unclaimed(bound))
        calls, output = bound.decomposed(self.names)
        self.splice(bound, calls, output)

    def splice(self, bound: BoundSymbol, calls: Iterable[BoundSymbol], output: Any) -> None:
        """Visit ``calls``, which compute ``output``, in place of ``bound``, under the names of its outputs."""
        calls = list(calls)
        made = {p.name for call in calls for p in call.outputs}
        renaming: dict[str, Any] = {}
        self.unify(bound, bound.output, output, made, renaming)
        for call in calls:
            self.visit(call.substituted(renaming, outputs=True) if renaming else call)

    def unify(self, bound: BoundSymbol, wanted: Any, got: Any, made: set[str], renaming: dict[str, Any]) -> None:
        """Match the wanted output with the one that came: rename what was made, replace what was there before."""
        if isinstance(wanted, Proxy):
            if isinstance(got, Proxy) and got.name in made and got.name not in renaming:
                renaming[got.name] = wanted
            else:
                self.replaced[wanted.name] = substitute(got, renaming) if isinstance(got, Proxy) else got
            return
        if isinstance(wanted, (tuple, list)):
            if not isinstance(got, (tuple, list)) or len(got) != len(wanted):
                raise ExecutorError(
                    f"operation {bound.symbol.id}: what stands for it returns {_structure(got)}, "
                    f"expected {_structure(wanted)}"
                )
            for w, g in zip(wanted, got, strict=True):
                self.unify(bound, w, g, made, renaming)
        elif isinstance(wanted, dict):
            for key, value in wanted.items():
                self.unify(bound, value, got[key], made, renaming)

    def unclaimed(self, bound: BoundSymbol) -> str:
        place = f" at {bound.location}" if bound.location is not None else ""
        types = ", ".join([p.type_string for p in bound.inputs])
        lines = [f"no executor runs {bound.symbol.id}({types}){place}:"]
        for executor in self.executors:
            answer: Any = executor.can_fuse(bound) if isinstance(executor, FusionExecutor) else executor.find(bound)
            lines.append(f"  {executor.name}: {getattr(answer, 'reason', '') or 'it declines'}")
        if not self.executors:
            lines.append("  no executor was given")
        absent = [(e.name, e.missing()) for e in get_all_executors() if e not in self.executors]
        lines += [f"  {name}: it cannot run here: {reason}" for name, reason in absent if reason is not None]
        return "\n".join(lines)


def _structure(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{len(value)} values"
    return value.type_string if isinstance(value, Proxy) else type(value).__name__


def _ready(bound: BoundSymbol) -> BoundSymbol:
    """Return a call that can run; one of an executor whose results are to be checked gets its check."""
    symbol = bound.symbol
    executor = symbol.executor
    if executor is None or not executor.checks or isinstance(symbol.implementation, Checked):
        return bound
    checked = Symbol(
        symbol.name,
        symbol.namespace,
        tags=symbol.tags,
        printer=symbol.printer,
        implementation=Checked(bound),
        executor=executor,
    )
    return bound.replace(symbol=checked)
