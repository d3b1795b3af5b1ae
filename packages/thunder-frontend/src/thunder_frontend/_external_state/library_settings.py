"""Settings of NumPy by which arithmetic raises, and what shows arrays as text, as print options say.

What arithmetic does is guarded by the settings as they are before the program changes them, if it does: within
``np.errstate`` they are what they were outside, and what the program says. Print options are a sharp edge.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from thunder_frontend._external_state.answers import Answers
from thunder_frontend._external_state.class_facts import ARITHMETIC, IN_PLACE
from thunder_frontend._external_state.native import hashable
from thunder_guards.kinds import NumPyScalar, holds_of_numpy, is_array
from thunder_guards.own_code import package_of, package_of_callable

SETS_ERRORS = frozenset({"errstate", "seterr", "seterrcall"})
SHOWS = frozenset(
    "array2string array_repr array_str savetxt __repr__ __str__ __format__ format_float_positional".split()
)
"""Functions and methods of NumPy that make text."""

COMPUTES_NOTHING = SHOWS | frozenset(
    "array asarray asanyarray ascontiguousarray zeros ones empty full arange eye zeros_like ones_like empty_like "
    "full_like frombuffer fromiter copy copyto reshape ravel squeeze transpose swapaxes moveaxis expand_dims "
    "broadcast_to broadcast_arrays atleast_1d atleast_2d concatenate stack vstack hstack split array_split item tolist "
    "tobytes view fill take put sort argsort searchsorted where nonzero flatten repeat tile ndim shape size dtype "
    "iinfo finfo result_type promote_types can_cast issubdtype isscalar isinf isnan isfinite array_equal __array__ "
    "__reduce__ __reduce_ex__ __copy__ __deepcopy__ __len__ __iter__ __getitem__ __setitem__ geterr geterrcall "
    "getbufsize get_printoptions".split()
)
"""Those of its functions and methods that cause no errors of arithmetic."""


def errors_of_arithmetic() -> str:
    """Return what NumPy does about each kind of error of arithmetic."""
    return " ".join(sys.modules["numpy"].geterr().values())


def called_on_errors() -> Any:
    """Return what NumPy calls, or writes to, about errors of arithmetic."""
    return sys.modules["numpy"].geterrcall()


class LibrarySettings:
    """Guards settings of libraries.

    Args:
        answers: takes the guards.
    """

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._known: set[Any] = set()

    def called(self, fn: Callable[..., Any], owner: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Guard what a call of C code, or of a function of NumPy, depends on, which is about to be made.

        Args:
            fn: what is called.
            owner: the object that it is a method of, if it is one.
            args, kwargs: its arguments.
        """
        if "numpy" not in sys.modules:
            return
        name, ours = getattr(fn, "__name__", ""), _is_of_package(fn) or _is_of_numpy(owner)
        if ours and name in SETS_ERRORS:
            self._errors()
        elif ours and name not in COMPUTES_NOTHING or _computes(fn) and any(map(holds_of_numpy, args)):
            if errors_of_arithmetic not in self._known and _may_go_wrong(fn, args, kwargs):
                self._errors()

    def reached(self, value: object) -> None:
        """Guard what code that is not watched may depend on, if it gets at NumPy, or at something of NumPy's."""
        if "numpy" in sys.modules and (value is sys.modules["numpy"] or _is_of_numpy(value)):
            self._errors()

    def _errors(self) -> None:
        self._take(errors_of_arithmetic)
        if called_on_errors() is not None:
            self._take(called_on_errors)
        self._answers.warns()

    def _take(self, query: Callable[[], Any]) -> None:
        if query not in self._known:  # what comes later is what the program makes of it
            self._known.add(query)
            self._answers.result_of(query, (), query())


def makes_text(fn: Callable[..., Any], owner: object, args: Sequence[Any], shows: bool) -> bool:
    """Whether a call makes text of arrays, as NumPy's print options say.

    Args:
        fn: what is called.
        owner: the object that it is a method of, if it is one.
        args: its arguments.
        shows: whether it makes text of whatever it is given.
    """
    if shows:
        return any(map(holds_of_numpy, args))
    return getattr(fn, "__name__", "") in SHOWS and (_is_of_package(fn) or _is_of_numpy(owner))


def _is_of_numpy(value: object) -> bool:
    return is_array(value) or isinstance(value, NumPyScalar)


def _is_of_package(fn: object) -> bool:
    """Whether something that is called is one of NumPy's functions, written in C or in Python, or of their classes."""
    return "numpy" in (package_of_callable(fn), package_of(type(fn).__module__))


def _computes(fn: object) -> bool:
    """Whether a builtin or an operator computes with what it gets, or with what containers hold that it gets."""
    return hashable(fn) and fn in OPERATORS or getattr(fn, "__module__", None) in ("itertools", "_functools")


def _may_go_wrong(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether arithmetic causes an error of arithmetic, or may, where it cannot be tried without any effect."""
    if any([isinstance(a, torch.Tensor) for a in args]):
        return False
    numpy: Any = sys.modules["numpy"]
    alone = hashable(fn) and fn in WITHOUT_EFFECTS or getattr(fn, "__name__", "") in WITHOUT_EFFECTS_BY_NAME
    alone = alone or type(fn) is numpy.ufunc and "O" not in "".join(fn.types[:1])
    alone = alone or isinstance(fn, type) and issubclass(fn, numpy.generic)
    if not alone or "out" in kwargs or not all(map(_is_plain, (*args, *kwargs.values()))):
        return True
    try:
        with numpy.errstate(all="raise"):
            fn(*args, **kwargs)
    except FloatingPointError:
        return True
    except Exception:  # which the call raises, too
        return False
    return False


def _is_plain(value: Any) -> bool:
    """Whether computations with a value run no code of the user's."""
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    cls = type(value)
    return cls in PLAIN or cls.__module__ == "numpy"


PLAIN = frozenset({bool, int, float, complex, str, type, type(None), torch.Size})
OPERATORS = ARITHMETIC | {abs, round, divmod, pow, sum, math.prod}
WITHOUT_EFFECTS = OPERATORS - IN_PLACE
WITHOUT_EFFECTS_BY_NAME = frozenset(
    "sum prod mean std var dot max min cumsum cumprod round astype clip linspace".split()
)
"""Functions and methods of NumPy that compute, and change nothing but what is given as ``out``."""
