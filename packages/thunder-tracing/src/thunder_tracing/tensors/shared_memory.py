"""Inputs that share memory: where a program writes to it, each is a part of one tensor that covers all of it.

That tensor has no history in autograd. The tensors that have one, those that are no views to autograd, are parts of it
with a history of their own; their views are views of them here, too.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from thunder_guards import (
    ApartInMemoryGuard,
    SameObjectGuard,
    SharedStorageGuard,
    TensorGuard,
    ToldGuard,
    metadata_of,
)
from thunder_guards.errors import AcquisitionError
from thunder_guards.memory import covers, is_dense, part_of, place_in_storage, whole_storage
from thunder_guards.sources import Source
from thunder_torch.specs import storage_key
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.histories import base_of
from thunder_tracing.tensors.storage import View, share_storage
from thunder_tracing.tensors.traced_tensor import TracedTensor

T = torch.Tensor


class SharedMemory:
    """Which inputs of a program share memory.

    Args:
        calls: the acquisition.
        written: storages to which the program writes and which several inputs share.
    """

    def __init__(self, calls: Calls, written: Collection[int]) -> None:
        self.calls = calls
        self._written = frozenset(written)
        self._inputs: dict[int, list[TracedTensor]] = {}
        self._wholes: dict[int, TracedTensor] = {}
        self._in_dtypes: dict[tuple[int, torch.dtype], TracedTensor] = {}
        self._loose: list[tuple[TracedTensor, TracedTensor]] = []

    def new(self, tensor: T, source: Source, slot: Any) -> TracedTensor:
        """Note an external tensor, which is no input yet."""
        storage = storage_key(tensor)
        if storage in self._written:
            traced = self._part(tensor, storage, source, slot)
        else:
            traced = self.calls.root(tensor, source, slot)
        self._inputs.setdefault(storage, []).append(traced)
        return traced

    def wholes(self) -> list[TracedTensor]:
        """Return what stands for whole storages."""
        return list(self._wholes.values())

    def written(self) -> frozenset[int]:
        """Return the storages that the program writes to and several inputs share, or are reached beside one.

        To make a tensor a leaf, or to detach it, counts as a write: its views require grad if it does.
        """
        changed = {storage_key(given) for stage in self.calls.stages if (given := stage.before.given) is not None}
        return frozenset(
            storage
            for storage, tensors in self._inputs.items()
            if (len(tensors) > 1 or storage in self.calls.reached)
            and storage not in self._written
            and (storage in changed or any(t._memory.version for t in tensors))
        )

    def require_apart(self) -> None:
        """If the program writes to an input, guard that inputs which do not share memory now never do."""
        for view, base in [*self._loose, *[(whole, whole) for whole in self._wholes.values()]]:
            if base._recorded:
                raise AcquisitionError(
                    f"{view.source} shares memory with an input that is written what requires grad, in a way that is "
                    "not supported; pass a clone of one of them"
                )
        self._require_bases()
        changed = any([True for _ in self.calls.stages])
        if not changed and not any(t._memory.version for group in self._inputs.values() for t in group):
            return
        sources = [group[0].source for group in self._inputs.values()]
        if len(sources) > 1:
            self.calls.external.require(ApartInMemoryGuard(*sources), "apart")

    def _require_bases(self) -> None:
        """If autograd records a write to an input, guard that views to it lie in the memory of what they view.

        ``.data`` gives a tensor other memory, and leaves the views that autograd knows of it where they are.
        """
        inputs = [t for group in self._inputs.values() for t in group]
        if not any([base_of(t)._recorded for t in inputs]):
            return
        for view in inputs:
            given, source = view.given, view.source
            if source is None or given is None or not (given.requires_grad or base_of(view)._recorded):
                continue
            if not self.calls.is_view(view):
                continue
            viewed = given._base
            if viewed is None or storage_key(viewed) != storage_key(given):
                raise AcquisitionError(
                    f"autograd takes {source} for a view of a tensor that was given other memory by .data, and the "
                    "program writes what autograd records; pass a clone of it"
                )
            base = Source(source, "attribute", "_base")
            self.calls.external.require(SharedStorageGuard(source, base), id(source), "memory of what it views")

    # --- parts of memory that is written ---------------------------------------------------------------------------

    def _part(self, tensor: T, storage: int, source: Source, slot: object) -> TracedTensor:
        """Note a tensor that shares its storage, which the program writes to, with another."""
        if tensor.is_conj() or tensor.is_neg():
            raise AcquisitionError(
                f"{source} shows conjugate or negative values of memory that the program writes to and another input "
                "shares, which is not supported; pass a clone of it"
            )
        base = tensor._base
        is_view = base is not None
        if base is not None and storage_key(base) != storage:  # it was given other memory, by .data
            base = None
        elif base is not None and tensor.requires_grad and not base.requires_grad:  # it was made a leaf
            base = None
        viewed = self.calls.known_input(base) if base is not None else None
        if base is not None and viewed is None:
            viewed = self._of_memory(base, storage, Source(source, "attribute", "_base"), None)
            self.calls.take_in(base, viewed)
        elif viewed is not None:
            guard = SameObjectGuard(Source(source, "attribute", "_base"), viewed.source)
            self.calls.external.require(guard, id(source), "_base")
        made = self._of_memory(tensor, storage, source, slot) if viewed is None else self._view(tensor, viewed, source)
        self.calls.ask(made, "_is_view", is_view, call=True)
        first = self._wholes[storage]._input.source.base
        if first is not source:
            self.calls.external.require(SharedStorageGuard(source, first), id(source), id(first), "shared storage")
        return made

    def _of_memory(self, tensor: T, storage: int, source: Source, slot: Any) -> TracedTensor:
        """Note a tensor with a history of its own."""
        whole = self._whole_in(tensor.dtype, tensor, storage, source)
        args = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset())
        if tensor.requires_grad:  # until it is written to, it is read as the input that it is
            traced: TracedTensor = self.calls.root(tensor, source, slot)
            traced._input = self.calls.within(traced._input, self._wholes[storage]._input)
        else:
            traced = self._guarded(tensor, self.calls.on_values(part_of, (whole._proxy, *args), {}), source)
        share_storage(traced, View(whole, part_of, args, {}, None, apart=True))
        if tensor.requires_grad:
            traced._seen = 0  # as an input, it is what it was before the program wrote anything
        return traced

    def _view(self, tensor: T, base: TracedTensor, source: Source) -> TracedTensor:
        """Note a tensor that is a view to autograd."""
        given = base.given
        assert given is not None
        same_dtype = tensor.dtype == given.dtype
        default = torch._C._autograd._get_creation_meta(tensor) == torch._C._autograd.CreationMeta.DEFAULT
        args = (tuple(tensor.shape), tensor.stride(), int(tensor.storage_offset() - given.storage_offset()))
        if not (same_dtype and is_dense(given) and default and covers(given.numel(), *args)):
            if tensor.requires_grad:
                raise AcquisitionError(
                    f"{source} requires grad, shares memory that the program writes to with another input, and is a "
                    "view that is not supported there; pass a clone of it"
                )
            made = self._of_memory(tensor, storage_key(tensor), source, None)
            self._loose += [(made, base)] if same_dtype else []
            return made
        connected = not (tensor.requires_grad and tensor.is_leaf)  # or it was made where autograd recorded nothing
        with torch.set_grad_enabled(connected):
            proxy = self.calls.on_values(part_of, (self.calls.value(base), *args), {})
        traced = self._guarded(tensor, proxy, source)
        share_storage(traced, View(base, part_of, args, {}, None, tracked=connected))
        if tensor.requires_grad:
            self.calls.ask(traced, "is_leaf", not connected)
        return traced

    def _guarded(self, tensor: T, proxy: Any, source: Source) -> TracedTensor:
        require = self.calls.external.require
        require(TensorGuard(source, metadata_of(tensor)), id(source), "metadata")
        require(ToldGuard(source, place_in_storage, place_in_storage(tensor)), id(source), "place in storage")
        traced: TracedTensor = self.calls.new_traced(proxy, type(tensor))
        traced._argument, traced._given = source, tensor
        return traced

    def _whole_in(self, dtype: torch.dtype, tensor: T, storage: int, source: Source) -> TracedTensor:
        """Return what stands for a whole storage, seen as elements of a dtype."""
        whole = self._wholes.get(storage)
        if whole is None:
            covering = Source(source, "whole storage", None)
            whole = self._wholes[storage] = self.calls.root(whole_storage(tensor), covering, None)
        if dtype == whole._input.example.dtype:
            return whole
        seen = self._in_dtypes.get((storage, dtype))
        if seen is None:
            seen = self.calls.new_traced(self.calls.on_values(T.view, (whole._proxy, dtype), {}))
            share_storage(seen, View(whole, T.view, (dtype,), {}, None))
            self._in_dtypes[storage, dtype] = seen
        return seen
