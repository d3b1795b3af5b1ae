"""``trace_function``: a Python function, run by CPython on traced tensors, as a trace."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from thunder_guards import Guard
from thunder_guards.symbolic import NumberInput
from thunder_ir import Proxy, Symbol, Trace
from thunder_tracing._function_tracer import FunctionTracer, SymbolicNumbers, TracedInput, TracedOutput, TracedWrite
from thunder_tracing.tensors._regenerated import with_history


@dataclass(frozen=True, slots=True, eq=False)
class TracedFunction:
    """A function as a trace, which writes to nothing: what it writes are outputs.

    Args:
        trace: from :attr:`inputs` to a tuple: first the tensors among :attr:`outputs`, then the values of
            :attr:`writes`, each in order. It is not differentiated; proxies say what requires grad.
        inputs: one for each input of the trace: the tensors among the arguments, each once and whether they are read
            or not, then those that the function holds itself, as they were met.
        outputs: the leaves of what the function returns.
        writes: the inputs that it writes to.
        in_spec, out_spec: how ``(args, kwargs)`` and the result are built of their leaves.
        guards: what must hold of other arguments for the trace to be right for them, but for their metadata.
        rules: derivatives that it brings along, of custom functions and of values written over others.
        numbers: symbolic numbers, which are inputs of the trace after the tensors; their sources are ways from
            ``{"args": leaves}``.
    """

    trace: Trace
    inputs: tuple[TracedInput, ...]
    outputs: tuple[TracedOutput, ...]
    writes: tuple[TracedWrite, ...]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    guards: tuple[Guard, ...]
    rules: Mapping[Symbol, Callable[..., Any]]
    numbers: tuple[NumberInput, ...] = ()

    def given(self, leaves: Sequence[Any]) -> list[Any]:
        """Return the inputs of the trace for the leaves of the arguments of a call."""
        roots = {"args": leaves}
        tensors: list[Any] = [i.tensor if i.argument is None else leaves[i.argument] for i in self.inputs]
        return [*tensors, *[n.source.evaluate(roots) for n in self.numbers]]

    def call(self, run: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Do what the function does, writes and views of inputs included.

        Args:
            run: runs the trace: takes its inputs, returns its outputs.
            args, kwargs: of the function: tensors like those that it was traced for, and else the same.

        Raises:
            TypeError: the arguments are nested in another way.
        """
        leaves, spec = pytree.tree_flatten((args, kwargs))
        if spec != self.in_spec:
            raise TypeError(f"the function was traced for arguments nested as {self.in_spec}, and is given {spec}")
        given = self.given(leaves)
        results = list(run(*given))
        count = len(results) - len(self.writes)
        for write, value in zip(self.writes, results[count:], strict=True):
            with torch.set_grad_enabled(write.tracked):
                given[write.input].copy_(value)
        computed = iter(results[:count])
        return pytree.tree_unflatten([_result(o, given, computed) for o in self.outputs], self.out_spec)


def _result(output: TracedOutput, given: list[Any], computed: Iterator[Any]) -> Any:
    if not isinstance(output.value, Proxy):
        return output.value
    value = next(computed)
    if output.input is None:
        return value
    made = functools.reduce(lambda tensor, step: step(tensor), output.steps, given[output.input])
    return with_history(made, value) if output.apart and value.requires_grad else made


def trace_function(function: Callable[..., Any], *args: Any, **kwargs: Any) -> TracedFunction:
    """Return what a function does with its arguments as a trace.

    CPython runs the function, on fake tensors: what Python decides on the way (branches on numbers, loops) is
    part of the trace, as are values that are no tensors. What it does to Python objects is done. Views and writes
    become values.

    Args:
        function: takes and returns tensors, in any nesting that ``torch.utils._pytree`` knows. Tensors that it holds
            itself, such as parameters, become inputs.
        args, kwargs: examples: tensors of the shapes, strides, dtypes and devices that the trace is for. Their values
            are not looked at.

    Returns:
        The trace, and what its inputs and outputs are.

    Raises:
        DataDependentError: Python needs a value that is known only when the program runs.
        AcquisitionError: the function does what a trace without an epilogue cannot hold: it changes metadata of an
            input, or gives one a gradient; makes a leaf; writes to inputs that share memory; transforms functions by
            ``torch.func``.

    Example:
        >>> import torch
        >>> from thunder_tracing import trace_function
        >>> def step(state, x):
        ...     state.add_(x)
        ...     return state * 2, state.t()
        >>> traced = trace_function(step, torch.zeros(2, 3), torch.ones(3))
        >>> print(traced.trace)
        def computation(a0: "float32[2, 3]", a1: "float32[3]"):
            t0 = ltorch.add(a0, a1)  # float32[2, 3]
            t1 = ltorch.mul(t0, 2)  # float32[2, 3]
            t2 = ltorch.t(t0)  # float32[3, 2]
            return (t1, t2, t0)
        >>> [w.input for w in traced.writes], [o.input for o in traced.outputs]
        ([0], [None, 0])
    """
    return _traced(FunctionTracer(function), function, args, kwargs)


def trace_function_symbolic(
    function: Callable[..., Any], args: Sequence[Any], symbolic_numbers: SymbolicNumbers
) -> TracedFunction:
    """Return what a function does with its arguments as a trace for all sizes and integers that are dynamic.

    Args:
        function: as :func:`trace_function` takes it. It gets numbers of the program for symbolic integers, and must
            hand them to functions of PyTorch by ``torch.overrides.handle_torch_function``.
        args: examples.
        symbolic_numbers: which sizes of tensors and which integers are symbolic; sizes of tensors that are not
            contiguous are not.

    Returns:
        The trace. What comparisons of symbolic numbers came to is among its constraints: it is right for the numbers
        that meet them all.

    Raises:
        (others): see :func:`trace_function`.

    Example:
        >>> import torch
        >>> from thunder_tracing import SymbolicNumbers, trace_function_symbolic
        >>> traced = trace_function_symbolic(lambda x: x * 2, [torch.ones(3, 2)], SymbolicNumbers({0: frozenset({0})}))
        >>> print(traced.trace)
        def computation(a0: "float32[i0, 2]", i0: "int"):
            t0 = ltorch.mul(a0, 2)  # float32[i0, 2]
            return (t0,)
        >>> [str(number.source) for number in traced.numbers]
        ['args[0].shape[0]']
    """
    return _traced(FunctionTracer(function, symbolic_numbers), function, tuple(args), {})


def _traced(
    tracer: FunctionTracer, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> TracedFunction:
    leaves, spec = pytree.tree_flatten((args, kwargs))

    def call(given: list[Any]) -> Any:
        args, kwargs = pytree.tree_unflatten(given, spec)
        return function(*args, **kwargs)

    with tracer.recorded(call, leaves) as result:
        results, out_spec = pytree.tree_flatten(result)
        trace, outputs, writes = tracer.traced_outputs(results)
        return TracedFunction(
            trace,
            tracer.traced_inputs(leaves),
            outputs,
            writes,
            spec,
            out_spec,
            tuple(tracer.state.guards),
            dict(tracer.rules),
            tuple(tracer.numbers),
        )
