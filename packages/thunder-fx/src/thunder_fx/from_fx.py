"""An FX graph as a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node

from thunder_fx.aten import known_call
from thunder_fx.errors import FXError, NodeError
from thunder_fx.graphs import Nodes, described, plain
from thunder_fx.sizes import Examples
from thunder_fx.subgraphs import SUBGRAPHS
from thunder_fx.whole import whole
from thunder_ir import Builder, Names, Proxy, Trace, flat_proxies, recording
from thunder_torch import call, torch_language
from thunder_torch.torch_versions import OpOverload


def from_fx(graph_module: GraphModule, example_inputs: Sequence[Any] | None = None) -> Trace:
    """Return an FX graph as a trace.

    ATen operations become the functions of PyTorch that they are, where programs know one, and stand for themselves
    where not.

    Args:
        graph_module: of functions, methods and operations of PyTorch, or of ATen operations.
        example_inputs: for its placeholders, in order, tensors (with or without data) and numbers; the fake values in
            ``meta["val"]`` (``meta["example_value"]`` of dynamo) if not given.

    Returns:
        The trace. Its inputs are the graph's; symbolic sizes that are no inputs of the graph follow them.

    Raises:
        FXError: there is neither an example nor a fake value for a placeholder, or a node is nothing that can be
            recorded; the message names the node and the user's line.

    Example:
        >>> import torch
        >>> from thunder_fx import from_fx
        >>> module = torch.fx.symbolic_trace(lambda x: torch.sin(x) * 2)
        >>> print(from_fx(module, [torch.ones(3)]))
        def program(x: "float32[3]"):
            t0 = ltorch.sin(x)  # float32[3]
            t1 = ltorch.mul(t0, 2)  # float32[3]
            return t1
    """
    placeholders = graph_module.graph.find_nodes(op="placeholder")
    values = _values(placeholders, example_inputs)
    names = Names()
    examples = Examples(names)
    inputs = [examples.take(node.name, value) for node, value in zip(placeholders, values, strict=True)]
    builder = Builder(names, torch_language)
    recorder = Recorder(graph_module)
    with recording(builder):
        output = recorder.run(*inputs)
    proxies = tuple([i for i in inputs if isinstance(i, Proxy)])
    return Trace(
        "program", (*proxies, *examples.more), tuple(builder.bound_symbols), output, tuple(builder.constraints)
    )


def _values(placeholders: Sequence[Node], examples: Sequence[Any] | None) -> list[Any]:
    if examples is not None:
        if len(examples) != len(placeholders):
            raise FXError(f"the graph has {len(placeholders)} inputs, and {len(examples)} examples are given")
        return list(examples)
    values = []
    for node in placeholders:
        value = node.meta.get("val", node.meta.get("example_value"))
        if value is None:
            raise FXError(
                f"the placeholder {node.name} has no fake value in its meta['val']: pass example_inputs, or run "
                "torch.fx.passes.fake_tensor_prop.FakeTensorProp on the graph"
            )
        values.append(value)
    return values


class Recorder(Nodes):
    """Runs an FX graph on proxies, and records its calls as those of a program.

    Args:
        module: the graph.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the call of an operation or a function."""
        args, kwargs = plain(args), plain(kwargs)
        if isinstance(target, HigherOrderOperator):
            return self._higher_order(target, args, kwargs)
        if not _holds_proxies(args, kwargs) and not isinstance(target, OpOverload):
            return self._without_proxies(target, args, kwargs)
        if isinstance(target, OpOverload):
            known = known_call(target, args, kwargs)
            return call(*(known or (target, args, kwargs)))
        if getattr(target, "__module__", "") in ("_operator", "math", "builtins"):
            return target(*args, **kwargs)
        return call(target, args, kwargs)

    def _higher_order(self, target: HigherOrderOperator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record what an operator does that stands for its graph, and others as whole operations."""
        made = whole(target, args, kwargs)
        if made is not None:
            function, values = made
            return call(function, tuple(values), {})
        rule = SUBGRAPHS.get(target)
        if rule is None:
            raise NodeError(f"{described(self.node)} is a higher-order operator that traces do not know", self.node)
        return rule(lambda module: Recorder(module).run, *args, **kwargs)

    def call_method(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the call of a method of tensors."""
        args, kwargs = plain(args), plain(kwargs)
        method = getattr(torch.Tensor, target, None)
        if method is None:
            raise NodeError(f"{described(self.node)}: tensors have no method {target!r}", self.node)
        return call(method, args, kwargs)

    def _without_proxies(self, target: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if getattr(target, "__module__", "").startswith("torch"):
            return call(target, args, kwargs)
        return target(*args, **kwargs)


def _holds_proxies(args: Any, kwargs: Any) -> bool:
    return bool(flat_proxies((args, kwargs)))


__all__ = ["Recorder", "from_fx"]
