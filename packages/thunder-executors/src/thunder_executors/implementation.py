"""What an executor says of one operation: whether it runs it, by what, and with which derivative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from thunder_executors.errors import ExecutorError
from thunder_ir import BoundSymbol, Symbol, Trace, UnknownNumberError

if TYPE_CHECKING:
    from thunder_executors.executor import Executor


@dataclass(frozen=True, slots=True)
class Declined:
    """What a checker returns to decline a call with a reason; it is false.

    Example:
        >>> from thunder_executors import Declined
        >>> bool(Declined("needs a CUDA tensor, got cpu"))
        False
    """

    reason: str = ""

    def __bool__(self) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call, as an executor rearranges them."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


def arguments(*args: Any, **kwargs: Any) -> Arguments:
    """Return the arguments with which an implementation shall be called."""
    return Arguments(args, kwargs)


def _number_of_calls(trace: Trace) -> int:
    return len(trace.bound_symbols)


@dataclass(frozen=True, slots=True)
class Finish:
    """What an executor makes of programs that are ready to run.

    Args:
        improve: takes such a program, and returns another one, or ``None`` where it has to be asked again at another
            call.
        after: how often the program has to be called before.
        fewest: number of calls in a program below which it is not asked.
        counts: returns how many calls a program counts for.
    """

    improve: Callable[[Trace], Trace | None]
    after: int = 0
    fewest: int = 0
    counts: Callable[[Trace], int] = _number_of_calls


@dataclass(frozen=True, slots=True, eq=False)
class Implementation:
    """How an executor runs a symbol.

    Args:
        executor: whose it is.
        operator: the execution symbol that runs it; ``None`` where a function or a transform does.
        function: what runs it, if no ``operator`` is given.
        when: whether it runs this call, asked with the bound symbol. ``None``: always.
        arrange: from the symbol's arguments to those of ``operator``; ``None``: the very same.
        transform: records in other operations what runs the call, and returns the output.
        vjp: the rule with which derivatives go through a call that this implementation runs: takes the arguments,
            returns the output and the pullback.
        grad_transform: the same, written with ``get_grad`` and ``put_grad``: returns the output alone.
        path: dotted path of ``function``; found out if not given.
        differentiable: whether ``vjp`` is for this call, asked with its arguments. ``None``: always.
    """

    executor: Executor
    operator: Symbol | None = None
    when: Callable[[BoundSymbol], Any] | None = None
    arrange: Callable[..., Arguments] | None = None
    transform: Callable[..., Any] | None = None
    vjp: Callable[..., Any] | None = None
    grad_transform: Callable[..., Any] | None = None
    differentiable: Callable[..., Any] | None = None
    function: Callable[..., Any] | None = None
    path: str = ""

    def execution_symbol(self) -> Symbol | None:
        """Return the symbol that runs it; ``None`` where a transform does.

        It is made when it is first used, as a function that is being decorated is not yet found under its name.
        """
        if self.operator is None and self.function is not None:
            return self.executor.operator(self.function, path=self.path)
        return self.operator

    def rule(self, bound: BoundSymbol, adapt: Callable[..., Any] | None) -> Callable[..., Any] | None:
        """Return the rule with which derivatives go through this call, or ``None``.

        Args:
            bound: the call.
            adapt: makes a rule of a ``grad_transform``.

        Raises:
            ExecutorError: there is a ``grad_transform``, and nothing to make a rule of it.
        """
        if self.vjp is not None:
            try:
                fits = self.differentiable is None or self.differentiable(*bound.args, **bound.kwargs)
            except UnknownNumberError:  # it depends on what only the run of the program tells
                fits = False
            return self.vjp if fits else None
        if self.grad_transform is None:
            return None
        if adapt is None:
            raise ExecutorError(
                f"executor {self.executor.name}, operation {bound.symbol.id}: its grad_transform needs an adapter; see "
                "thunder_executors.provide_gradient_adapter"
            )
        found: Callable[..., Any] = adapt(self.grad_transform)
        return found

    def accepts(self, bound: BoundSymbol) -> Any:
        """Return something true if it runs this call, else a :class:`Declined`.

        Raises:
            ExecutorError: the checker raised.
        """
        if self.when is None:
            return True
        try:
            answer = self.when(bound)
        except UnknownNumberError as error:
            return Declined(str(error))
        except Exception as error:
            raise ExecutorError(
                f"executor {self.executor.name}, operation {bound.symbol.id}: its checker raised "
                f"{type(error).__name__}: {error}"
            ) from error
        return answer if answer or isinstance(answer, Declined) else Declined("its checker declines")


def of_arguments(checker: Callable[..., Any]) -> Callable[[BoundSymbol], Any]:
    """Return a checker of bound symbols from one of their arguments."""

    def when(bound: BoundSymbol) -> Any:
        return checker(*bound.args, **bound.kwargs)

    return when
