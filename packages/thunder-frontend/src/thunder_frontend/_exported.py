"""What ``export`` does: a callable is acquired, and its program handed to PyTorch's export."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.export import ExportedProgram

from thunder_frontend._external_state.dynamic_values import DynamicValues, mark_dynamic
from thunder_frontend._jit import compiled_function, jit
from thunder_fx import Argument, Held, exported_program
from thunder_guards.errors import AcquisitionError
from thunder_guards.program import Effect, Input
from thunder_guards.sources import Source
from thunder_ir import TensorProxy, flat_proxies


def exported(
    fn: Callable[..., Any] | torch.nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None,
    dynamic_shapes: Any,
) -> ExportedProgram:
    """Do what :func:`thunder_frontend.export` says, which see."""
    if kwargs and dynamic_shapes is not None:
        raise ValueError("sizes are dynamic of arguments by position only: pass all arguments by position")
    shapes = None if dynamic_shapes is None else tuple(dynamic_shapes)
    compiled = compiled_function(jit(fn, cache="symbolic values"))
    program = compiled.acquired(_marked(args, shapes), dict(kwargs or {}), DynamicValues(symbolic=True, follows=False))
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
    """Return arguments with marks on the sizes that are dynamic; tensors with marks are aliases."""
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


def _names(fn: object) -> dict[int, str]:
    if not isinstance(fn, torch.nn.Module):
        return {}
    return {id(t): name for name, t in (*fn.named_parameters(), *fn.named_buffers())}


def _binding(given: Input, names: Mapping[int, str]) -> Argument | Held:
    if given.source.is_of_the_call():
        return Argument(_reading(given.source))
    return Held(names.get(id(given.example), f"held.{given.proxy.name}"), given.example)


def _reading(source: Source) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
    return lambda args, kwargs: source.evaluate({"args": args, "kwargs": kwargs})
