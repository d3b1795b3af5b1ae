"""What one thread knows while it runs the code of an interpretation."""

import sys
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from thunder_interpreter._callbacks import NAMES
from thunder_interpreter._decode import Program
from thunder_interpreter._pristine import keep_builtins

if TYPE_CHECKING:
    from thunder_interpreter._frame import AnyFrame, Frame

keep_builtins(globals())


Outcome: TypeAlias = Any  # None, a step, a frame or Leave
Special: TypeAlias = Callable[["AnyFrame", list[Any], dict[str, Any]], Outcome]
Found: TypeAlias = tuple[type | None, str, Any]  # the class that holds a callable, if any, its name there, the callable

BY_NAME: dict[tuple[str, str], Special] = {}  # for functions of C modules that may be imported afresh


class Opaque:
    """Stands where a decoded program would, for Python functions that are called natively."""

    __slots__ = ("code",)

    simple = False
    exact = -1
    padding = 0
    unbound: tuple[Any, ...] = ()

    def __init__(self, code: CodeType) -> None:
        self.code = code


class Run(Protocol):
    """What the threads of an interpretation share: how it was set up, and what it has found out."""

    table: dict[int, Special]
    names: frozenset[str]
    watchers: dict[str, Callable[..., Any]]
    features: frozenset[str]
    log: Any
    programs: dict[int, Program | Opaque]
    types: dict[Any, Any]
    python_classes: dict[type, bool | None]
    quiet: set[type]
    native_callables: dict[type, tuple[list[Found], bool]]
    plain: set[type]
    peculiar: set[type]
    constructors: dict[type, Any]
    generators: "dict[int, weakref.ref[Frame]]"

    @property
    def consults(self) -> Callable[[Any], Special | None] | None:
        """Says what is done when a callable is called, where that takes more than a look into the table."""

    @property
    def never_awaited(self) -> "Callable[[Frame], None]":
        """Warns of a coroutine that was never awaited."""

    @property
    def close(self) -> "Callable[[Frame], None]":
        """Ends the generator of a suspended frame."""

    def machine(self) -> "Machine":
        """The state of the calling thread."""

    def forget_types(self) -> None:
        """Drop what is known about classes."""

    def is_opaque(self, function: FunctionType) -> bool:
        """Whether a Python function is called natively."""

    def bridge(self, fn: object) -> Any:
        """``fn`` as C code should get it to call it interpreted."""


class Machine(ABC):
    """What one thread needs to run the code of one interpretation.

    Attributes:
        frame: the frame that is executing now, or ``None``.
        table: what replaces a callable, by identity.
        programs: decoded code, by identity of the code object.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.frame: AnyFrame = None
        self.limit = sys.getrecursionlimit()
        self.table = run.table
        self.names = run.names
        self.by_name = BY_NAME
        self.consults = run.consults
        self.programs = run.programs
        self.types = run.types
        self.generators = run.generators
        self.plain = run.plain
        self.peculiar = run.peculiar
        self.constructors = run.constructors
        self.thread = threading.get_ident()
        self.iterations: dict[int, Any] = {}
        for name in NAMES:
            if name != "call":
                setattr(self, name, run.watchers.get(name))
        self.on_call = run.watchers.get("call")
        self.on_return = run.watchers.get("returned")
        self.watches_iteration = self.iterate is not None or self.iterated is not None
        self.log = run.log
        self.observing = False
        self.quick = self.consults is None and self.on_call is None and self.log is None

    load_global: Any
    load_closure: Any
    missing_global: Any
    missing_closure: Any
    load_attribute: Any
    missing_attribute: Any
    key: Any
    item: Any
    load_item: Any
    missing_item: Any
    iterate: Any
    iterated: Any
    advanced: Any
    store_attribute: Any
    delete_attribute: Any
    store_item: Any
    delete_item: Any
    store_global: Any
    delete_global: Any
    store_closure: Any
    opaque_call: Any
    special_methods: Any
    identical: Any
    arithmetic: Any
    compare: Any
    opaque_result: Any
    native_frame: Any
    native_call: Any
    native_callables: Any
    truth: Any
    constant: Any
    raised: Any
    branch: Any

    def special(self, fn: object) -> Special | None:
        """What is done when ``fn`` is called, if that is not the usual."""
        return self.table.get(id(fn)) if self.consults is None else self.consults(fn)

    @staticmethod
    @abstractmethod
    def call(frame: "AnyFrame", fn: object, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        """Call ``fn`` for ``frame``."""

    @staticmethod
    @abstractmethod
    def construct(frame: "AnyFrame", cls: type, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
        """Make an instance of a class for ``frame``."""

    @abstractmethod
    def decode(self, code: CodeType) -> Program:
        """The program of ``code``, whether functions of that code are opaque or not."""

    @abstractmethod
    def program(self, function: FunctionType) -> Program | Opaque:
        """Decode the code of ``function``, unless it is to be called natively."""

    @abstractmethod
    def enter(self, fn: object, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Call ``fn`` interpreted, from native code."""
