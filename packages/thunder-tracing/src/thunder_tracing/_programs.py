"""``trace_program``: a function of flat arguments, run by CPython on traced tensors, as a program with its effects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from thunder_guards import ArgumentsGuard, EnvironmentGuard, Program
from thunder_ir import substitute
from thunder_tracing._function_tracer import FunctionTracer, SymbolicNumbers


def trace_program(
    function: Callable[..., Any], args: Sequence[Any], symbolic_numbers: SymbolicNumbers | None = None
) -> Program:
    """Return a call of a function as a program: with guards, and with effects that :func:`trace_function` refuses.

    Among these are changed shapes and histories of arguments, arguments that share memory which the function writes
    to, and leaves that it makes. CPython runs the function on fake tensors, once more where arguments share
    memory that it writes to.

    Args:
        function: takes tensors and objects, returns tensors in any nesting. It gets numbers of the program for symbolic
            integers. Tensors that it holds itself become inputs.
        args: examples, like those that the program is for.
        symbolic_numbers: which sizes of tensors and which integers are dynamic; ``None`` for none.

    Returns:
        The program. Its inputs are the tensors among the arguments, each once and whether they are read or not, then
        those that the function holds itself.

    Raises:
        DataDependentError: Python needs a value that is known only when the program runs.
        AcquisitionError: the function does what no program holds.

    Example:
        >>> import torch
        >>> from thunder_tracing import trace_program
        >>> program = trace_program(lambda x: x.t_() * 2, [torch.ones(2, 3)])
        >>> print(program.computation)
        def computation(a0: "float32[2, 3]"):
            t0 = ltorch.t(a0)  # float32[3, 2]
            t1 = ltorch.mul(t0, 2)  # float32[3, 2]
            return (t1,)
        >>> [effect.kind for effect in program.effects]
        ['metadata']
    """
    program, written = _attempt(function, tuple(args), symbolic_numbers, ())
    return _attempt(function, tuple(args), symbolic_numbers, written)[0] if written else program


def _attempt(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    symbolic_numbers: SymbolicNumbers | None,
    written: Collection[int],
) -> tuple[Program, Collection[int]]:
    """Return the program, and the storages that it writes to and which several inputs share.

    Args:
        function, args, symbolic_numbers: see :func:`trace_program`.
        written: such storages, as far as they are known.
    """
    now, arguments = EnvironmentGuard(), ArgumentsGuard(args, {})
    tracer = FunctionTracer(function, symbolic_numbers, written)
    with tracer.recorded(lambda given: function(*given), args) as result:
        computation, outcome = tracer.finish(result)
        computation, renamed = tracer.without_gradients(computation)
        program = Program(
            tuple(tracer.inputs),
            tuple(tracer.state.guards),
            now,
            arguments,
            computation,
            substitute(outcome.result, renamed),
            tuple(outcome.effects),
            dict(tracer.rules),
            tuple(tracer.numbers),
            unseen=tracer.unseen,
        )
        return program, tracer.shared.written()
