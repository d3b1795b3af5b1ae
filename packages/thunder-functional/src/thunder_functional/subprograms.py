"""A function called while a program is recorded, as a program of its own, and programs put into the one around them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from thunder_ir import Builder, Proxy, TensorProxy, Trace, current_builder, flat_proxies, recording, substitute
from thunder_ir.passes import under_fresh_names
from thunder_ir.trees import flatten, unflatten


def record_call(function: Callable[..., Any], args: Sequence[Any], shapes: Sequence[Any] | None = None) -> Trace:
    """Record ``function(*args)`` as a program whose inputs are the tensors in ``args``, in order.

    What the function reads from around it stays what it is: the program may read values that it does not define.

    Args:
        function: called with stand-ins in the place of tensors.
        args: pytrees of tensors and other values.
        shapes: for each tensor the shape of its stand-in, where it is another.
    """
    around = current_builder()
    leaves, structure = flatten(tuple(args))
    given = iter(shapes if shapes is not None else [leaf.shape for leaf in leaves if isinstance(leaf, TensorProxy)])
    inputs: list[Proxy] = []
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, TensorProxy):
            stand_in = leaf.like(shape=next(given))
            stand_in.name = around.names.fresh(stand_in.prefix)
            inputs.append(stand_in)
            leaves[at] = stand_in
    builder = Builder(around.names, around.language, around.locate)
    builder.tags = around.tags
    with recording(builder):
        output = function(*unflatten(structure, leaves))
    around.constraints += builder.constraints
    return Trace("function", tuple(inputs), tuple(builder.bound_symbols), output)


class Staged:
    """A program of which a first part is put into the program being recorded, and the rest once its inputs are known.

    Args:
        trace: the program.
        args: what its first inputs stand for. All that depends on no other input is computed now.
    """

    def __init__(self, trace: Trace, args: Sequence[Any]) -> None:
        self.trace = trace
        self.later = trace.inputs[len(args) :]
        self.values: dict[str, Any] = {p.name: a for p, a in zip(trace.inputs, args, strict=False)}
        waiting = {p.name for p in self.later}
        self.rest = []
        for bound in trace.bound_symbols:
            if any([p.name in waiting for p in bound.inputs]):
                waiting.update([p.name for p in bound.outputs])
                self.rest.append(bound)
            else:
                _put(bound, self.values)

    def read(self, tree: Any) -> Any:
        """Return what values of the program stand for that are known."""
        return substitute(tree, self.values)

    def finish(self, args: Sequence[Any], output: Any) -> Any:
        """Put the rest into the program being recorded; may be done several times.

        Args:
            args: what the later inputs stand for.
            output: values of the program.

        Returns:
            What ``output`` stands for.
        """
        values = {**self.values, **{p.name: a for p, a in zip(self.later, args, strict=True)}}
        for bound in self.rest:
            _put(bound, values)
        return substitute(output, values)


def put(trace: Trace, args: Sequence[Any]) -> Any:
    """Put a program into the one being recorded, with ``args`` for its inputs; return its output."""
    staged = Staged(trace, args)
    return staged.read(trace.output)


def _put(bound: Any, values: dict[str, Any]) -> None:
    """Record a call under names of the program around it; its tags and location stay."""
    builder = current_builder()
    if builder.recording:
        values.update(under_fresh_names(bound, builder.names, values))
        made = bound.substituted(values, outputs=True)
        builder.bound_symbols.append(made.replace(tags=made.tags | builder.tags) if builder.tags else made)


def tensors_in(tree: Any) -> list[TensorProxy]:
    """Return the tensors in a pytree, in order."""
    return [p for p in flat_proxies(tree) if isinstance(p, TensorProxy)]
