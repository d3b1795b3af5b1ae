"""Executors made in passing: for a single operation, or for operators whose names were not chosen."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from thunder_executors.executor import OperatorExecutor
from thunder_executors.registry import register_executor
from thunder_ir import Symbol


class TemporaryExecutor(OperatorExecutor):
    """An executor that gives each of its operators a name that no other has. It need not be registered.

    Example:
        >>> from thunder_executors import TemporaryExecutor
        >>> executor = TemporaryExecutor()
        >>> first = executor.register_operator("double", meta=lambda a: a.like(), fn=lambda a: a + a)
        >>> second = executor.register_operator("double", meta=lambda a: a.like(), fn=lambda a: 2 * a)
        >>> first.name == second.name
        False
    """

    _numbers = itertools.count()

    def __init__(self) -> None:
        super().__init__(f"temporary_{next(self._numbers)}")
        self._operator_numbers = itertools.count()

    def register_operator(self, name: str, **options: Any) -> Symbol:
        """Make a symbol that this executor runs; arguments are those of :meth:`Executor.register_operator`."""
        return super().register_operator(f"{name}_{self.name}_{next(self._operator_numbers)}", **options)


def single_op_executor(
    exc_name: str,
    op_name: str,
    fn: Callable[..., Any],
    meta: Callable[..., Any],
    *,
    version: Any = None,
    replaces: Callable[..., Any] | None = None,
    tags: Iterable[Any] | None = None,
    checker: Callable[..., Any] | None = None,
    execution_transform: Callable[..., Any] | None = None,
    grad_transform: Callable[..., Any] | None = None,
) -> OperatorExecutor:
    """Return a new, registered executor that runs one operation.

    Args:
        exc_name: of the executor.
        op_name: of the operation.
        fn: what runs.
        meta: proxies in, proxies out.
        version: of the executor.
        replaces: the function of the user's world for which programs shall use the operation; ``fn`` if not given.
        tags: traits that passes rely on.
        checker, execution_transform, grad_transform: as for :meth:`OperatorExecutor.register_implementation`.

    Example:
        >>> from thunder_executors import deregister_executor, single_op_executor
        >>> executor = single_op_executor("doc_doubling", "double", lambda a: a + a, lambda a: a.like())
        >>> executor.opmap["double"]
        <Symbol doc_doubling.double>
        >>> deregister_executor(executor)
    """
    executor = OperatorExecutor(exc_name, version=version)
    register_executor(executor)
    operator = executor.register_operator(op_name, meta=meta, fn=fn, tags=tags, replaces=replaces or fn)
    executor.register_implementation(
        operator,
        operator,
        checker=checker,
        execution_transform=execution_transform,
        grad_transform=grad_transform,
    )
    return executor
