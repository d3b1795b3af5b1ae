"""What is run in place of methods of Python's and NumPy's generators of random numbers: the program draws."""

from __future__ import annotations

import copy
import random
import sys
import types
from collections.abc import Callable
from typing import Any

import torch

from thunder_frontend._acquiring import Acquiring
from thunder_frontend._draws import Draw, examples_of, generators, kinds, numpys_random
from thunder_guards.kinds import NumPyScalar, is_array, is_value
from thunder_interpreter import DECLINED
from thunder_ir import NumberProxy, OpTags, is_unknown, map_values
from thunder_torch import opaque_call
from thunder_tracing.tensors.array_calls import on_arrays
from thunder_tracing.tensors.recorded_arrays import recorded
from thunder_tracing.tensors.run_arrays import run_arrays_in
from thunder_tracing.tensors.sizes import fixed
from thunder_tracing.tensors.traced_tensor import TracedTensor

IN_C: Any = random.Random.__base__
OF_MODULE = ("seed", "sample", "ranf")
"""Functions of ``numpy.random`` that are no methods of its generator."""
SEED = "seed"
OF_STATE = frozenset({"getstate", "setstate", "get_state", "set_state", "spawn"})
"""Methods that take or return what generators are, of which only the run of a program could tell."""
WRITING = frozenset({"shuffle"})
"""Methods that write to what they are given."""

MAKE_ARRAYS = ("array", "asarray", "asanyarray", "ascontiguousarray")
"""Functions of NumPy's that hand on to no one what they are given."""

TAGS = (OpTags.RANDOM, OpTags.DONT_DCE, OpTags.DONT_FUSE, OpTags.DONT_RECOMPUTE)


class Draws:
    """Records calls that draw a number or an array.

    Args:
        calls: the acquisition.
    """

    def __init__(self, calls: Acquiring) -> None:
        self._calls = calls
        self._seeded: dict[int, Any] = {}
        self._numpys: dict[int, tuple[Any, Any]] | None = None

    def lookasides(self) -> dict[Any, Any]:
        """Return what is run in place of which functions."""
        below: Any = vars(random.Random)["_randbelow"]
        table: dict[Any, Any] = {below: self._drawing(below), torch.from_numpy: self._from_numpy}
        table.update(self._of_class(random.Random))
        table[IN_C.seed] = self._seed
        numpy = sys.modules.get("numpy")
        if numpy is not None:
            table.update({f: self._on_arrays(f) for f in [getattr(numpy, name) for name in MAKE_ARRAYS]})
        return table

    def of_numpys(self, function: Any) -> Any:
        """Return what is run in place of a function of ``numpy.random``, which is loaded when somebody asks for it."""
        if self._numpys is None:
            numpys = numpys_random()
            if numpys is None:
                return None
            table: dict[Any, Any] = {}
            for kind in kinds()[1:]:
                table.update(self._of_class(kind))
            table.update({f: self._of_module(f) for f in map(vars(numpys).get, OF_MODULE)})
            table.update({f: self._making(f) for f in (numpys.default_rng, numpys.RandomState)})
            self._numpys = {id(f): (f, replacement) for f, replacement in table.items()}
        _, replacement = self._numpys.get(id(function), (None, None))
        return replacement

    def _of_class(self, kind: type) -> dict[Any, Any]:
        of_classes = [vars(base).items() for base in kind.__mro__[:-1]]
        found = [f for those in of_classes for name, f in those if name[0] != "_" and name not in WRITING]
        return {f: self._drawing(f) for f in found if callable(f) and not isinstance(f, type)}

    def _drawing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def called(owner: Any, *args: Any, **kwargs: Any) -> Any:
            if id(owner) in self._seeded:
                return function(owner, *args, **kwargs)
            as_a_whole = not isinstance(function, types.FunctionType) or _draws_as_random(owner)
            if (
                not as_a_whole
                or not self._may_draw(owner)
                or kwargs.get("out") is not None
                or run_arrays_in((args, kwargs))
            ):
                return DECLINED
            for value in (*args, *kwargs.values()):
                self._calls.external.unwatched.escapes(value)
            name = function.__name__
            if name in OF_STATE:
                self._calls.sharp(f"it calls {name}() of a generator of random numbers", True)
                return DECLINED
            try:
                args, kwargs = map_values(self._given, (args, kwargs))
                if name == SEED:
                    return self._drawn(Draw(owner, function, args, kwargs, None), (None,))
                examples = examples_of(owner, function, copy.deepcopy(args), copy.deepcopy(kwargs))
            except (_Unlisted, TypeError, ValueError, IndexError):
                return DECLINED  # and the call raises what eager raises
            if not isinstance(examples[0], (int, float, NumPyScalar)) and not is_array(examples[0]):
                return DECLINED
            return self._drawn(Draw(owner, function, args, kwargs, examples[0]), examples)

        return called

    def _drawn(self, draw: Draw, examples: tuple[Any, ...]) -> Any:
        self._calls.hand_out_number()
        self._calls.changes += 1
        with self._calls.builder.tagged(*TAGS):
            if type(examples[0]) in (int, float, types.NoneType):
                with torch._C.DisableTorchFunction():
                    return opaque_call(draw)
            return recorded(self._calls, draw, (), examples)

    def _may_draw(self, owner: Any) -> bool:
        """Whether an object is a generator that each call of the program finds again; guard that it is this one."""
        if not isinstance(owner, kinds()):
            return False
        if any([owner is g for g in generators()]):
            return True
        external = self._calls.external
        source = external.source_of(owner)
        if source is None or source.is_of_the_call() and not source.is_held:
            return False
        external.fix_identity(owner)
        return True

    def _given(self, value: Any) -> Any:
        """Return what a function that draws is given: what is in it now."""
        if isinstance(value, NumberProxy):
            if self._calls.outcomes is None or not is_unknown(value):
                return fixed(value)
            return self._calls.outcomes.value(value)
        if is_array(value):
            return value.copy()
        if isinstance(value, type) or is_value(value):
            return value
        raise _Unlisted

    def _seed(self, owner: Any, *args: Any) -> Any:
        """Do what ``random.Random.seed`` does to a generator that the program made: it draws the same on each call."""
        if self._calls.external.source_of(owner) is not None or not args or type(args[0]) not in (int, bytes, str):
            return DECLINED
        self._seeded[id(owner)] = owner
        return IN_C.seed(owner, *args)

    def _making(self, make: Any) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            seeds = (*args, *kwargs.values())
            if len(seeds) == 1 and type(seeds[0]) is int:
                made = make(*seeds)
                self._seeded[id(made)] = made
                return made
            if not seeds or seeds == (None,):
                self._calls.sharp(f"it calls {make.__name__}() without a seed", True)
            return DECLINED

        return called

    def _of_module(self, function: Any) -> Callable[..., Any]:
        """Return what a function of ``numpy.random`` does: what a method of its generator does."""
        generator = generators()[-1]
        method = getattr(type(generator), "seed" if function.__name__ == "seed" else "random_sample")

        def called(*args: Any, **kwargs: Any) -> Any:
            found = self._drawing(method)(generator, *args, **kwargs)
            if found is DECLINED:
                self._calls.sharp(f"it calls {function.__name__}() of numpy.random", True)
            return found

        return called

    def _on_arrays(self, function: Any) -> Callable[..., Any]:
        def called(*args: Any, **kwargs: Any) -> Any:
            if args and type(args[0]) is TracedTensor:
                args = (args[0].numpy(), *args[1:])
            found = run_arrays_in((args, kwargs))
            return found[0].do(on_arrays, function, args, kwargs) if found else DECLINED

        return called

    def _from_numpy(self, array: Any) -> Any:
        found = run_arrays_in(array)
        return found[0].do(torch.Tensor.detach, found[0].tensor) if found else DECLINED


def _draws_as_random(generator: random.Random) -> bool:
    """Whether methods of a generator draw by those of ``random.Random``, and by no others."""
    names = ("random", "getrandbits", "_randbelow")
    own = [getattr(type(generator), name) is not getattr(random.Random, name) for name in names]
    return not any(own) and vars(generator).keys() <= {"gauss_next"}


class _Unlisted(Exception):  # noqa: N818  (no error: the call is none that is recorded)
    """A call is given what may change."""
