"""A program as an ``ExportedProgram``, which PyTorch saves, loads and runs without Thunder; and one as a trace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.export import ExportedProgram
from torch.fx import GraphModule

from thunder_fx.errors import FXError
from thunder_fx.from_fx import from_fx
from thunder_fx.to_fx import to_fx
from thunder_ir import NumberProxy, Proxy, TensorProxy, Trace

Read = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Argument:
    """An input of a program that is read off the arguments of a call: a tensor, a number, a size of a tensor.

    Args:
        read: takes the arguments of a call, by position and by name.
    """

    read: Read


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """An input of a program that goes with it, such as a parameter.

    Args:
        name: dotted, under which its state is saved.
        tensor: its value.
    """

    name: str
    tensor: torch.Tensor


class ProgramModule(nn.Module):
    """A graph as a module that is called as the program is which it was made of.

    Args:
        graph: of the program.
        bindings: where its inputs come from, in order.
    """

    def __init__(self, graph: GraphModule, bindings: Sequence[Argument | Held]) -> None:
        super().__init__()
        self._graph = [graph]  # not a submodule, as what is exported is its operations
        self._reads: list[Read | str] = []
        for binding in bindings:
            if isinstance(binding, Held):
                place(self, binding.name, binding.tensor)
                self._reads.append(binding.name)
            else:
                self._reads.append(binding.read)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph on arguments of the program."""
        given = [tensor_at(self, r) if isinstance(r, str) else r(args, kwargs) for r in self._reads]
        return self._graph[0](*given)


def place(root: nn.Module, name: str, tensor: torch.Tensor) -> None:
    """Register a tensor under a dotted name, with modules on the way: parameters as such, others as buffers."""
    *path, last = name.split(".")
    for step in path:
        if step not in root._modules:
            root.add_module(step, nn.Module())
        root = root.get_submodule(step)
    if isinstance(tensor, nn.Parameter):
        root.register_parameter(last, tensor)
    else:
        root.register_buffer(last, tensor.detach())


def tensor_at(root: nn.Module, name: str) -> torch.Tensor:
    """Return the tensor that is registered under a dotted name."""
    path, _, last = name.rpartition(".")
    found: torch.Tensor = getattr(root.get_submodule(path), last)
    return found


def exported_program(
    trace: Trace,
    bindings: Sequence[Argument | Held],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
) -> ExportedProgram:
    """Return a trace as an ``ExportedProgram``.

    Args:
        trace: the program; its output is tensors and numbers in tuples, lists and dicts.
        bindings: where its inputs come from, in order.
        args, kwargs: example arguments of the program.
        dynamic_shapes: of these, as ``torch.export.export`` takes them for a function of
            ``*args``: a list of one tuple.

    Raises:
        FXError: an input of the trace has no binding, or the output has other things in it.
    """
    if len(bindings) != len(trace.inputs):
        raise FXError(f"the program has {len(trace.inputs)} inputs, and {len(bindings)} bindings are given")
    problem = _not_exportable(trace.output)
    if problem:
        raise FXError(f"the program returns {problem}; return tensors and numbers, in tuples, lists and dicts")
    module = ProgramModule(to_fx(trace), bindings)
    return torch.export.export(module, args, dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=False)


def _not_exportable(value: Any) -> str:
    """Return what in a result cannot be loaded again, or ``""``."""
    if value is None or isinstance(value, (TensorProxy, NumberProxy, int, float, str)):
        return ""
    if type(value) in (tuple, list):
        return next((p for v in value if (p := _not_exportable(v))), "")
    if type(value) is dict:
        return next((p for v in value.values() if (p := _not_exportable(v))), "")
    return f"a {value.type_string if isinstance(value, Proxy) else type(value).__name__}"


def from_exported(program: ExportedProgram) -> Trace:
    """Return an ``ExportedProgram`` as a trace.

    Its inputs are those of the program's graph, in order: parameters, buffers and constants, then the arguments; open
    sizes follow. Its outputs are those of the graph: what is written to buffers comes first.

    Args:
        program: what ``torch.export`` returned or loaded.

    Raises:
        NodeError: a node of its graph cannot be recorded.

    Example:
        >>> import torch
        >>> from thunder_fx import from_exported
        >>> program = torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> print(from_exported(program))
        def program(p_weight: "float32[2, 3]", p_bias: "float32[2]", input: "float32[4, 3]"):
            t0 = ltorch.linear(input, p_weight, p_bias)  # float32[4, 2]
            return (t0,)
    """
    return from_fx(program.graph_module)


__all__ = ["Argument", "Held", "ProgramModule", "exported_program", "from_exported"]
