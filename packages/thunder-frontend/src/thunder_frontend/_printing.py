"""``print`` and warnings in a program: each call gives them, when it has computed what it computes."""

from __future__ import annotations

import _io
import functools
import re
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_frontend._tracebacks import users_stacklevel
from thunder_guards.own_code import OURS, package_of
from thunder_guards.program import Effect
from thunder_guards.sources import held
from thunder_guards.templates import Built, External
from thunder_interpreter import DECLINED
from thunder_ir import Proxy, TensorProxy
from thunder_tracing.tensors.run_texts import RunText
from thunder_tracing.tensors.sizes import fixed
from thunder_tracing.tracer import Tracer

T = torch.Tensor
WARN = warnings.warn_explicit
STATE_OF_WARNINGS = ("filters", "showwarning", "_showwarnmsg_impl")


def _warn_the_caller(message: Warning | str, category: type[Warning] | None, source: object) -> None:
    warnings.warn(message, category, stacklevel=users_stacklevel(), source=source)


STREAMS = (_io.StringIO, _io.TextIOWrapper, _io.BytesIO, _io.BufferedWriter, _io.BufferedRandom, _io.FileIO)
WRITING = frozenset([getattr(stream, name) for stream in STREAMS for name in ("write", "writelines", "flush")])


class Text(str):
    """What an object was printed as, also inside of a container."""

    def __repr__(self) -> str:
        return self


class Prints:
    """What a program prints, in order.

    Args:
        calls: the tracer of the program.
        external: what is outside of it.
        sharp: tells of a sharp edge.
    """

    def __init__(self, calls: Tracer, external: GuardedState, sharp: Callable[..., None]) -> None:
        self._calls, self._external, self._sharp = calls, external, sharp

    def __call__(
        self, *values: Any, sep: str | None = " ", end: str | None = "\n", file: Any = None, flush: bool = False
    ) -> None:
        """Do what ``print`` does, later. A tensor is printed as it is now, without what autograd knows of it."""
        sep, end = fixed(sep), fixed(end)
        if file is None and self._external.mutations.written_at(sys, "attribute", "stdout"):
            file = sys.stdout  # as contextlib.redirect_stdout has it
        source = None if file is None else self._external.source_of(file)
        if file is not None and source is None:  # made by the program, which may read what it prints there
            print(*values, sep=sep, end=end, file=file, flush=flush)
            return
        self._sharp("it calls print(), which prints when all of a call is computed")
        target = None if source is None else External(source)
        self._calls.later.append(Effect("print", target, (sep, end, flush), [self._part(v) for v in values]))

    def to_streams(self) -> dict[Any, Callable[..., Any]]:
        """Return what methods in C by which streams from outside are written to do in a program: the same, later."""
        return {method: functools.partial(self._to_stream, method) for method in WRITING}

    def _to_stream(self, method: Any, stream: Any, *args: Any) -> Any:
        if self._external.source_of(stream) is None:
            return DECLINED
        self._sharp(f"it calls {method.__name__}(), which writes when all of a call is computed")
        self._external.fix_identity(stream)
        for given in args:
            self._external.unwatched.escapes(given)
        args = tuple([list(map(fixed, a)) if method.__name__ == "writelines" else fixed(a) for a in args])
        give = functools.partial(method, stream, *args)
        self._calls.later.append(Effect("warning", External(held(give, method.__name__)), None, None))
        return len(args[0]) if method.__name__ == "write" else None

    def warn(
        self,
        message: Any,
        category: Any,
        filename: str,
        lineno: int,
        module: str | None = None,
        registry: Any = None,
        module_globals: Any = None,
        source: Any = None,
    ) -> None:
        """Do what ``warnings.warn_explicit`` does, later; now, if that is an error or the program records warnings."""
        message = message.fixed() if type(message) is RunText else message
        give = functools.partial(WARN, message, category, filename, lineno, module, registry, module_globals, source)
        if package_of(module) in OURS:  # the program was asked to warn of the line that calls it
            give = functools.partial(_warn_the_caller, message, category, source)
        self._external.answers.warns()
        if self._records_warnings() or _action(message, category, lineno, module or filename) == "error":
            give()
        else:
            self._calls.later.append(Effect("warning", External(held(give, "warning")), None, None))

    def _records_warnings(self) -> bool:
        """Whether the program itself says what becomes of warnings."""
        mutations = self._external.mutations
        return any(mutations.written_at(warnings, "attribute", n) for n in STATE_OF_WARNINGS) or bool(
            mutations.wrote(warnings.filters)
        )

    def _part(self, value: Any) -> Any:
        if type(value) is RunText:
            return value.template
        if isinstance(value, T):
            with torch._C.DisableTorchFunction():
                return self._contents(self._calls.value(self._calls.traced(value)))
        if isinstance(value, (str, int, float, complex, type(None), Proxy)):
            return value
        if value.__class__ in (tuple, list):
            return value.__class__([self._item(value, index, item) for index, item in enumerate(value)])
        if value.__class__ is dict:
            return {key: self._item(value, key, item) for key, item in value.items()}
        source = self._external.source_of(value)
        return External(source) if source is not None else Built(Text, (str(value),))

    def _item(self, container: Any, key: Any, item: Any) -> Any:
        self._external.containers.structure(container)
        return self._part(self._external.loaded(self._external.containers.item, container, key, item))

    def _contents(self, proxy: TensorProxy) -> Any:
        """A tensor's values, which nothing is written to later."""
        if any(i.proxy is proxy for i in self._calls.inputs):
            proxy = self._calls.on_values(torch.clone, (proxy,), {})
        return self._calls.on_values(T.detach, (proxy,), {}) if proxy.requires_grad else proxy


def _action(message: object, category: type, line: int, module: str) -> str:
    """Return what the filters say becomes of a warning."""
    text = str(message)
    for action, words, kind, where, number in warnings.filters:
        if (
            issubclass(category, kind)
            and (words is None or re.compile(words).match(text))
            and (where is None or re.compile(where).match(module))
            and number in (0, line)
        ):
            return action
    return str(warnings.defaultaction)  # type: ignore[attr-defined]
