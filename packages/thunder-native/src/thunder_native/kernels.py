"""The rows of calls of kernels: native code makes them where tensors lie as before, and Python where not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import torch

from thunder_executors import Region
from thunder_executors_llvm import executor as llvm_executor
from thunder_executors_llvm import runner as llvm
from thunder_executors_llvm import support
from thunder_executors_llvm.compiler import host
from thunder_executors_llvm.memo import Memo, structure
from thunder_ir import BoundSymbol, TensorProxy, dtypes, trace_of, value_of
from thunder_native.layout import Layout, layout
from thunder_native.schema import dtype_word
from thunder_native.table import CannotExpress, Table, Word, Words
from thunder_torch.convert import to_torch_dtype

LAYOUTS = 16
"""How many ways in which its inputs lie a call tries, those met last."""


class Elsewhere:
    """Makes a call in Python, for tensors that lie in memory in a way that native code does not know.

    Args:
        run: runs the kernels.
        is_number: of each input, whether it is an integer.
        known: the keys of the layouts that native code knows.
    """

    def __init__(self, run: llvm.Runner, is_number: Sequence[bool], known: frozenset[Any]) -> None:
        self.run = run
        self.is_number = is_number
        self.known = known
        self.notice: Callable[[], None] = _nobody

    def __call__(self, tensors: list[torch.Tensor], numbers: list[int]) -> list[torch.Tensor]:
        """Return the outputs; none where the call failed. Who makes native code hears of layouts that come again."""
        prepared = self.run.prepared
        last = list(prepared)[-1:]  # at once: other threads prepare calls, too
        ordered = iter(tensors), iter(numbers)
        try:
            made = list(self.run(*[next(ordered[n]) for n in self.is_number]))
        except Exception:  # the region's text raises it again, at the user's line
            return []
        if list(prepared)[-1:] == last and not prepared.keys() <= self.known:
            self.notice()
        return made


def _nobody() -> None:
    """Hear of it."""


def fused(table: Table, bound: BoundSymbol) -> None:
    """A call of fused kernels, on memory that native code asks for.

    Raises:
        CannotExpress: they take other numbers than integers of 64 bits, or this process has no native code.
    """
    run = bound.symbol.implementation
    assert isinstance(run, llvm.Runner), "others have rows of their own"
    is_number = [not isinstance(a, TensorProxy) for a in bound.args]
    for buffer in run.program.inputs:
        if buffer.is_number and buffer.dtype is not dtypes.int64:
            raise CannotExpress(f"{buffer.name} is no integer of 64 bits in its kernels")
    lies = layout()
    if not isinstance(lies, Layout):
        raise CannotExpress(lies)
    tensors = [a for a in bound.args if isinstance(a, TensorProxy)]
    found = dict(islice([item for item in reversed(list(run.prepared.items())) if _may_be(item[0], tensors)], LAYOUTS))
    elsewhere = Elsewhere(run, is_number, frozenset(run.prepared))
    functions = (
        torch._C._aoti.alloc_tensors_by_stealing_from_void_ptrs,
        elsewhere,
        torch._C._aoti.unsafe_alloc_void_ptrs_from_tensors,
    )
    table.memory += [found, functions, elsewhere]
    table.asks = True  # Python, which may make the call, and which may collect garbage then, finds autograd as it was
    layouts = Words((len(found), *[_words(key, prepared, run) for key, prepared in found.items()]))
    inputs: list[Word] = [word for n, a in zip(is_number, bound.args, strict=True) for word in (int(n), a.name)]
    table.step(
        "fused", layouts, support.loaded(host())["launch"], lies.keys, lies.plain, lies.inference, len(is_number),
        len(bound.outputs), *map(id, functions), *inputs, *[p.name for p in bound.outputs],
    )  # fmt: skip


_RUNNERS: Memo[llvm.Runner] = Memo(256)


def by_kernel(table: Table, bound: BoundSymbol, compute: Callable[..., TensorProxy], *tensors: TensorProxy) -> None:
    """A call that a kernel makes, with the same bits; tensors are expected to lie in rows.

    Args:
        table: what is appended to.
        bound: the call, which returns one tensor.
        compute: what it computes, in calls of prims.
        tensors: which it reads, as ``compute`` takes them.

    Raises:
        CannotExpress: as :func:`fused` does.
    """
    trace = trace_of(compute, *tensors)
    read = tuple([p for p in trace.inputs if isinstance(p, TensorProxy)])  # symbolic sizes are read off these
    region = Region(trace.bound_symbols, read, tuple(trace.outputs))
    key = structure(region.bound_symbols, region.outputs)
    run = _RUNNERS.get(key, lambda: _prepared(llvm_executor.runner(region, compute.__name__), tensors))
    fused(table, bound.replace(symbol=replace(bound.symbol, implementation=run), args=tensors, kwargs={}))


def _prepared(run: llvm.Runner, tensors: Sequence[TensorProxy]) -> llvm.Runner:
    """Return what runs a region once it has run, on zeros."""
    run(*[torch.zeros([value_of(size) for size in t.shape], dtype=to_torch_dtype(t.dtype)) for t in tensors])
    return run


def _may_be(key: Sequence[Any], tensors: Sequence[TensorProxy]) -> bool:
    """Whether tensors can lie as a key says: shape and strides of each, and no place to overwrite."""
    if len(key) != 2 * len(tensors):
        return False
    shapes = zip(key[::2], tensors, strict=True)
    return all([size == d for shape, t in shapes for size, d in zip(shape, t.shape, strict=True) if d.__class__ is int])


def _words(key: Sequence[Any], prepared: llvm.Prepared, run: llvm.Runner) -> Words:
    """Return the words of one layout, as :mod:`thunder_native.machine_kernels` reads them."""
    lying: list[Word] = []
    for shape, strides in zip(key[::2], key[1::2], strict=True):
        lying += (len(shape), *shape, *strides)
    made: list[Word] = []
    for shape, strides, dtype in prepared.made:
        made += (dtype_word(dtype), len(shape), *shape, *strides)
    steps: list[Word] = []
    for step in (*prepared.checks, *prepared.steps):
        steps += (step.kernel, step.address, step.tasks, step.threads, len(step.buffers), *step.buffers)
    checks = len(run.program.checks) if prepared.checks else 0
    counts = len(prepared.checks), len(prepared.steps)
    return Words((Words(tuple(lying)), len(prepared.made), checks, Words(tuple(made)), *counts, Words(tuple(steps))))
