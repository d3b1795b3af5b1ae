"""FX graphs run node by node, under a tracer or not."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Interpreter, Node
from torch.overrides import handle_torch_function, has_torch_function

from thunder_fx.aten import known_call
from thunder_fx.errors import NodeError
from thunder_fx.subgraphs import SUBGRAPHS
from thunder_fx.symbolic_calls import called, flat_numbers
from thunder_fx.whole import whole
from thunder_ir import Location, ThunderError, find_builder
from thunder_torch.torch_versions import OpOverload

_FRAME = re.compile(r'File "(?P<filename>[^"\n]*)", line (?P<line>\d+)(?:, in (?P<function>[^\n]*))?')


def location_of(node: Node) -> Location | None:
    """Return the user's line that a node is from, by its stack trace, or ``None``."""
    frames = list(_FRAME.finditer(node.stack_trace or ""))
    if not frames:
        return None
    last = frames[-1]
    return Location(last["filename"], int(last["line"]), last["function"] or "")


class Nodes(Interpreter):
    """Runs an FX graph, and knows which node is run.

    Args:
        module: the graph.
    """

    def __init__(self, module: GraphModule, **options: Any) -> None:
        super().__init__(module, **options)
        self.node: Node | None = None

    def run(self, *args: Any, **options: Any) -> Any:
        """Run the graph; what is recorded meanwhile is from the lines that the graph's nodes are from."""
        builder = find_builder()
        before = builder.locate if builder is not None else None
        if builder is not None:
            builder.locate = self.location
        try:
            return super().run(*args, **options)
        finally:
            if builder is not None:
                builder.locate = before

    def location(self) -> Location | None:
        """Return the user's line that the present node is from."""
        return location_of(self.node) if self.node is not None else None

    def run_node(self, n: Node) -> Any:
        """Run a node; say which it is if that fails."""
        self.node = n
        try:
            return super().run_node(n)
        except NodeError:
            raise
        except Exception as error:
            kind = "" if isinstance(error, ThunderError) else f"{type(error).__name__}: "
            raise NodeError(f"{described(n)} cannot be recorded: {kind}{error}", n) from error


class Runner(Nodes):
    """Runs an FX graph: ATen operations as the functions of PyTorch that programs know, subgraphs in place.

    Args:
        module: the graph.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=True)
        self.extra_traceback = False

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call an operation or a function."""
        args, kwargs = plain(args), plain(kwargs)
        if enters_level(target):
            raise NodeError(f"{described(self.node)} begins a transform of torch.func inside of a graph", self.node)
        if isinstance(target, OpOverload):
            known = known_call(target, args, kwargs)
            if known is not None:
                target, args, kwargs = known
        elif isinstance(target, HigherOrderOperator):
            return self._higher_order(target, args, kwargs)
        return called(target, args, kwargs)

    def _higher_order(self, target: HigherOrderOperator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rule = SUBGRAPHS.get(target)
        if rule is not None:
            return rule(lambda module: Runner(module).run, *args, **kwargs)
        made = whole(target, args, kwargs)
        if made is None:
            raise NodeError(f"{described(self.node)} is a higher-order operator that programs do not know", self.node)
        call, values = made
        tensors = [v for v in values if isinstance(v, torch.Tensor)]
        return handle_torch_function(call, tensors, *values) if has_torch_function(tensors) else call(*values)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method."""
        args, kwargs = plain(args), plain(kwargs)
        if isinstance(args[0], torch.Tensor) and flat_numbers((args, kwargs)):
            return called(getattr(torch.Tensor, target), args, kwargs)
        return super().call_method(target, args, kwargs)

    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a module of the graph's."""
        module = self.fetch_attr(target)
        if isinstance(module, GraphModule):
            return Runner(module).run(*args, **kwargs)
        return module(*plain(args), **plain(kwargs))


def enters_level(target: Any) -> bool:
    """Whether a function begins a level of ``torch.func``: what comes until it ends, is inside of the transform."""
    return getattr(target, "__name__", "").endswith("_increment_nesting")


def leaves_level(target: Any) -> bool:
    """Whether a function ends a level of ``torch.func``."""
    return getattr(target, "__name__", "").endswith("_decrement_nesting")


def plain(value: Any) -> Any:
    """Return arguments with ordinary lists and dicts for those that FX keeps from being changed."""
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if type(value) is tuple:
        return tuple([plain(v) for v in value])
    return value


def described(node: Node | None) -> str:
    """Return which node it is, and where in the user's program it came from."""
    if node is None:
        return "a node"
    place = location_of(node)
    return f"node {node.name} ({node.op} {node._pretty_print_target(node.target)})" + (f" at {place}" if place else "")


__all__ = ["Nodes", "Runner", "described", "enters_level", "leaves_level", "location_of", "plain"]
