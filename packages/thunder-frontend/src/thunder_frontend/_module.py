"""The compiled module: what ``thunder.jit`` returns for an ``nn.Module``."""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from thunder_frontend._compiled import CompiledFunction
from thunder_frontend._dynamo import left_alone_by_dynamo
from thunder_frontend._library_code.distributed_calls import FULLY_SHARDED
from thunder_frontend._library_code.module_calls import has_hooks
from thunder_frontend._suspensions import Paused
from thunder_frontend._tracebacks import tell_the_user
from thunder_frontend.options import Options
from thunder_guards import Dispatcher
from thunder_tracing.bailouts import Bailout


class CompiledForward(CompiledFunction):
    """The ``forward`` of a module, as a function of the module: it runs compiled, and no hooks.

    What calls of the module compile serves these calls too, where both do the same.
    """

    @left_alone_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], ThunderModule) and args[0]._thunder_only_calls(self.function):
            return args[0](*args[1:], **kwargs)
        return super().__call__(*args, **kwargs)


class BoundForward:
    """The ``forward`` of one module: what a bound method is, for functions that are compiled.

    Args:
        function: takes the module first.
        module: to which it is bound.
    """

    def __init__(self, function: CompiledForward, module: ThunderModule) -> None:
        # libraries that pick from a batch what a model takes ask its forward for a signature: the original's
        functools.update_wrapper(self, types.MethodType(function.function, module))
        self.__func__, self.__self__ = function, module

    @left_alone_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__func__(self.__self__, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        """Attributes of a bound method are those of its function, such as its code."""
        if name in ("__func__", "__self__"):  # which a copy in the making does not have yet
            raise AttributeError(name)
        return getattr(self.__func__.function, name)

    def compiles(self) -> Any:
        """Return what is compiled: inside of another compiled program, that is what runs."""
        return types.MethodType(self.__func__.function, self.__self__)

    def __eq__(self, other: object) -> bool:
        return type(other) is BoundForward and self.compiles() == other.compiles()

    def __hash__(self) -> int:
        return hash(self.compiles())

    def __reduce__(self) -> Any:
        return BoundForward, (self.__func__, self.__self__)

    def __repr__(self) -> str:
        return f"<thunder.jit of {self.compiles()!r}>"


class Forward:
    """The ``forward`` of a compiled module runs compiled; that of its class, and what is set, are the original's.

    What was read stays what it is when another one is set, which may call it.
    """

    @left_alone_by_dynamo
    def __get__(self, module: ThunderModule | None, owner: type) -> Any:
        if module is None:
            return super(ThunderModule, owner).forward  # type: ignore[misc]
        method = module._thunder_original.forward
        is_bound = type(method) is types.MethodType and method.__self__ in (module, module._thunder_original)
        function = method.__func__ if is_bound else method  # type: ignore[attr-defined]
        compiled: Any = module._thunder_forward
        if compiled is None or compiled.function is not function:
            compiled = (CompiledForward if is_bound else CompiledFunction)(function, module._thunder_options)
            object.__setattr__(module, "_thunder_forward", compiled)
        return BoundForward(compiled, module) if is_bound else compiled

    def __set__(self, module: ThunderModule, value: object) -> None:
        module.__dict__["forward"] = value

    def __delete__(self, module: ThunderModule) -> None:
        del module.__dict__["forward"]


class ThunderModule(torch.nn.Module):
    """A module that runs compiled and is in all else the module that it was made of.

    It is of a class derived from the original's and has the original's ``__dict__``: attributes, parameters, buffers,
    submodules and hooks are shared and not copied, so that what is done to one is done to the other. Methods run on the
    compiled module: a ``generate`` or ``training_step`` that calls ``self(...)`` or ``self.forward(...)`` runs
    compiled. The original stays usable.

    What is called as its class, as in ``type(self)(config)``, is the original's, and makes modules that are not
    compiled. Classes are derived from the original's, and their instances compiled.

    Args:
        module: what is compiled.
        options: how.
    """

    __slots__ = (
        "_thunder_compiled",
        "_thunder_dispatcher",
        "_thunder_forward",
        "_thunder_options",
        "_thunder_original",
    )

    _thunder_compiled: CompiledFunction
    _thunder_dispatcher: Dispatcher
    _thunder_forward: CompiledFunction | None
    _thunder_options: Options
    _thunder_original: torch.nn.Module

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an instance of a class derived from this one and the module's; of the latter, if this is derived."""
        original = cls.__dict__.get("_thunder_class")
        return cls._derived(*args, **kwargs) if original is None else original(*args, **kwargs)

    @classmethod
    def _derived(cls, module: torch.nn.Module, options: Options) -> ThunderModule:
        original = type(module)
        names = {
            "__module__": original.__module__,
            "__qualname__": original.__qualname__,
            "__doc__": original.__doc__,
            "_thunder_class": original,
        }
        derived = types.new_class(original.__name__, (cls, original), exec_body=lambda body: body.update(names))
        return object.__new__(derived)

    def __init__(self, module: torch.nn.Module, options: Options) -> None:
        object.__setattr__(self, "__dict__", module.__dict__)
        object.__setattr__(self, "_thunder_original", module)
        object.__setattr__(self, "_thunder_options", options)
        object.__setattr__(self, "_thunder_compiled", CompiledFunction(module, options))
        object.__setattr__(self, "_thunder_dispatcher", self._thunder_compiled._dispatcher)
        object.__setattr__(self, "_thunder_forward", None)
        for transform in options.transforms:
            transform.transform_module(self)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Nothing that classes do when others are derived from them is meant for those of compiled modules.

        Raises:
            TypeError: the class is the user's.
        """
        if any(base.__name__ == "FSDPModule" for base in cls.__bases__):
            raise TypeError(FULLY_SHARDED)
        if "_thunder_class" not in cls.__dict__:
            original = next((vars(c)["_thunder_class"] for c in cls.__mro__ if "_thunder_class" in vars(c)), None)
            base = torch.nn.Module if original is None else original
            raise TypeError(
                f"the class {cls.__qualname__} cannot be derived from that of compiled modules; derive it from "
                f"{base.__qualname__}, and compile its instances with thunder.jit"
            )

    @left_alone_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        dispatcher = self._thunder_dispatcher
        try:
            dispatcher.calls += 1
            serve = dispatcher.serve
            result = serve(args, kwargs, dispatcher.miss)
            return self._thunder_compiled.go_on(result) if result.__class__ is Paused else result
        except Bailout as other:
            bailout: Bailout = other
        except Exception as error:
            tell_the_user(error, self._thunder_compiled.programs())
            raise
        return self._thunder_compiled.go_on(self._thunder_compiled.bail_out(bailout, args, kwargs))

    forward = Forward()

    def _thunder_only_calls(self, function: object) -> bool:
        """Whether calling this module means calling ``function``, the ``forward`` of its class, on it and no more."""
        original = self._thunder_original
        its_class = type(original)
        plain = "forward" not in original.__dict__ and its_class.__call__ is torch.nn.Module.__call__
        return plain and its_class.forward is function and not has_hooks(original)

    def compiles(self) -> torch.nn.Module:
        """Return what is compiled: inside of another compiled program, that is what runs."""
        return self._thunder_original

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leave out the synchronisation of gradients between processes, where the original does any."""
        inner = getattr(self._thunder_original, "no_sync", None)
        if inner is None:
            yield
        else:
            with inner():
                yield

    def __deepcopy__(self, memo: dict[int, Any]) -> ThunderModule:
        original = copy.deepcopy(self._thunder_original, memo)  # which may hold this one: it is copied by then
        return memo.get(id(self)) or ThunderModule(original, self._thunder_options)

    def __reduce_ex__(self, protocol: object) -> Any:
        return ThunderModule, (self._thunder_original, self._thunder_options)

    def __repr__(self) -> str:
        return f"thunder.jit({self._thunder_original!r})"
