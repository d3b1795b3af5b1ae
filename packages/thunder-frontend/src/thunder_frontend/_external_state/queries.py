"""Calls that ask for what other code may change: which are asked again before each call, and which are refused.

A program that asks where it is, or how large a file is, is compiled for the answer; the question becomes a guard. What
has an effect, or an answer that is another one each time, has no place in a program.
"""

from __future__ import annotations

import _io
import _signal  # type: ignore[import-not-found]
import contextvars
import datetime
import decimal
import functools
import gc
import os
import random
import sys
import time
import types
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from thunder_frontend._external_state.native import UNLISTED, Answer, Native, file, file_named, hashable, native_of
from thunder_guards.errors import AcquisitionError
from thunder_guards.kinds import SCALARS

OF_THE_SYSTEM = os.stat.__module__
"""The module, written in C, that asks the operating system."""

PURE, ASKED_AGAIN = Native(Answer.PURE), Native(Answer.ASKED_AGAIN)
VARIES, REFUSED = Native(Answer.VARIES), Native(Answer.REFUSED)
SETTLED, OF_PROCESS = Native(Answer.SETTLED), Native(Answer.OF_PROCESS)

file_named(
    PURE, OF_THE_SYSTEM,
    "fspath _path_normpath _path_splitroot_ex strerror WIFEXITED WEXITSTATUS WIFSIGNALED WTERMSIG major minor makedev "
    "_exit",
)  # fmt: skip
file_named(
    ASKED_AGAIN, OF_THE_SYSTEM,
    "stat lstat access readlink listdir getcwd getcwdb cpu_count getpid getppid getuid geteuid getgid getegid getlogin "
    "get_terminal_size isatty statvfs uname sched_getaffinity pathconf sysconf confstr",
)  # fmt: skip
file(ASKED_AGAIN, decimal.getcontext, _signal.getsignal, datetime.datetime.fromtimestamp, datetime.date.fromtimestamp)
for _module, _names in {
    "sys": "getrecursionlimit gettrace getprofile getdlopenflags get_asyncgen_hooks getswitchinterval "
    "get_coroutine_origin_tracking_depth get_int_max_str_digits",
    "gc": "get_threshold get_debug",
    "_abc": "get_cache_token",
    "_thread": "get_ident get_native_id",
    "_socket": "getdefaulttimeout gethostname",
    "_tracemalloc": "is_tracing get_traceback_limit",
    "faulthandler": "is_enabled",
    "time": "mktime",
    "numpy": "geterr geterrcall getbufsize",
}.items():
    file_named(ASKED_AGAIN, _module, _names)
for _module, _names in {
    "_locale": "setlocale localeconv strcoll strxfrm", "_csv": "field_size_limit list_dialects",
    "_codecs": "lookup lookup_error", "resource": "getrlimit getpagesize",
    "linecache": "getline getlines updatecache checkcache", "numpy": "get_printoptions",
    "torch._tensor_str": "get_printoptions",
}.items():  # fmt: skip
    file_named(OF_PROCESS, _module, _names)

file(VARIES, os.urandom, os.times, datetime.datetime.now, datetime.datetime.utcnow, datetime.date.today)
file(Native(Answer.ASKED_AGAIN, fewest=1), time.localtime, time.ctime)  # what take a time, and without one the present
file(Native(Answer.ASKED_AGAIN, fewest=2), time.strftime)
file(Native(fewest=1), time.gmtime, time.asctime)

file(
    REFUSED, open, input, contextvars.copy_context, decimal.localcontext, decimal.setcontext, sys.getrefcount,
    gc.isenabled, gc.get_objects, gc.get_referrers, gc.get_count, gc.get_stats, gc.get_freeze_count,
    sys.getallocatedblocks, sys._current_frames, weakref.getweakrefcount, weakref.getweakrefs,
)  # fmt: skip
for _module, _names in {
    "resource": "getrusage", "_tracemalloc": "get_traced_memory get_tracemalloc_memory _get_traces",
    "_thread": "stack_size _count start_new_thread start_new start_joinable_thread", "atexit": "_ncallbacks",
    "torch._C": "_cuda_jiterator_compile_and_launch_kernel",  # not by the dispatcher: it reads memory, fake or not
    "torch.jit._async": "fork",  # code in C calls operators in another thread
}.items():  # fmt: skip
    file_named(REFUSED, _module, _names)  # what looks like a question about the size of stacks sets it

file(
    SETTLED, torch.is_grad_enabled, torch.is_inference_mode_enabled, torch.get_default_dtype, torch.get_default_device,
    torch.is_autocast_enabled, torch.is_autocast_cache_enabled, torch._C._is_any_autocast_enabled,
    torch._C._get_default_device, torch._C._is_torch_function_enabled, torch._C._is_torch_function_mode_enabled,
    torch._C._is_torch_function_all_disabled, torch.is_autocast_cpu_enabled, torch._C._is_fwd_grad_enabled,
    torch.compiler.is_compiling, torch.jit.is_scripting, torch.jit.is_tracing,  # type: ignore[attr-defined]
)  # fmt: skip

CODERS = frozenset({"encode", "decode"})
TEXTS = (str, bytes, bytearray)
BUILT_IN = frozenset({"utf-8", "utf8", "ascii", "us-ascii", "latin-1", "latin1", "iso-8859-1", "utf-16", "utf-32"})
"""Codecs that code in C knows by name, without asking what is registered."""
HANDLERS = frozenset("strict ignore replace backslashreplace xmlcharrefreplace namereplace surrogateescape".split())
"""The same of what is done about what cannot be encoded."""

OF_STREAMS = frozenset(
    "read read1 readline readlines readinto readinto1 peek getvalue getbuffer tell seek truncate __next__".split()
)
"""Methods of files and of what is like them that depend on what is in them, and on how far they are read."""


def is_generator(value: object) -> bool:
    """Whether something is one of Python's or NumPy's generators of random numbers."""
    return isinstance(value, random.Random) or (type(value).__module__ or "").startswith("numpy.random")


def answer_of(fn: object, owner: object, args: Sequence[Any]) -> Answer:
    """Return what the answer of a call depends on, besides its arguments.

    Args:
        fn: what is called.
        owner: what it is a method of, or its first argument.
        args: its arguments.
    """
    if not hashable(fn):
        return Answer.UNKNOWN
    native = native_of(fn)
    if native.answer is Answer.REFUSED or isinstance(owner, contextvars.Context):
        return Answer.REFUSED
    if type(owner) is functools._lru_cache_wrapper and getattr(fn, "__name__", "") == "cache_info":
        return Answer.REFUSED
    if native is UNLISTED and isinstance(fn, types.BuiltinFunctionType) and fn.__module__ == OF_THE_SYSTEM:
        return Answer.REFUSED
    return Answer.VARIES if is_generator(owner) or len(args) < native.fewest else native.answer


def asks_process(fn: object, bound: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call asks for what a process as a whole is set to: its locale, limits, codecs, lines of sources.

    Args:
        fn: what is called.
        bound: the object that it is a method of, if it is one.
        args, kwargs: its arguments.
    """
    name, module = getattr(fn, "__name__", ""), getattr(fn, "__module__", None)
    if native_of(fn).answer is Answer.OF_PROCESS:
        return True
    if isinstance(bound, TEXTS) and name in CODERS:
        encoding, errors = (*args, None, None)[:2]
    elif module == "_codecs" and name in CODERS or isinstance(fn, type) and fn in TEXTS:
        encoding, errors = (*args[1:], None, None)[:2]
    else:
        return False
    encoding, errors = kwargs.get("encoding", encoding), kwargs.get("errors", errors)
    known = not isinstance(encoding, str) or encoding.lower().replace("_", "-") in BUILT_IN
    return not known or isinstance(errors, str) and errors not in HANDLERS


def reads_stream(name: str, owner: object) -> bool:
    """Whether a call of a method depends on what is in a file, or on how far it is read."""
    return name in OF_STREAMS and (isinstance(owner, _io._IOBase) or type(owner).__module__ == "mmap")


def is_query(fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any], result: object) -> bool:
    """Whether a call asks for state that may change from call to call, and does nothing else."""
    owner, name = getattr(fn, "__self__", None), getattr(fn, "__name__", "")
    if answer_of(fn, owner, args) is Answer.ASKED_AGAIN:
        return True
    if kwargs:
        return False
    if isinstance(fn, weakref.ref) or isinstance(owner, weakref.ref) and name == "__call__":
        return True
    if isinstance(owner, contextvars.ContextVar):
        return bool(name == "get")
    if isinstance(owner, type) and name == "__subclasses__":
        return True
    if fn is torch.from_numpy:
        return True
    if isinstance(owner, datetime.datetime) and name in ("timestamp", "astimezone"):
        return True
    if name == "initial_seed":
        return fn in (torch.initial_seed, torch.Generator.initial_seed) or isinstance(owner, torch.Generator)
    module = getattr(fn, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] != "torch" or not _asks_by_name(name):
        return False
    answers = result if type(result) is list and result else (result,)
    return all([isinstance(a, SCALARS) for a in (*answers, *args)]) and native_of(fn).answer is not Answer.SETTLED


def is_question(fn: object, name: str) -> bool:
    """Whether a call of a function without arguments asks for PyTorch's state, by its name."""
    return fn.__class__ is types.BuiltinFunctionType and fn.__self__ is torch._C and _asks_by_name(name)


def _asks_by_name(name: str) -> bool:
    verb = name.lstrip("_")
    if verb.startswith("set_"):  # set_autocast_enabled
        return False
    return verb.startswith(("get_", "is_", "are_", "device_count", "current_")) or name.endswith("_enabled")


def decimal_context(context: decimal.Context | None = None) -> str:
    """Return what computations with decimal numbers depend on in a context, or in that of this thread."""
    now = decimal.getcontext() if context is None else context
    traps = [trap.__name__ for trap, on in now.traps.items() if on]
    return f"{now.prec} {now.rounding} {now.Emin} {now.Emax} {now.capitals} {now.clamp} {' '.join(traps)}"


def warning_filters() -> str:
    """Return what says which warnings are shown, and which are errors."""
    return str(warnings.filters)


@functools.lru_cache(maxsize=256)
def failing(fn: Callable[..., Any]) -> Callable[..., str | None]:
    """Return a function that says which exception a call of ``fn`` raises; ``None`` if none."""

    def fails(*args: Any) -> str | None:
        try:
            fn(*args)
        except Exception as error:  # whatever it is, it is the answer
            return type(error).__qualname__
        return None

    return fails


def as_positional(fn: Callable[..., Any], kwargs: Mapping[str, Any]) -> Callable[..., Any]:
    """Return a function that takes the positional arguments of a call of ``fn``."""
    return functools.partial(fn, **kwargs) if kwargs else fn


def refuse(name: str) -> None:
    """Refuse a call that lies outside of what a program can watch or repeat."""
    raise AcquisitionError(
        f"the program calls {name}(), and what that reads or writes lies outside of what a compiled program can watch "
        "or repeat; do it before the call and pass in what it gives, or after the call"
    )
