"""How traced tensors will be laid out: their strides, and what shares whose memory."""

from __future__ import annotations

from typing import Any

import torch

from thunder_ir import TensorProxy
from thunder_torch import viewed
from thunder_torch.convert import fake_of
from thunder_torch.only_views import is_only_view, laid_out, lays_out
from thunder_torch.specs import TensorSpec, storage_key
from thunder_torch.unknown_sizes import rests_on_unknown
from thunder_tracing.tensors.calls import Calls
from thunder_tracing.tensors.fake_tensors import FakeTensors, outside_inference_mode
from thunder_tracing.tensors.storage import View
from thunder_tracing.tensors.traced_tensor import TracedTensor


class Layouts:
    """Tells how tensors will be laid out.

    Args:
        calls: the acquisition.
        fakes: of the values that are recorded.
    """

    def __init__(self, calls: Calls, fakes: FakeTensors) -> None:
        self._calls = calls
        self._fakes = fakes
        self._of_views: dict[int, tuple[TracedTensor, View, torch.Tensor]] = {}

    def strides(self, tensor: TracedTensor) -> tuple[int, ...]:
        """Return the strides that a tensor will have."""
        return self.fake(tensor).stride()

    def fake(self, tensor: TracedTensor) -> torch.Tensor:
        """Return a fake tensor, laid out as eager's would be: writes change no layout."""
        view = tensor._viewed_as
        if view is None:
            return self._fakes.of(tensor._first)
        known = self._of_views.get(id(tensor))
        if known is None or known[1] is not view:
            try:
                made = self._fakes.run(view.function, (self.fake(view.parent), *view.args), view.kwargs)
                made = made if view.index is None else made[view.index]
            except Exception:
                if not rests_on_unknown((view.parent._proxy, view.args, view.kwargs)):
                    raise
                made = fake_of(tensor._proxy)  # estimated sizes need not fit together
            known = self._of_views[id(tensor)] = (tensor, view, made)
        return known[2]

    def offset(self, tensor: TracedTensor) -> int:
        """Return where in its storage a tensor starts; the program is one for inputs that start where these do."""
        root = tensor._memory.root
        if root.source is not None:
            self._calls.ask(root, "storage_offset", root._input.example.storage_offset(), call=True)
        return int(self.fake(tensor).storage_offset())

    def assume(self, proxy: TensorProxy) -> None:
        """Say of a value that only the run of the program brings how it will be laid out: as nothing tells better."""
        with torch._C.DisableTorchFunction():
            self._fakes.assume(proxy)

    def alike(self, tensor: TracedTensor, other: TracedTensor) -> None:
        """Let a tensor be laid out as another one; each has memory of its own."""
        self._fakes.alike(tensor._first, other._first)

    def shared(
        self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], parent: TracedTensor
    ) -> list[tuple[bool, bool]]:
        """Tell what the results of a call share with the tensor that they may be views of.

        Args:
            function, args, kwargs: the call.
            parent: its first argument.

        Returns:
            for each result, whether it shares the memory of ``parent``, and whether it is ``parent``.
        """
        calls = self._calls
        unwritten = not parent._memory.version and parent._proxy.strides is not None and not calls.symbolic
        given, named = calls.values(args), calls.values(kwargs)
        if unwritten and lays_out(function, given, named) and not rests_on_unknown((given, named)):
            with torch._C.DisableTorchFunction(), torch.no_grad():
                made = laid_out(function, (parent._proxy, *given[1:]), named, True)
            specs = [made] if isinstance(made, TensorSpec) else [s for s in made if isinstance(s, TensorSpec)]
            return [(s.viewed == 0, s.argument == 0) for s in specs]
        base = outside_inference_mode(fake_of)(parent._proxy) if unwritten else self.fake(parent)
        try:
            made = self._fakes.run(function, (base, *given[1:]), named)
        except Exception:  # what the call returns is known: it reads values there, or estimated sizes do not fit
            if is_only_view(function, (base, *given[1:]), named) and not rests_on_unknown((given, named)):
                raise  # the tensor is laid out otherwise, which its metadata do not tell where sizes are open
            return [(v is not None, False) for v in viewed(function, given, named)]
        results = [made] if isinstance(made, torch.Tensor) else [t for t in made if isinstance(t, torch.Tensor)]
        return [(storage_key(t) == storage_key(base), t is base) for t in results]
