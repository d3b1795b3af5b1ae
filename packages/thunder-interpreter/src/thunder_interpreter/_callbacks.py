"""What a tracer may be told while code runs, and the replacements of callables."""

from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FrameType
from typing import Any


class Callbacks:
    """Override the methods you want to hear; those that you do not override cost nothing.

    Methods that return a value may replace it. Methods about an effect are called before it happens.
    """

    def load_global(self, globals: dict[str, Any], name: str, value: Any) -> Any:
        """A global, or a builtin (then ``globals`` is the dictionary of builtins), was read."""
        return value

    def load_closure(self, function: Any, name: str, value: Any) -> Any:
        """A free variable of ``function`` was read."""
        return value

    def missing_global(self, globals: dict[str, Any], name: str) -> None:
        """Reading a name that neither the globals nor the builtins have raised ``NameError``."""

    def missing_closure(self, function: Any, name: str) -> None:
        """Reading a free variable of ``function`` that has no value raised ``NameError``."""

    def load_attribute(self, obj: Any, name: str, value: Any) -> Any:
        """An attribute was read without running Python code."""
        return value

    def missing_attribute(self, obj: Any, name: str) -> None:
        """Reading an attribute without running Python code raised ``AttributeError``."""

    def key(self, container: Any, key: Any) -> Any:
        """A dict or a set is about to be asked for ``key``, or a dict to get or lose it: the key that is taken."""
        return key

    def item(self, sequence: Any, index: Any) -> Any:
        """A list, a tuple or what is no container of Python's is about to be asked for an item by what is no integer:
        what is taken for the item, or ``NotImplemented``."""
        return NotImplemented

    def load_item(self, container: Any, key: Any, value: Any) -> Any:
        """``container[key]`` was read, on a builtin container."""
        return value

    def missing_item(self, container: Any, key: Any) -> None:
        """``container[key]`` raised ``LookupError``, on a builtin container."""

    def iterate(self, container: Any, iterator: Any) -> None:
        """Iteration over, or unpacking of, a builtin container starts."""

    def iterated(self, container: Any, place: Any, value: Any) -> Any:
        """Iteration over a builtin container has come to an element (for a dict, a key).

        Args:
            container: a list, for example, or what ``dict.items`` returns.
            place: the index of the element; among the values of a dict, its key.
            value: the element.
        """
        return value

    def advanced(self, iterator: Any, value: Any) -> Any:
        """A loop over an iterator in C that :meth:`iterated` does not tell of has come to ``value``."""
        return value

    def store_attribute(self, obj: Any, name: str, value: Any) -> None:
        """An attribute is about to be set without running Python code."""

    def delete_attribute(self, obj: Any, name: str) -> None:
        """An attribute is about to be deleted without running Python code."""

    def store_item(self, container: Any, key: Any, value: Any) -> None:
        """``container[key] = value`` is about to happen, on a builtin container."""

    def delete_item(self, container: Any, key: Any) -> None:
        """``del container[key]`` is about to happen, on a builtin container."""

    def store_global(self, globals: dict[str, Any], name: str, value: Any) -> None:
        """A global is about to be set."""

    def delete_global(self, globals: dict[str, Any], name: str) -> None:
        """A global is about to be deleted."""

    def store_closure(self, cell: Any, name: str, value: Any) -> None:
        """A variable in a cell is about to be set."""

    def opaque_call(self, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Something that is not interpreted is about to be called; operators come as functions of :mod:`operator`.

        What is put into ``args`` and ``kwargs`` in place of what is there is what it gets, but for deletions of items.
        """

    def opaque_result(self, fn: Any, args: list[Any], kwargs: dict[str, Any], result: Any) -> Any:
        """Something that is not interpreted has returned."""
        return result

    def native_frame(self, frame: FrameType, call: tuple[Any, Sequence[Any], Mapping[str, Any]]) -> None:
        """C code is about to run a Python function, which is not interpreted then.

        ``frame`` is where it starts; ``call`` is the callable that was called natively, and its arguments.
        """

    def native_call(self, frame: FrameType, fn: Any) -> None:
        """A function that :meth:`native_frame` told of, or one that it runs, is about to call C code: ``fn``.

        What with is not known. It is told only where ``native_frame`` is.
        """

    def native_callables(self, found: list[tuple[type | None, str, Any]], given: Sequence[Any] | None) -> None:
        """C code may call callables in C that call, or look into, what they are made of.

        Args:
            found: each such callable, such as a ``functools.partial`` of a builtin; where a class holds it as a special
                method, or a property gets its value by it, with the class and the name; else with ``None`` and "".
            given: what that code gets; ``None`` if the interpreter calls them, and each call that they make is seen.
        """

    def special_methods(self, fn: Any, operands: list[Any]) -> None:
        """Special methods of the operands, some of them in Python, are about to do what ``fn`` does.

        ``fn`` is a function of :mod:`operator`, a builtin such as ``len``, or ``type.__call__`` for calls of classes.
        """

    def identical(self, a: Any, b: Any) -> bool:
        """Whether two values are one object is asked by ``is`` or ``is not``: the answer."""
        return a is b

    def arithmetic(self, fn: Any, a: Any, b: Any) -> Any:
        """``fn`` of :mod:`operator` is about to compute of two values natively: the result, or ``NotImplemented``."""
        return NotImplemented

    def compare(self, fn: Any, a: Any, b: Any) -> Any:
        """``fn`` of :mod:`operator` is about to compare two values natively: the answer, or ``NotImplemented``."""
        return NotImplemented

    def truth(self, value: Any) -> Any:
        """``value``, which is no ``bool``, is tested: its truth, or ``NotImplemented`` to have it asked as usual."""
        return NotImplemented

    def branch(self, value: Any, code: CodeType, offset: int) -> Any:
        """The code branches on ``value``, which is no ``bool``: its truth, or ``NotImplemented`` to have it asked.

        ``offset`` is where in the code, in bytes; see :func:`truth_that_raises`.
        """
        return NotImplemented

    def constant(self, value: Any) -> Any:
        """A constant of the code was loaded."""
        return value

    def call(self, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        """A Python function is about to be interpreted."""

    def raised(self, error: BaseException) -> None:
        """An exception has reached interpreted code, which may handle it."""

    def returned(self, fn: Any, value: Any) -> Any:
        """An interpreted function returns."""
        return value


NAMES: tuple[str, ...] = tuple(name for name in vars(Callbacks) if not name.startswith("_"))


def overridden(callbacks: Callbacks | None) -> dict[str, Callable[..., Any]]:
    """The bound methods that a subclass (or the instance itself) overrides, by name."""
    found: dict[str, Callable[..., Any]] = {}
    if callbacks is None:
        return found
    for name in NAMES:
        method = getattr(callbacks, name)
        if getattr(method, "__func__", method) is not getattr(Callbacks, name):
            found[name] = method
    return found


class Declined:
    """What a lookaside's replacement returns to have done what is done without it."""


DECLINED = Declined()


class Interpreted:
    """A lookaside's replacement that is itself interpreted.

    Args:
        fn: called in place of the original, with the same arguments.
    """

    __slots__ = ("fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
