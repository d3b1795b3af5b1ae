"""Which executors there are, and which take part."""

from __future__ import annotations

import importlib.metadata
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from thunder_executors.errors import UnavailableError
from thunder_executors.executor import Executor
from thunder_ir import Symbol

ENTRY_POINTS = "thunder.executors"
ON_REQUEST = ".on_request"
"""What follows the name of the group of entry points whose executors take part only where they are named."""

BY_DEVICE = ".by_device"
"""What follows it for functions that return the names of executors which are asked first by default on this machine."""

PUBLISHED = frozenset({"apex", "cudnn", "inductor", "llvm", "nvfuser", "onednn", "torch", "triton"})
"""Names of executors that a package named for them brings."""


class Registry:
    """Executors by name, and the lists of those that take part by themselves.

    Args:
        group: the group of entry points in which installed executors are found; ``""``: none are looked for. Those of
            the group ``group + ".on_request"`` are loaded when they are named, so that a program which uses
            none of them does not wait for their imports; but for those that a function of the group
            ``group + ".by_device"`` names, which take part by default, before all others, where they can run.
    """

    def __init__(self, group: str = ENTRY_POINTS) -> None:
        self._group = group
        self._lock = threading.RLock()
        self._discovered = not group
        self._executors: dict[str, Executor] = {}
        self._installed: list[Executor] = []
        self._on_request: dict[str, importlib.metadata.EntryPoint] = {}
        self._default: list[Executor] = []
        self._always: list[Executor] = []

    def discover(self) -> None:
        """Load the installed executors, once; one that fails to load is known, and says why it cannot run."""
        with self._lock:
            if self._discovered:
                return
            self._discovered = True
            points = importlib.metadata.entry_points()
            self._on_request = {point.name: point for point in points.select(group=self._group + ON_REQUEST)}
            found = [_load(point) for point in points.select(group=self._group)]
            self._installed += found
            found = [e for e in found if e.name not in self._executors]
            found.sort(key=lambda e: -e.priority)
            for executor in found:
                self._executors[executor.name] = executor
            listed = {*self._default, *self._always}
            first = [self.get(name) for point in points.select(group=self._group + BY_DEVICE) for name in _names(point)]
            able = [e for e in first if e is not None and e.missing() is None]
            default = dict.fromkeys([*able, *[e for e in found if e.default and not e.always]])
            self._default += [e for e in default if e not in listed]
            self._always += [e for e in found if e.always and e not in listed]

    def register(self, executor: Executor) -> Executor:
        """Make ``executor`` known by its name, in place of one of that name."""
        self.discover()
        with self._lock:
            self._on_request.pop(executor.name, None)
            before = self._executors.get(executor.name)
            self._executors[executor.name] = executor
            for executors in (self._default, self._always):
                executors[:] = [executor if e is before else e for e in executors]
        return executor

    def deregister(self, executor: Executor | str) -> None:
        """Forget an executor, and take it off the lists."""
        self.discover()
        name = _name(executor)
        with self._lock:
            self._executors.pop(name, None)
            self._on_request.pop(name, None)
            for executors in (self._default, self._always):
                executors[:] = [e for e in executors if e.name != name]

    def everyone(self) -> tuple[Executor, ...]:
        """Return all executors, those that cannot run here included."""
        self.discover()
        for name in list(self._on_request):
            self.get(name)
        return tuple(self._executors.values())

    def get(self, name: str) -> Executor | None:
        """Return the executor of that name, or ``None``."""
        self.discover()
        if name in self._on_request:
            with self._lock:
                if name in self._on_request:
                    self._installed.append(_load(self._on_request[name]))
                    self._executors.setdefault(name, self._installed[-1])
                    del self._on_request[name]
        return self._executors.get(name)

    def is_installed(self, executor: Executor) -> bool:
        """Return whether a package brings an executor; see :func:`is_installed`."""
        return any([executor is e or executor is e.unasked() for e in self._installed])

    def named(self, name: str) -> Executor:
        """Return the executor of that name, able to run.

        Raises:
            UnavailableError: there is none, or it cannot run here.
        """
        executor = self.get(name)
        if executor is None:
            known = ", ".join([*self._executors, *self._on_request]) or "none"
            remedy = f"; install it with: pip install thunder-executors-{name}" if name in PUBLISHED else ""
            raise UnavailableError(f"no executor is named {name!r}; those installed are {known}{remedy}")
        missing = executor.missing()
        if missing is not None:
            remedy = f"; install it with: {executor.install}" if executor.install else ""
            raise UnavailableError(f"executor {name} cannot run here: {missing}{remedy}")
        return executor

    def default(self) -> list[Executor]:
        """Return the list of those who take part where the user names none; the list itself."""
        self.discover()
        return self._default

    def always(self) -> list[Executor]:
        """Return the list of those who take part whomever the user names; the list itself."""
        self.discover()
        return self._always

    def resolve(self, executors: Sequence[Executor | str] | Executor | str | None) -> tuple[Executor, ...]:
        """Return who is asked, in order; see :func:`resolve_executors`."""
        if executors is None:
            chosen = [e.unasked() for e in self.default() if e.missing() is None]
        else:
            chosen = self._chosen([executors] if isinstance(executors, (Executor, str)) else executors)
        chosen += [e for e in self.always() if e.missing() is None]
        return tuple(dict.fromkeys(chosen))

    def configure(
        self, executors: Sequence[Any] | None, options: Mapping[str, Any]
    ) -> tuple[Sequence[Any] | None, dict[str, Any]]:
        """Return executors as options set them, and other options; see :func:`configure_executors`."""
        if executors is None:
            chosen = [e.unasked() for e in self.default() if e.missing() is None]
        else:
            chosen = self._chosen([executors] if isinstance(executors, (Executor, str)) else executors)
        rest = {n: v for n, v in options.items() if not any([n in e.options for e in chosen])}
        if len(rest) == len(options):
            return executors, rest
        given = [(e, {n: v for n, v in options.items() if n in e.options}) for e in chosen]
        return [e.configured(**taken) if taken else e for e, taken in given], rest

    def _chosen(self, executors: Iterable[Any]) -> list[Executor]:
        chosen: list[Executor] = []
        additive = False
        for entry in executors:
            if isinstance(entry, str):
                additive = additive or entry.startswith("+")
                chosen.append(self.named(entry.removeprefix("+")))
            elif isinstance(entry, Executor):
                chosen.append(entry)
            else:
                raise TypeError(
                    f"an executor is an Executor, its name, or '+' and its name, and {entry!r} is a "
                    f"{type(entry).__name__}"
                )
        if additive:
            chosen += [e.unasked() for e in self.default() if e.missing() is None and e not in chosen]
        return chosen


def _name(executor: Executor | str) -> str:
    return executor if isinstance(executor, str) else executor.name


def _load(point: importlib.metadata.EntryPoint) -> Executor:
    """Return the executor of an entry point; where loading fails, one that says so."""
    try:
        loaded = point.load()
    except Exception as error:  # whatever an outsider's module does must not keep the others from being found
        return _broken(point, f"loading {point.value} raised {type(error).__name__}: {error}")
    if not isinstance(loaded, Executor):
        return _broken(point, f"{point.value} is a {type(loaded).__name__}, expected an Executor")
    return loaded


def _names(point: importlib.metadata.EntryPoint) -> Sequence[str]:
    """Return whom the function of an entry point names; nobody, with a warning, where that fails."""
    try:
        names: Sequence[str] = point.load()()
    except Exception as error:  # as above
        warnings.warn(f"calling {point.value} raised {type(error).__name__}: {error}", stacklevel=2)
        return ()
    return names


def _broken(point: importlib.metadata.EntryPoint, reason: str) -> Executor:
    package = point.dist.name if point.dist is not None else point.value.partition(":")[0]
    return Executor(point.name, missing=lambda: reason, install=f"pip install {package}", default=False)


REGISTRY = Registry()


def register_executor(executor: Executor) -> Executor:
    """Make ``executor`` known by its name; an executor of that name is replaced, on the lists too."""
    return REGISTRY.register(executor)


def deregister_executor(executor: Executor | str) -> None:
    """Forget an executor, and take it off the default and always lists."""
    REGISTRY.deregister(executor)


def get_executor(name: str) -> Executor | None:
    """Return the executor of that name, or ``None``."""
    return REGISTRY.get(name)


def get_all_executors() -> tuple[Executor, ...]:
    """Return all executors that are registered or installed; the ``repr`` of one that cannot run here says why."""
    return REGISTRY.everyone()


def get_default_executors() -> tuple[Executor, ...]:
    """Return those who take part where the user names none, in the order in which they are asked."""
    return tuple(REGISTRY.default())


def get_always_executors() -> tuple[Executor, ...]:
    """Return those who are asked after all others, whomever the user names."""
    return tuple(REGISTRY.always())


def set_default_executors(executors: Sequence[Executor]) -> list[Executor]:
    """Replace the list of default executors; return it."""
    REGISTRY.default()[:] = list(executors)
    return list(REGISTRY.default())


def set_always_executors(executors: Sequence[Executor]) -> list[Executor]:
    """Replace the list of executors that always take part; return it."""
    REGISTRY.always()[:] = list(executors)
    return list(REGISTRY.always())


def add_default_executor(executor: Executor) -> list[Executor]:
    """Put ``executor`` in front of the default ones; return them."""
    return set_default_executors([executor, *_without(REGISTRY.default(), executor)])


def add_always_executor(executor: Executor) -> list[Executor]:
    """Put ``executor`` in front of those that always take part; return them."""
    return set_always_executors([executor, *_without(REGISTRY.always(), executor)])


def remove_default_executor(executor: Executor | str) -> list[Executor]:
    """Take an executor off the default ones; return them."""
    return set_default_executors(_without(REGISTRY.default(), executor))


def remove_always_executor(executor: Executor | str) -> list[Executor]:
    """Take an executor off those that always take part; return them."""
    return set_always_executors(_without(REGISTRY.always(), executor))


def _without(executors: Sequence[Executor], executor: Executor | str) -> list[Executor]:
    return [e for e in executors if e.name != _name(executor)]


def configure_executors(
    executors: Sequence[Any] | None, options: Mapping[str, Any]
) -> tuple[Sequence[Any] | None, dict[str, Any]]:
    """Return executors as a user's options set them, and the options that none of them takes.

    Args:
        executors: as :func:`resolve_executors` takes them; ``None`` stays ``None``, unless a default one takes an
            option.
        options: by name.

    Raises:
        UnavailableError: one that is named cannot run here.

    Example:
        >>> from thunder_executors import configure_executors
        >>> configure_executors(None, {"whole": True})
        (None, {'whole': True})
    """
    return REGISTRY.configure(executors, options)


def resolve_executors(executors: Sequence[Executor | str] | Executor | str | None = None) -> tuple[Executor, ...]:
    """Return who is asked to run a program, in order.

    Args:
        executors: executors or their names; a name with a ``+`` in front adds to the default ones, which are asked
            after those given. ``None``: the default ones that can run here. Those that always take part are asked last.

    Raises:
        UnavailableError: a name is not known, or its executor cannot run here; with the command that installs it.
        TypeError: an entry is neither an executor nor a name.
    """
    return REGISTRY.resolve(executors)


def is_installed(executor: Executor) -> bool:
    """Return whether an installed package brings an executor, rather than a program that makes its own.

    Example:
        >>> from thunder_executors import OperatorExecutor, is_installed
        >>> is_installed(OperatorExecutor("mine"))
        False
    """
    return REGISTRY.is_installed(executor)


def add_executor_lists(
    first: Sequence[Executor | str] | None, second: Sequence[Executor | str] | None
) -> tuple[Executor, ...]:
    """Return the executors of both lists, in order, each once."""
    return tuple(dict.fromkeys([*resolve_executors(first), *resolve_executors(second)]))


def replacements(
    executors: Sequence[Executor | str] | Executor | str | None = None,
) -> dict[Callable[..., Any], Symbol]:
    """Return which functions of the user's world these executors replace in programs, by which operators.

    Args:
        executors: as for :func:`resolve_executors`; the first one that replaces a function is asked for it.
    """
    found: dict[Callable[..., Any], Symbol] = {}
    for executor in reversed(resolve_executors(executors)):
        found.update(executor.replacements)
    return found
