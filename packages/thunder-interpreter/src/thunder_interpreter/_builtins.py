"""All builtins that the interpreter runs in a way of its own."""

import builtins
import operator
import types
from typing import Any

from thunder_interpreter import (
    _attributes,
    _classes,
    _formatting,
    _handing_over,
    _introspection,
    _items,
    _iteration,
    _source,
    _special_methods,
)
from thunder_interpreter._calls import TYPE_CALL, call
from thunder_interpreter._handing_over import ITER, NEXT
from thunder_interpreter._machine import Special
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter.opcodes import access, containers

keep_builtins(globals())


SPECIALS: dict[Any, Special] = {
    **_attributes.SPECIALS,
    **access.SPECIALS,
    **containers.SPECIALS,
    **_introspection.SPECIALS,
    **_source.SPECIALS,
    **_special_methods.SPECIALS,
    **_formatting.SPECIALS,
    **_handing_over.SPECIALS,
    containers.GET_ITEM: lambda frame, args, kwargs: _items.subscript(frame, *args),
    _classes.RUN: _classes.run_in_namespace,
    NEXT: _iteration.special_next,
    ITER: _iteration.special_iter,
    builtins.__build_class__: _classes.special_build_class,
    super: _classes.special_super,
    TYPE_CALL: _classes.special_type_call,
    iter: _iteration.special_iter,
    next: _iteration.special_next,
    types.GeneratorType.send: _iteration.resuming(types.GeneratorType.send),
    types.CoroutineType.send: _iteration.resuming(types.CoroutineType.send),
}
if hasattr(operator, "call"):
    SPECIALS[operator.call] = lambda frame, args, kwargs: call(frame, args[0], args[1:], kwargs)
