"""What a program writes while it is acquired: to the values of tensors, to their metadata, to their memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from thunder_guards.errors import AcquisitionError
from thunder_guards.memory import span_in_storage
from thunder_ir import TensorProxy, UnknownNumberError, flat_proxies
from thunder_ir.trees import flatten
from thunder_torch import Mutation
from thunder_torch.convert import to_torch_device
from thunder_torch.inplace import WithOut, copy, out_may_be_read
from thunder_torch.names import name_of
from thunder_torch.places import setitem
from thunder_torch.unknown_sizes import has_unknown_sizes
from thunder_tracing.tensors._metadata_writes import MetadataWrite
from thunder_tracing.tensors._view_writes import (
    APART,
    EXPANDING,
    OVERLAPPING,
    TOLERANT,
    Chain,
    check_laid_apart,
    check_overlap,
    laid_out,
    overlap_wrongly,
    overlaps,
    scatter_into_parent,
)
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.histories import base_of, check_reads, check_written, was_parted
from thunder_tracing.tensors.leaves import Leaves
from thunder_tracing.tensors.overwrites import record_overwritten, record_overwritten_whole
from thunder_tracing.tensors.storage import (
    View,
    count_metadata_write,
    current_value,
    is_out_of_reach,
    place_is_known,
    replace_in_storage,
    share_storage,
    write,
)
from thunder_tracing.tensors.tensor_classes import check_class
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor


class WriteCalls(Calls):
    """Records torch functions called on traced tensors, those that write among them."""

    leaves: Leaves

    def write_call(self, mutation: Mutation) -> Any:
        """Do what a function that writes does: compute the values, then make them what its targets hold."""
        self.changes += 1
        targets = [self.traced(t) for t in mutation.targets]
        if mutation.resizes:
            self.check_out(mutation, targets)
        in_part = mutation.function is setitem and not _looks_up(mutation.args[1])
        for target in targets:
            try:
                self.check_writable(target, in_part)
            except RuntimeError:
                if mutation.function is setitem:  # what the index is refused for comes first
                    self.record(T.__getitem__, mutation.args[:2], {})
                raise
            if not overlaps(self.value(target)):
                continue
            if mutation.function is copy and mutation.args[1] is target:
                return target
            if mutation.function in TOLERANT or mutation.written is not None:
                return self.write_to_expanded(mutation, target)
        output = self.on_values(mutation.function, self.values(mutation.args), self.values(mutation.kwargs))
        if mutation.resizes and [v.dtype for v in mutation.values(output)] != [t._proxy.dtype for t in targets]:
            output = self.computed_for(mutation, targets)
        check_reads(mutation.function, output, (*mutation.args, *mutation.kwargs.values()))
        values = mutation.values(output)
        if (
            mutation.written is not None
        ):  # what an operator writes by itself, such as running statistics, has no derivative
            values = tuple(self.on_values(torch.Tensor.detach, (v,), {}) for v in values)
        for target, value in zip(targets, values, strict=True):
            if mutation.resizes and tuple(value.shape) != tuple(self.value(target).shape):
                self.resize(mutation, target, value)
            else:
                self.check_sources(mutation, target)
                held = self.value(target)
                if value.requires_grad and held.requires_grad and self.records and _writes_all(mutation):
                    value = record_overwritten_whole(self.builder, held, value)
                self.assign(target, value, mutation.written is not None)
                target._has_node |= value.requires_grad and self.records and not in_part
        if not mutation.returns_targets:
            return self.wrapped(mutation.result(output), ()) if mutation.written is not None else None
        return targets[0] if mutation.written is None else tuple(targets)

    def metadata_write(
        self, method: Any, view: Any, target: TracedTensor, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> TracedTensor:
        """Do what ``t_`` and its like do."""
        tracked = self.records
        self.check_writable(target)
        requires_grad = self.value(target).requires_grad
        check_written(target, requires_grad)
        if requires_grad and not tracked or target._leaf is not None:
            raise AcquisitionError(
                f"{method.__name__}() on a tensor that requires grad, where autograd does not see it, is not "
                f"supported; use {view.__name__}()"
            )
        self.change(target, MetadataWrite(method, args, kwargs, tracked), view, args, kwargs)
        count_metadata_write(target)
        return target

    def change(
        self,
        target: TracedTensor,
        write: MetadataWrite,
        view: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Make a tensor a view of what it was.

        Args:
            target: the tensor.
            write: what does that to the caller's tensor.
            view, args, kwargs: the call that returns such a view.
        """
        before = self._take_place(target, write)
        proxy = self.on_values(view, (before._proxy, *args), dict(kwargs))
        share_storage(target, View(before, view, args, dict(kwargs), None, write.tracked, in_place=True))
        target._proxy = proxy
        target._recorded = target._recorded and not target._viewed_as.cuts

    def exchange_memory(self, target: TracedTensor, other: TracedTensor) -> None:
        """Do what ``target.data = other`` does: a tensor gets the memory of another, and keeps its history."""
        held, new = self.value(target), self.value(other)
        if self.levels.stack:
            raise AcquisitionError("assigning .data within a torch.func transform is not supported; return the tensor")
        if target._proxy.dtype is not new.dtype or held.device != new.device:
            raise AcquisitionError(
                "assigning .data of another dtype or on another device inside of a compiled program is not supported; "
                "do that outside"
            )
        if held.requires_grad and tuple(held.shape) != tuple(new.shape):
            raise AcquisitionError(
                "assigning .data of another shape to a tensor that requires grad is not supported inside of a compiled "
                "program; do that outside"
            )
        if held.requires_grad and (self.is_view(target) or base_of(target) is not target):
            raise AcquisitionError(
                "assigning .data to a view that requires grad is not supported inside of a compiled program: PyTorch "
                "takes it for a view of what it shares no memory with"
            )
        source = self.new_traced(self.on_values(T.detach, (new,), {}))
        share_storage(source, View(other, T.detach, (), {}, None))
        self.unseen.tensors.add(held.name)
        target._past = self._take_place(target, source)
        target._recorded = False
        share_storage(target, View(source, T.detach, (), {}, None, uncounted=True))
        target._versions = target._past._versions
        target._made = target._versions.count
        target._proxy = self.overwritten(held, source._proxy, False) if held.requires_grad else source._proxy

    def _take_place(self, target: TracedTensor, change: Any) -> TracedTensor:
        """Return a stand-in for a tensor as it was before a change, which views of it view from now on."""
        self.changes += 1
        before = self.new_traced(self.value(target), target._stands_for)
        before._first, before._leaf, before._recorded = target._first, target._leaf, target._recorded
        before._became = target
        replace_in_storage(target, before)
        if target.source is not None:
            self.stages.add(before, target, change)
        return before

    def resize(self, mutation: Mutation, target: TracedTensor, value: TensorProxy) -> None:
        """Do what ``out=`` does to a tensor of another shape: most operations that read it, too, cannot resize it."""
        read = [a for a in flatten((mutation.args, mutation.kwargs))[0] if isinstance(a, TracedTensor)]
        is_read = any([a._memory is target._memory for a in read])
        if is_read or target._memory.outside or target._viewed_as is not None or target._memory.views:
            raise AcquisitionError(
                f"out= of shape {tuple(self.value(target).shape)} for a result of shape {tuple(value.shape)} resizes "
                "a tensor that is read or seen by others too, which is not supported; pass one of the right shape, or "
                "use what is returned"
            )
        if value.dtype is not target._proxy.dtype:
            value = self.on_values(torch.Tensor.to, (value, target_dtype(target)), {})
        target._proxy = target._first = value

    def assign(self, target: TracedTensor, value: TensorProxy, by_operator: bool = False) -> None:
        """Make ``value`` what ``target`` holds, converted to its dtype and shape as an in-place operation does."""
        held = current_value(target, self)
        if value.dtype is not held.dtype:
            _check_cast(value, held)
            value = self.on_values(torch.Tensor.to, (value, target_dtype(target)), {})
        value = self.laid_out_as(held, self.shaped_as(held, value))
        check_written(target, held.requires_grad or value.requires_grad)
        check_overlap(held)
        if overlaps(target._memory.root._first):
            raise AcquisitionError(
                f"a write to {target._memory.root.source or 'a tensor'}, an expanded tensor in which several elements "
                "lie in one place, is not supported; write to the tensor that was expanded, or to a clone()"
            )
        if self.records and (held.requires_grad or value.requires_grad) and was_parted(target):
            raise AcquisitionError(
                "a write to a tensor that was given other memory by .data, or to a view that it had before, is not "
                "supported where autograd records it: PyTorch takes the view for one of the tensor still"
            )
        self.view_directly(target)
        if not OVERLAPPING.isdisjoint(functions_of(target)):
            here = self.layouts.fake(target)
            check_laid_apart(here.shape, here.stride())
        if self.levels.stack:
            self.levels.check_write(target, held, value, by_operator)
        write(target, value, self, self.records)

    def check_sources(self, mutation: Mutation, target: TracedTensor) -> None:
        """Refuse, as PyTorch does, to compute what is written from a part of the memory that is written to."""
        read = [a for a in (*mutation.args, *mutation.kwargs.values()) if isinstance(a, TracedTensor)]
        looks_up = mutation.function is setitem and _looks_up(mutation.args[1])
        apart = mutation.function in APART or looks_up
        if read and read[0] is target and not mutation.resizes:
            del read[0]
        read = [a for a in read if not looks_up or a is not mutation.args[1] or a._proxy.dtype.is_integer]  # no mask
        shared = [a for a in read if a._memory is target._memory and (apart or a is not target)]
        if not shared or not all(map(place_is_known, (target, *shared))):
            return
        written = self.layouts.fake(target)
        if mutation.function is setitem and not looks_up:
            part = self.record(T.__getitem__, mutation.args[:2], {})
            if part._memory is not target._memory or not place_is_known(part):
                return
            written = self.layouts.fake(part)
        if any([overlap_wrongly(written, self.layouts.fake(a), apart) for a in shared]):
            raise RuntimeError(
                "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single "
                "memory location. Please clone() the tensor before performing the operation."
            )

    def shaped_as(self, held: TensorProxy, value: TensorProxy) -> TensorProxy:
        """Return ``value``, which is to have the shape of ``held``: where only the run tells that, a copy checks it."""
        try:
            differs = tuple(value.shape) != tuple(held.shape)
        except UnknownNumberError:
            copied: TensorProxy = self.on_values(copy, (held, value), {})
            return self.on_values(T.expand, (copied, tuple(held.shape)), {})  # type: ignore[no-any-return]
        if differs:
            raise RuntimeError(
                f"output with shape {list(held.shape)} doesn't match the broadcast shape {list(value.shape)}"
            )
        return value

    def laid_out_as(self, held: TensorProxy, value: TensorProxy) -> TensorProxy:
        """Return ``value`` in the layout of ``held``, which a write does not change."""
        if value.strides == held.strides or value.strides is None or held.strides is None:
            return value
        laid: TensorProxy = self.on_values(copy, (held, value), {})
        if has_unknown_sizes([held]):  # strides follow from them, and have no names
            return laid
        return laid if laid.strides == held.strides else self.on_values(laid_out, (value, held.strides), {})

    def check_out(self, mutation: Mutation, targets: Sequence[TracedTensor]) -> None:
        """Refuse, as PyTorch does, derivatives of calls with ``out=``, and results where kernels may still read."""
        given = flat_proxies(self.values((mutation.args, mutation.kwargs, mutation.targets)))
        if self.records and any([p.requires_grad for p in given if isinstance(p, TensorProxy)]):
            raise RuntimeError(
                f"{name_of(mutation.function)}(): functions with out=... arguments don't support automatic "
                "differentiation, but one of the arguments requires grad."
            )
        first, others = out_may_be_read(mutation.function)
        for i, read in enumerate(flatten((mutation.args, mutation.kwargs))[0]):
            if (first if i == 0 else others) or not isinstance(read, TracedTensor):
                continue
            if any([target._memory is read._memory and not self.lie_apart(target, read) for target in targets]):
                raise AcquisitionError(
                    f"{name_of(mutation.function)}() with an out= in the memory of what it reads, of which PyTorch's "
                    "kernels make what they make, is not supported; give it new memory, and copy_() that"
                )

    def lie_apart(self, one: TracedTensor, other: TracedTensor) -> bool:
        """Whether tensors of one memory are known to have no element in common."""
        if not (place_is_known(one) and place_is_known(other)):
            return False
        (a, b), (c, d) = [span_in_storage(self.layouts.fake(t)) for t in (one, other)]
        return b <= c or d <= a

    def computed_for(self, mutation: Mutation, targets: Sequence[TracedTensor]) -> Any:
        """Return the results of a call with ``out=`` of other dtypes, in which PyTorch may compute, or which it may
        refuse."""
        dtypes, device = tuple(map(target_dtype, targets)), to_torch_device(targets[0]._proxy.device)
        function = WithOut(mutation.function, dtypes, device, mutation.written is not None)
        return self.on_values(function, self.values(mutation.args), self.values(mutation.kwargs))

    def write_to_expanded(self, mutation: Mutation, target: TracedTensor) -> Any:
        """Do what PyTorch allows of writes to tensors in which several elements lie in one place."""
        if mutation.function in (torch.zeros_like, torch.full_like):  # one number, in each place once
            strides = self.value(target).strides or ()
            places = tuple([slice(0, 1) if s == 0 else slice(None) for s in strides])
            part = self.record(T.__getitem__, (target, places), {})
            self.write_call(replace(mutation, args=(part, *mutation.args[1:]), targets=(part,)))
            return target
        part = None
        if mutation.function is setitem:
            part = self.record(T.__getitem__, mutation.args[:2], {})
        if part is None or part._memory is not target._memory:
            raise AcquisitionError(
                f"a write by {name_of(mutation.function)}() to an expanded tensor, in which several elements lie in "
                "one place, is not supported; write to the tensor that was expanded, or to a clone()"
            )
        check_overlap(self.value(part))
        self.write_call(Mutation(copy, (part, mutation.args[2]), {}, (part,)))
        return None

    def view_directly(self, target: TracedTensor) -> None:
        """Make a part of a view whose elements may lie in one place a view of the tensor, as it is to be written."""
        steps: list[View] = []
        base = target
        while base._viewed_as is not None and not base._viewed_as.detaches:
            steps.append(base._viewed_as)
            base = base._viewed_as.parent
        one_dtype = all([view.parent._proxy.dtype is target._proxy.dtype for view in steps])
        if (
            one_dtype
            and not (EXPANDING | OVERLAPPING).isdisjoint([v.function for v in steps[1:]])
            and place_is_known(target)
        ):
            chain = Chain(tuple([view.step for view in reversed(steps)]))
            target._viewed_as = View(base, chain, (), {}, None, target._viewed_as.tracked)

    def overwritten(self, old: TensorProxy, new: TensorProxy, tracked: bool) -> TensorProxy:
        """Return what a tensor that requires grad holds after a value that does not was written to it."""
        return record_overwritten(self.builder, old, new, tracked)

    def scatter(self, view: View, parent: TensorProxy, value: TensorProxy) -> TensorProxy:
        """Return the parent's value after ``value`` was written to its view, in whatever layout that is."""
        made = self.producers().get(value.name)
        if made is not None and made.symbol.origin is laid_out:
            value = made.args[0]
        return self.laid_out_as(parent, scatter_into_parent(self.on_values, view, parent, value))

    def check_writable(self, target: TracedTensor, in_part: bool = False) -> None:
        """Refuse what autograd refuses: writes to leaves, and to views that it takes for leaves as nothing read them
        since their base got a history; not to new views of these (``in_part``)."""
        if target._memory.lent:
            raise AcquisitionError(
                "a write to a tensor that may share memory with a part of another one, as what from_local(), "
                "to_local() and redistribute() return does; write to a clone(), or use the out-of-place operation"
            )
        if is_out_of_reach(target):
            raise RuntimeError(
                "Inplace update to inference tensor outside InferenceMode is not allowed; write to a clone()"
            )
        if not self.records or not self.requires_grad(target):
            return
        root = base_of(target)
        if not in_part and self.leaves.is_taken_for_leaf(target):
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if root._hooked:
            raise RuntimeError(
                "what goes into or comes out of a module with full backward hooks is a view made by a custom function "
                "and is being modified inplace, which PyTorch forbids; use the out-of-place operation"
            )
        while root._became is not None and root._became._leaf is not None:
            root = root._became
        became_leaf = self.stages.was_detached(root)
        of_its_own = root.source is not None or root._leaf is not None or root._variable
        if became_leaf or of_its_own and (self.leaves.is_leaf(root) or self.leaves.views_a_leaf(root)):
            what = "a leaf Variable" if root is target else "a view of a leaf Variable"
            raise RuntimeError(f"{what} that requires grad is being used in an in-place operation.")

    def as_class(self, cls: type, data: torch.Tensor, require_grad: bool = False) -> Any:
        """Do what ``torch.Tensor._make_subclass`` does: a parameter of the memory of ``data``, say."""
        if issubclass(cls, UninitializedTensorMixin):
            raise AcquisitionError("a lazy module gets its parameters when it is called; make it outside")
        check_class(cls, "what the program makes")
        with torch._C.DisableTorchFunction():
            self.changes += 1
            parent = self.traced(data)
            with torch.no_grad():
                made = self.new_traced(self.on_values(T.detach, (self.value(parent),), {}), cls)
                share_storage(made, View(parent, T.detach, (), {}, None))
            if require_grad:
                self.leaves.begin(made)
            return made

    def as_subclass(self, tensor: torch.Tensor, cls: type) -> TracedTensor:
        """Do what ``torch.Tensor.as_subclass`` does."""
        check_class(cls, "what the program makes")
        with torch._C.DisableTorchFunction():
            made: TracedTensor = self(T.view, (tensor, tuple(self.value(tensor).shape)), {})
            made._stands_for, self.any_class = cls, True
            return made


def _writes_all(mutation: Mutation) -> bool:
    """Whether nothing is left of what the target held, though it was given to the function that computes the values."""
    if mutation.function is not setitem:
        return mutation.function is copy
    key = mutation.args[1]
    keys = key if key.__class__ is tuple else (key,)
    return all([k is ... or k.__class__ is slice and (k.start is k.stop is k.step is None) for k in keys])


def _looks_up(key: object) -> bool:
    """Whether an index has parts that say where to look for each element."""
    return any(isinstance(k, (torch.Tensor, list)) for k in (key if isinstance(key, tuple) else (key,)))


def functions_of(tensor: TracedTensor) -> list[Any]:
    """Return the functions through which a tensor is a view."""
    found: list[Any] = []
    view = tensor._viewed_as
    while view is not None:
        found += [s.function for s in view.function.steps] if isinstance(view.function, Chain) else [view.function]
        view = view.parent._viewed_as
    return found


def target_dtype(target: TracedTensor) -> torch.dtype:
    """Return the torch dtype of a traced tensor."""
    with torch._C.DisableTorchFunctionSubclass():
        return target.dtype


def _check_cast(value: TensorProxy, held: TensorProxy) -> None:
    if value.dtype.kind > held.dtype.kind:
        names = {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int", "bool8": "Bool"}
        a, b = names.get(value.dtype.name, value.dtype.name), names.get(held.dtype.name, held.dtype.name)
        raise RuntimeError(f"result type {a} can't be cast to the desired output type {b}")
