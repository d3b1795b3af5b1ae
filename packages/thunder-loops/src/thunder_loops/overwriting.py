"""Where an output of a program may lie in the memory of an input."""

from __future__ import annotations

from thunder_loops.nest import Load, LoopProgram, Store


def may_overwrite(program: LoopProgram, output: str, source: str) -> bool:
    """Whether a program may write an output to where an input lies: no element is read once it is written.

    So it is where one nest without reductions and scans writes the output, reads each element where it writes it, and
    before, and no later nest reads the input. The input lies like the output, and no other buffer shares its memory.

    Args:
        program: what runs.
        output, source: names of buffers.

    Example:
        >>> import thunder_prims as prims
        >>> from thunder_ir import Tensor, trace_of
        >>> from thunder_loops import lower, may_overwrite
        >>> def steps(a):
        ...     return prims.exp(a), prims.flip(a, (0,))
        >>> program = lower(trace_of(steps, Tensor((2,))))
        >>> may_overwrite(program, "out0", "a0"), may_overwrite(program, "out1", "a0")
        (False, False)
        >>> may_overwrite(lower(trace_of(lambda a: prims.exp(a), Tensor((2,)))), "out0", "a0")
        True
    """
    buffers = program.buffers
    if buffers[output].shape != buffers[source].shape or buffers[output].dtype is not buffers[source].dtype:
        return False
    writing = [n for n, nest in enumerate(program.nests) if output in [s.buffer for s in nest.stores]]
    if len(writing) != 1:
        return False
    nest = program.nests[writing[0]]
    if nest.reduced:
        return False
    if any([load.buffer == source for later in program.nests[writing[0] + 1 :] for load in later.loads]):
        return False
    stores = [(p, s) for p, s in enumerate(nest.statements) if isinstance(s, Store) and s.buffer == output]
    loads = [(p, s) for p, s in enumerate(nest.statements) if isinstance(s, Load) and s.buffer == source]
    (at, store), *others = stores
    return not others and all([p < at and s.index == store.index for p, s in loads])
