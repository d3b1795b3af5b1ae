"""Two modules of a class, or two calls of them, compared: which objects of the one are the other's counterparts."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import torch

from thunder_frontend._external_state.guarded_state import GuardedState
from thunder_guards import metadata_of, same_value
from thunder_guards.kinds import is_value
from thunder_guards.sources import Source
from thunder_ir import NumberProxy, Proxy, TensorProxy, is_unknown
from thunder_ir.unknown import surely_equal
from thunder_tracing.tensors.layouts import Layouts
from thunder_tracing.tensors.traced_tensor import TracedTensor

TABLES = (
    "_parameters", "_buffers", "_modules", "_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
    "_backward_pre_hooks",
)  # fmt: skip
"""What modules keep their parts in: read without going through an attribute."""

PAIRED = frozenset({list, tuple, dict, OrderedDict})
"""Classes of containers that are compared by what the program reads of them, and which have no attributes."""


class Unlike(Exception):
    """Two modules, or two calls, differ in something that a program depends on."""


class Counterparts:
    """What of a second module, and of a second call, is in the place of what of the first.

    Args:
        external: what is outside.
        layouts: tells how tensors with symbolic sizes will be laid out.

    Attributes:
        of: the counterpart of an object, by its ``id``.
        given: the counterpart of a traced tensor among the arguments, by its ``id``.
        names: the proxies of the second call, by the names of the first's.
        reads: the external tensors that were compared.
    """

    def __init__(self, external: GuardedState, layouts: Layouts) -> None:
        self._external = external
        self._layouts = layouts
        self.of: dict[int, Any] = {}
        self._taken: dict[int, Any] = {}
        self.given: dict[int, TracedTensor] = {}
        self.names: dict[str, Proxy] = {}
        self.reads: list[torch.Tensor] = []

    def is_common(self, value: object) -> bool:
        """Whether both modules have the same object there: then what is known of it is known already."""
        return self.of.get(id(value), value) is value

    def pair(self, first: object, second: object) -> None:
        """Take one object for the counterpart of another: modules, containers and tensors."""
        of, taken = self.of, id(second)
        known = of.get(id(first), self)
        if known is not self:
            require(known is second)
            return
        if type(first) is not type(second) or taken in self._taken:
            raise Unlike
        if first is not second and self._external.mutations.touches(second):
            raise Unlike
        of[id(first)], self._taken[taken] = second, first
        if first.__class__ in PAIRED:
            return
        own = getattr(first, "__dict__", None)
        if isinstance(own, dict):
            other = second.__dict__
            of[id(own)], self._taken[id(other)] = other, own
            if isinstance(first, torch.nn.Module):
                require(not own.get("_compiled_call_impl") and not other.get("_compiled_call_impl"))
                for table in TABLES:
                    if table in own and table in other:
                        self.pair(own[table], other[table])

    def paired(self, container: object, owner: Source) -> Any:
        """Return the counterpart of what keeps what is found on an object, ``None`` if both modules have the same."""
        if not self.is_common(container):
            return self.of[id(container)]
        require(not owner.is_held or self.is_common(owner.held))
        return None

    def match(self, first: object, second: object) -> None:
        """Compare what was read of the first module with what is in its place in the second."""
        if isinstance(first, torch.Tensor):
            self._match_tensors(first, second)
        elif first.__class__ in PAIRED or isinstance(first, torch.nn.Module):
            self.pair(first, second)
        elif is_value(first):
            require(same_value(first, second))
        elif first is second:
            self.pair(first, second)
        else:
            raise Unlike

    def _match_tensors(self, first: torch.Tensor, second: Any) -> None:
        if first is second:
            self.pair(first, second)
            self.reads.append(first)
            return
        require(isinstance(second, torch.Tensor) and not isinstance(second, TracedTensor))
        if id(first) not in self.of:
            with torch._C.DisableTorchFunction():
                require(metadata_of(first) == metadata_of(second))  # sizes that are dynamic have a mark
            self._match_attributes(first.__dict__, second.__dict__)
            self.reads.append(first)
        self.pair(first, second)

    def _match_attributes(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        require(list(first) == list(second))
        for name, value in first.items():
            require(value is second[name] or is_value(value) and same_value(value, second[name]))

    def match_arguments(self, first: Any, second: Any) -> None:
        """Compare what the two calls were given."""
        cls = first.__class__
        if isinstance(first, TracedTensor):
            self._match_given(first, second)
        elif isinstance(first, NumberProxy):
            require(first is second)
        elif is_value(first):
            require(same_value(first, second))
        elif cls is tuple or cls is dict:
            require(second.__class__ is cls and len(first) == len(second))
            if cls is dict:
                require(list(first) == list(second))
                first, second = first.values(), second.values()
            for a, b in zip(first, second, strict=True):
                self.match_arguments(a, b)
        else:
            require(first is second and self._external.is_held(first))

    def _match_given(self, first: TracedTensor, second: Any) -> None:
        if id(first) in self.given:
            require(self.given[id(first)] is second)
            return
        require(isinstance(second, TracedTensor) and all(t is not second for t in self.given.values()))
        if first is not second:
            a, b = first._proxy, second._proxy
            require(first.source is None and second.source is None)
            require(first._leaf is None and second._leaf is None)
            require(first._stands_for is second._stands_for and not first.attributes() and not second.attributes())
            require(first._memory.outside == second._memory.outside and _same_metadata(a, b))
            require(self._same_strides(first, second))
            require((first._viewed_as is None) == (second._viewed_as is None))
        for tensor in (first, second):
            require(tensor._seen == tensor._memory.version and tensor._made == tensor._versions.count)
        self.given[id(first)] = second
        self.names[first._proxy.name] = second._proxy

    def _same_strides(self, first: TracedTensor, second: TracedTensor) -> bool:
        a, b = first._proxy, second._proxy
        if a.strides is not None or b.strides is not None or any([is_unknown(d) for d in a.shape]):
            return a.strides is not None and surely_equal(a.strides, b.strides)
        return self._layouts.strides(first) == self._layouts.strides(second)


def require(same: bool) -> None:
    """Go on only if two things are the same.

    Raises:
        Unlike: they are not.
    """
    if not same:
        raise Unlike


def _same_metadata(a: TensorProxy, b: TensorProxy) -> bool:
    return (
        len(a.shape) == len(b.shape)
        and all(map(_same_size, a.shape, b.shape))
        and a.dtype is b.dtype
        and a.device == b.device
        and a.requires_grad == b.requires_grad
    )


def _same_size(a: object, b: object) -> bool:
    """Whether two sizes are the same in every call; to compare symbolic ones would demand it of all calls."""
    if a is b or (a.__class__ is int and b.__class__ is int):
        return bool(a == b)
    return is_unknown(a) and is_unknown(b) and surely_equal(a, b)
