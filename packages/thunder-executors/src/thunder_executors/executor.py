"""Executors: those who run operations."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from thunder_executors.checked import checked_meta
from thunder_executors.implementation import Arguments, Declined, Finish, Implementation, of_arguments
from thunder_executors.operators import as_written, decomposition_of
from thunder_executors.paths import find_path
from thunder_ir import REVISION, BoundSymbol, DuplicateRuleError, Language, Symbol, TensorProxy, Trace

F = TypeVar("F", bound=Callable[..., Any])


class Executor:
    """Someone who runs operations. See :class:`OperatorExecutor` and :class:`FusionExecutor`.

    ``passes`` are its own improvements of programs, made after all calls are claimed; ``finishing`` is
    what it makes of programs that are ready to run, after all other passes, the user's included; see
    :func:`runnable`. ``options`` are names of what a user may ask it for.

    Args:
        name: under which it is asked for.
        version: of it, or of the library below it.
        missing: asked when it is about to be used: why it cannot run here, or ``None``. Never asked on import.
        install: the command that brings what is missing.
        default: whether it takes part where the user names no executors.
        always: whether it takes part whomever the user names.
        priority: among those discovered, who is asked first; higher before lower.
        checks: whether what its implementations return is compared with what their meta functions promised.
        modules: where the public names of its functions are, for generated code.
        careful: who takes part where the user names no executor, which takes less; this executor, if not given.
    """

    options: tuple[str, ...] = ()

    def __init__(
        self,
        name: str,
        *,
        version: Any = None,
        missing: Callable[[], str | None] | None = None,
        install: str = "",
        default: bool = True,
        always: bool = False,
        priority: int = 0,
        checks: bool = True,
        modules: Iterable[str] = (),
        careful: Executor | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.install = install
        self.default = default
        self.always = always
        self.priority = priority
        self.checks = checks
        self.modules = tuple(modules)
        self.careful = careful
        self._missing = missing
        self._implementations: dict[Hashable, list[Implementation]] = {}
        self._operators: dict[Hashable, Symbol] = {}
        self.opmap: dict[str, Symbol] = {}
        self.passes: list[Callable[[Trace], Trace]] = []
        self.finishing: list[Finish] = []
        self.replacements: dict[Callable[..., Any], Symbol] = {}

    def missing(self) -> str | None:
        """Return why it cannot run here, or ``None``."""
        return self._missing() if self._missing is not None else None

    def unasked(self) -> Executor:
        """Return who takes part where the user names no executor: this executor, or one of its kind that takes less."""
        return self.careful or self

    def configured(self, **options: Any) -> Executor:
        """Return the executor that a user asks for by some of :attr:`options`.

        Args:
            options: by name.
        """
        return self

    def implementations(self, symbol: Symbol) -> list[Implementation]:
        """Return how it runs ``symbol``, in the order in which they are tried."""
        found = self._implementations.get(symbol)
        if found is None:
            found = self._implementations.get(symbol.id, [])
        return found

    def find(self, bound: BoundSymbol) -> Implementation | Declined:
        """Return the implementation that runs this call, or why there is none."""
        reasons = []
        for implementation in self.implementations(bound.symbol):
            answer = implementation.accepts(bound)
            if answer:
                return implementation
            reasons.append(answer.reason)
        return Declined("; ".join(reasons) or f"it has no implementation of {bound.symbol.id}")

    def can_execute(self, bound: BoundSymbol) -> bool:
        """Whether it runs this call."""
        return isinstance(self.find(bound), Implementation)

    def operator(self, function: Callable[..., Any], name: str = "", path: str = "") -> Symbol:
        """Return the execution symbol that calls ``function`` directly; one per function.

        Args:
            function: what runs.
            name: of the symbol; the function's if not given.
            path: dotted path of the function in generated code; found out if not given.
        """
        key = (function, name, path)
        found = self._operators.get(key)
        if found is None:
            path = path or find_path(function, self.modules)
            name = name or path.rpartition(".")[2] or getattr(function, "__name__", type(function).__name__)
            found = Symbol(name, self.name, implementation=function, path=path, executor=self)
            self._operators[key] = found
        return found

    def add_implementation(self, symbol: Symbol | str, implementation: Implementation) -> None:
        """File one more way to run ``symbol``, tried after those filed before.

        Raises:
            DuplicateRuleError: an earlier one takes every call, so this one would never be asked.
        """
        filed = self._implementations.get(symbol, [])
        if filed and filed[-1].when is None:
            name = symbol if isinstance(symbol, str) else symbol.id
            raise DuplicateRuleError(f"executor {self.name} runs every call of {name} already")
        self._file(symbol, [*filed, implementation])

    def _file(self, symbol: Symbol | str, implementations: list[Implementation]) -> None:
        """Say how ``symbol`` is run from now on."""
        self._implementations[symbol] = implementations
        REVISION.changed()

    def register_operator(
        self,
        name: str,
        *,
        like: Callable[..., Any] | None = None,
        meta: Callable[..., Any] | None = None,
        fn: Callable[..., Any] | None = None,
        tags: Iterable[Any] | None = None,
        replaces: Callable[..., Any] | tuple[Callable[..., Any], ...] = (),
        module: Any = None,
        python_printer: Callable[..., list[str]] | None = None,
        language: Language | None = None,
        path: str = "",
    ) -> Symbol:
        """Make a symbol that this executor runs.

        Args:
            name: of the symbol.
            like: a symbol, or a function in symbols, that computes the same: it tells the metadata, and transforms
                look into it.
            meta: instead of ``like``: proxies in, proxies out. The symbol is then a prim to every transform.
            fn: what runs.
            tags: traits that passes rely on; those of ``like`` if not given.
            replaces: functions of the user's world for which programs shall use the symbol.
            module: where ``fn`` is found under ``name``, if ``fn`` is not given.
            python_printer: prints a call as lines of code.
            language: what operators mean in ``like``.
            path: dotted path of ``fn`` in generated code; found out if not given.

        Raises:
            ValueError: not exactly one of ``like`` and ``meta`` is given.

        Example:
            >>> from thunder_executors import OperatorExecutor
            >>> from thunder_ir import Tensor, trace_of
            >>> executor = OperatorExecutor("doc")
            >>> double = executor.register_operator("double", meta=lambda a: a.like(), fn=lambda a: a + a)
            >>> print(trace_of(lambda x: double(x), Tensor((2,))))
            def program(x: "float32[2]"):
                t0 = _doc_double(x)  # float32[2]
                return t0
        """
        if (like is None) == (meta is None):
            given = "neither" if like is None else "both"
            raise ValueError(f"operator {name!r} of executor {self.name} needs either like= or meta=, got {given}")
        if fn is None and module is not None:
            fn = getattr(module, name)
        symbol = Symbol(
            name,
            self.name,
            meta=checked_meta(self.name, name, meta) if meta is not None else None,
            decomposition=decomposition_of(like, language) if like is not None else None,
            tags=frozenset(tags) if tags is not None else getattr(like, "tags", frozenset()),
            language=language,
            printer=python_printer,
            implementation=fn,
            path=path or (find_path(fn, self.modules) if fn is not None else ""),
            executor=self,
        )
        self.opmap[name] = symbol
        for replaced in (replaces,) if callable(replaces) else replaces:
            self.replacements[replaced] = symbol
        return symbol

    def into(self, bound: BoundSymbol, made: TensorProxy, target: TensorProxy) -> BoundSymbol | None:
        """Return the call such that it writes a result to ``target``, which it may read; ``None`` if it cannot.

        Args:
            bound: a call of an operator of this executor.
            made: the result, which has shape and dtype of the target.
            target: an input of the program.
        """
        return None

    def checks_of(self, bound: BoundSymbol) -> Sequence[BoundSymbol] | None:
        """Return calls that raise where this one would, and do nothing else; ``None`` where nothing tells that before.

        They are made before anything is written to inputs; then the call itself may write to one, see :meth:`into`.

        Args:
            bound: a call of an operator of this executor that may raise.
        """
        return None

    def makes_new(self, bound: BoundSymbol) -> bool:
        """Whether what a call of an operator of this executor returns shares no memory with its arguments."""
        return False

    def __repr__(self) -> str:
        version = f" {self.version}" if self.version is not None else ""
        missing = self.missing()
        return f"<{type(self).__name__} {self.name}{version}{f': unavailable, {missing}' if missing else ''}>"


class OperatorExecutor(Executor):
    """Runs single operations by its own.

    Example:
        >>> import operator
        >>> from thunder_executors import OperatorExecutor
        >>> from thunder_ir import Symbol
        >>> add = Symbol("add", "prims", meta=lambda a, b: a.like())
        >>> executor = OperatorExecutor("doc")
        >>> executor.implements(add)(operator.add)
        <built-in function add>
    """

    def implements(
        self, symbol: Symbol | str, when: Callable[[BoundSymbol], Any] | None = None, path: str = ""
    ) -> Callable[[F], F]:
        """Let the decorated function run ``symbol``, with the very same arguments.

        Args:
            symbol: an operation, or its id.
            when: whether it takes this call; a :class:`Declined` gives the reason why not.
            path: dotted path of the function in generated code; found out if not given.
        """

        def register(function: F) -> F:
            self.add_implementation(symbol, Implementation(self, None, when, function=function, path=path))
            return function

        return register

    def calls(
        self,
        function: Callable[..., Any],
        symbol: Symbol | str,
        when: Callable[[BoundSymbol], Any] | None = None,
        path: str = "",
    ) -> Callable[[Callable[..., Arguments]], Callable[..., Arguments]]:
        """Let ``function`` run ``symbol`` with the arguments that the decorated function returns.

        The decorated function sees proxies, when the program is compiled; nothing of it remains in generated code.
        """

        def register(arrange: Callable[..., Arguments]) -> Callable[..., Arguments]:
            made = Implementation(self, None, when, arrange, function=function, path=path)
            self.add_implementation(symbol, made)
            return arrange

        return register

    def runs(
        self,
        symbol: Symbol | str,
        operator: Symbol,
        arrange: Callable[..., Arguments] | None = None,
        when: Callable[[BoundSymbol], Any] | None = None,
    ) -> None:
        """Let ``operator``, an execution symbol, run ``symbol``, with the arguments that ``arrange`` returns."""
        self.add_implementation(symbol, Implementation(self, operator, when, arrange))

    def transforms(self, symbol: Symbol | str, when: Callable[[BoundSymbol], Any] | None = None) -> Callable[[F], F]:
        """Let what the decorated function records run ``symbol``: it takes its arguments and returns its output."""

        def register(function: F) -> F:
            self.add_implementation(symbol, Implementation(self, None, when, transform=function))
            return function

        return register

    def differentiates(self, *symbols: Symbol, when: Callable[..., Any] | None = None) -> Callable[[F], F]:
        """Let the decorated rule be that by which derivatives go through ``symbols`` where this executor runs them.

        The rule takes the symbol's arguments and returns the output and the pullback.

        Args:
            symbols: operations that it runs already.
            when: takes the arguments of a call; whether the rule is for it. Others use the symbol's own rule.

        Raises:
            ValueError: this executor does not run one of them.
        """

        def register(rule: F) -> F:
            for symbol in symbols:
                filed = self.implementations(symbol)
                if not filed:
                    raise ValueError(f"executor {self.name} does not run {symbol.id}: implement it first")
                self._file(symbol, [replace(i, vjp=rule, differentiable=when) for i in filed])
            return rule

        return register

    def runs_by_rule(
        self,
        symbol: Symbol,
        rule: Callable[..., tuple[Any, Any]],
        takes: Callable[..., Any],
        alone: Callable[..., Any] | None = None,
    ) -> None:
        """Let the calls of ``symbol`` that ``takes`` says yes to be what ``rule`` records, derivative included.

        Args:
            symbol: an operation.
            rule: takes its arguments, returns the output and the pullback.
            takes: takes its arguments, says whether the rule runs the call.
            alone: records the output where no derivative is asked for; what ``rule`` records, if not given.
        """

        def without_pullback(*args: Any, **kwargs: Any) -> Any:
            return rule(*args, **kwargs)[0]

        self.register_implementation(symbol, execution_transform=alone or without_pullback, checker=takes)
        self.differentiates(symbol)(rule)

    def register_implementation(
        self,
        symbol: Symbol | str,
        op: Symbol | Callable[..., Any] | None = None,
        *,
        checker: Callable[..., Any] | None = None,
        execution_transform: Callable[..., Any] | None = None,
        grad_transform: Callable[..., Any] | None = None,
    ) -> None:
        """Say how ``symbol`` is run, in place of what was said before.

        Args:
            symbol: an operation, or its id.
            op: the operator, or function, that runs it with the same arguments.
            checker: takes the arguments of a call; whether it is taken, or a :class:`Declined`.
            execution_transform: instead of ``op``: records what runs the call, and returns its output. Methods of its
                arguments are those of PyTorch's tensors.
            grad_transform: how derivatives go through calls that are run so: takes the arguments, returns the output,
                and gives the arguments their gradients by ``get_grad`` and ``put_grad``.

        Raises:
            ValueError: neither ``op`` nor ``execution_transform`` is given.
        """
        if op is None and execution_transform is None:
            name = symbol if isinstance(symbol, str) else symbol.id
            raise ValueError(f"executor {self.name} needs op= or execution_transform= to run {name}")
        operator = op if op is None or isinstance(op, Symbol) else self.operator(op)
        when = of_arguments(checker) if checker is not None else None
        transform = as_written(execution_transform) if execution_transform is not None else None
        derivative = as_written(grad_transform) if grad_transform is not None else None
        implementation = Implementation(self, operator, when, transform=transform, grad_transform=derivative)
        self._file(symbol, [implementation])
