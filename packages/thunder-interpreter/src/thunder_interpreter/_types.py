"""What a class holds under a name, without running any code of the user's."""

from types import FunctionType
from typing import Any

from thunder_interpreter._machine import Machine
from thunder_interpreter._pristine import keep_builtins

keep_builtins(globals())


MRO = type.__dict__["__mro__"].__get__
DICT = type.__dict__["__dict__"].__get__
OF_TUPLES = [(name, tuple.__dict__[name]) for name in ("__getitem__", "__iter__")]
HEAP_TYPE = 1 << 9
"""Flag of classes made by a ``class`` statement, and of some made in C."""


def raw_attribute(cls: type, name: str, default: object = None) -> Any:
    """What the classes of ``cls`` hold under ``name``, unbound."""
    for base in MRO(cls) or ():  # C types that were never made ready have none
        namespace = DICT(base)
        if name in namespace:
            return namespace[name]
    return default


def reads_as_tuple(cls: type) -> bool:
    """Whether a class derived from tuple, such as a named tuple, has tuple's own items and iterators."""
    return tuple in (MRO(cls) or ()) and all([raw_attribute(cls, name) is method for name, method in OF_TUPLES])


def descriptor_of(owner: object, name: str) -> Any:
    """What a bound C method was made of; one that ``super()`` found may be overridden in Python."""
    cls = owner if isinstance(owner, type) else type(owner)
    found = raw_attribute(cls, name)
    if type(found) is FunctionType:
        return next((vars(c)[name] for c in cls.__mro__ if type(vars(c).get(name, found)) is not FunctionType), None)
    return found


def derives(cls: type, base: type) -> bool:
    """Whether ``base`` is among the classes that ``cls`` inherits from; classes registered with an ABC are not."""
    return any([base is each for each in MRO(cls) or ()])


def python_function(machine: Machine, fn: object) -> bool:
    """Whether ``fn`` is a Python function that would be interpreted (or looked aside)."""
    if type(fn) is not FunctionType:
        return False
    if machine.special(fn) is not None:
        return True
    program = machine.programs.get(id(fn.__code__))
    if program is None:
        program = machine.program(fn)
    return hasattr(program, "steps")
