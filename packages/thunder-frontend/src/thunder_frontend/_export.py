"""``export``: a callable as an ``ExportedProgram``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from thunder_frontend._jit import compiled_function, jit
from thunder_frontend._outside.left_open import LeftOpen, mark_dynamic
from thunder_fx import Argument, Held, exported_program
from thunder_guards.errors import AcquisitionError
from thunder_guards.program import Effect, Input
from thunder_guards.sources import Source
from thunder_ir import TensorProxy, flat_proxies


def export(
    fn: Callable[..., Any] | torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """Return a callable or a module as an ``ExportedProgram``, which PyTorch saves, loads and runs without Thunder.

    What the program relies on of the world around it is fixed in it, and what it changes there is left out: both are
    listed as text, in ``graph_module.meta["assumed"]`` and ``graph_module.meta["left_out"]``.

    Args:
        fn: a function or a module that returns tensors and numbers, in tuples, lists and dicts; it writes to no tensor.
        args, kwargs: example arguments.
        dynamic_shapes: which sizes are left open: a tuple for ``args``, in the way of ``torch.export.export``: for each
            ``None``, or for a tensor a dict from dimensions to ``torch.export.Dim``.

    Raises:
        ValueError: there are both ``kwargs`` and open sizes.
        AcquisitionError: ``fn`` cannot be acquired, or writes to tensors.
        FXError: it returns what nobody could load without the classes around it.

    Example:
        >>> import torch
        >>> from thunder_frontend import export
        >>> program = export(torch.nn.Linear(3, 2), (torch.ones(4, 3),), dynamic_shapes=({0: torch.export.Dim("n")},))
        >>> program.module()(torch.ones(7, 3)).shape
        torch.Size([7, 2])
    """
    if kwargs and dynamic_shapes is not None:
        raise ValueError("sizes are left open of arguments by position only: pass all arguments by position")
    shapes = None if dynamic_shapes is None else tuple(dynamic_shapes)
    compiled = compiled_function(jit(fn, cache="symbolic values"))
    program = compiled.acquired(_marked(args, shapes), dict(kwargs or {}), LeftOpen(symbolic=True, follows=False))
    left_out = _left_out(program.effects)
    names = _names(fn)
    bindings: list[Argument | Held] = [_binding(i, names) for i in program.inputs]
    bindings += [Argument(_reading(n.source)) for n in program.numbers]
    trace = program.computation.replace(output=program.result)
    wanted = None if dynamic_shapes is None else [_whole(args, shapes)]
    made = exported_program(trace, bindings, args, kwargs, wanted)
    made.graph_module.meta["assumed"] = [str(guard) for guard in program.guards]
    made.graph_module.meta["left_out"] = left_out
    return made


def _left_out(effects: Sequence[Effect]) -> list[str]:
    """Return what an exported program does not do, as text: what sets Python's objects to other ones.

    Raises:
        AcquisitionError: the program writes to tensors, or keeps them outside.
    """
    for effect in effects:
        if isinstance(effect.target, TensorProxy) or flat_proxies((effect.target, effect.value)):
            raise AcquisitionError(
                f"the program keeps or changes a tensor outside of it ({effect.kind} {effect.key or ''}), and an "
                "exported one has no place for that; return the value instead"
            )
    return [f"{effect.kind} {effect.key}" for effect in effects]


def _marked(value: Any, spec: Any) -> Any:
    """Return arguments with marks on the sizes that are left open; tensors with marks are aliases."""
    if isinstance(value, torch.Tensor):
        dims = list(spec) if isinstance(spec, dict) else [i for i, d in enumerate(spec or ()) if d is not None]
        dims = [d for d in dims if not isinstance(spec, dict) or spec[d] is not None]
        return mark_dynamic(value.view_as(value), dims) if dims else value
    if isinstance(value, (tuple, list)) and spec is not None:
        return type(value)([_marked(v, s) for v, s in zip(value, spec, strict=True)])
    if isinstance(value, dict) and spec is not None:
        return {k: _marked(v, spec.get(k)) for k, v in value.items()}
    return value


def _whole(value: Any, spec: Any) -> Any:
    """Return a specification with nothing left out, as ``torch.export`` wants it."""
    if isinstance(value, dict):
        return {k: _whole(v, None if spec is None else spec.get(k)) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)([_whole(v, None if spec is None else spec[i]) for i, v in enumerate(value)])
    return spec


def _names(fn: Any) -> dict[int, str]:
    if not isinstance(fn, torch.nn.Module):
        return {}
    return {id(t): name for name, t in (*fn.named_parameters(), *fn.named_buffers())}


def _binding(given: Input, names: Mapping[int, str]) -> Argument | Held:
    if given.source.is_of_the_call():
        return Argument(_reading(given.source))
    return Held(names.get(id(given.example), f"held.{given.proxy.name}"), given.example)


def _reading(source: Source) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
    return lambda args, kwargs: source.evaluate({"args": args, "kwargs": kwargs})


__all__ = ["export"]
