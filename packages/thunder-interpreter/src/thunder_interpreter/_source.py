"""``exec``, ``eval`` and ``compile``."""

import functools
import types
from typing import Any

from thunder_interpreter import _classes
from thunder_interpreter._calls import call_native
from thunder_interpreter._frame import AnyFrame
from thunder_interpreter._introspection import snapshot
from thunder_interpreter._machine import Outcome
from thunder_interpreter._natives import replaces
from thunder_interpreter._pristine import keep_builtins
from thunder_interpreter._protocol import Call, Protocol, start

keep_builtins(globals())


COMPILER_FLAGS = 0x1FF0000  # the __future__ features


def run_source(native: object, frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """Compile what ``exec`` or ``eval`` got, and run it interpreted."""
    caller = _classes.innermost(frame)
    keywords = dict(kwargs)
    closure = keywords.pop("closure", None)
    names = args[1] if len(args) > 1 else keywords.pop("globals", None)
    local_names = args[2] if len(args) > 2 else keywords.pop("locals", None)
    unusual = not args or keywords or (names is not None and not isinstance(names, dict))
    if caller is None or unusual or (local_names is not None and not hasattr(type(local_names), "__getitem__")):
        return call_native(frame, native, args, kwargs)
    if names is None:
        names = caller.globals
        if local_names is None:
            local_names = snapshot(caller)
    elif local_names is None:
        local_names = names
    names.setdefault("__builtins__", caller.f_builtins)
    code = args[0]
    if not isinstance(code, types.CodeType):
        if not isinstance(code, str | bytes | bytearray | memoryview):
            return call_native(frame, native, args, kwargs)
        if native is eval and isinstance(code, str):
            code = code.lstrip(" \t")
        mode = "exec" if native is exec else "eval"
        code = compile(code, "<string>", mode, caller.f_code.co_flags & COMPILER_FLAGS, True)
    if len(closure or ()) != len(code.co_freevars):
        return call_native(frame, native, args, kwargs)
    return start(frame, running(native, _classes.code_function(code, names, closure), local_names))


def running(native: object, function: types.FunctionType, names: object) -> Protocol:
    """Run code in a namespace; ``exec`` has no result."""
    if function.__code__.co_flags & 1:  # the code of a function has no namespace
        result = yield Call(function)
    else:
        result = yield Call(_classes.RUN, function, names)
    return None if native is exec else result


@replaces(compile)
def special_compile(frame: AnyFrame, args: list[Any], kwargs: dict[str, Any]) -> Outcome:
    """``compile``, which inherits the ``__future__`` features of the calling code."""
    caller = _classes.innermost(frame)
    inherit = not (args[4] if len(args) > 4 else kwargs.get("dont_inherit", False))
    if caller is None or not inherit:
        return call_native(frame, compile, args, kwargs)
    flags = caller.f_code.co_flags & COMPILER_FLAGS
    if len(args) > 3:
        args[3] |= flags
    else:
        kwargs = {**kwargs, "flags": kwargs.get("flags", 0) | flags}
    return call_native(frame, compile, args, kwargs)


for source_runner in (exec, eval):
    replaces(source_runner)(functools.partial(run_source, source_runner))
