"""The executors that hand regions to Inductor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from thunder_executors import Declined, Finish, FusionExecutor, Implementation, Region
from thunder_executors_inductor.availability import missing
from thunder_executors_inductor.eligible import Takes, computes, eligible, is_product
from thunder_executors_inductor.kernels import Kernels, ordered
from thunder_executors_inductor.loss import open_losses
from thunder_executors_inductor.modes import MODES
from thunder_executors_inductor.together import compile_together
from thunder_executors_inductor.views import without_views
from thunder_ir import BoundSymbol, OpTags, TensorProxy, Trace
from thunder_ir.passes import expand
from thunder_loops import cost_again


class InductorExecutor(FusionExecutor):
    """Compiles regions by Inductor. Regions that are equal but for names are compiled once, when they first run.

    Args:
        name: under which it is asked for.
        whole: whether products, convolutions and attention belong into regions, too.
        products: whether products of matrices do, where they stand between loops.
        mode: ``"default"``, ``"reduce-overhead"`` or ``"max-autotune"``, as ``torch.compile`` has them.
        wants: which regions it takes; all if not given.
        options: settings of Inductor, beside those of the mode.
        devices: kinds of devices whose tensors it takes, such as ``("cuda",)``; all if not given.
        careful: who takes part where the user names no executor.

    Raises:
        ValueError: there is no such mode.

    Example:
        >>> from thunder_executors_inductor import InductorExecutor
        >>> InductorExecutor("mine", mode="fast")
        Traceback (most recent call last):
        ValueError: Inductor has no mode 'fast': it has default, reduce-overhead, max-autotune
    """

    options: tuple[str, ...] = ("whole", "mode")

    def __init__(
        self,
        name: str,
        *,
        whole: bool = False,
        products: bool = False,
        mode: str = "default",
        wants: Callable[[Region], bool] | None = None,
        options: dict[str, Any] | None = None,
        devices: tuple[str, ...] | None = None,
        careful: InductorExecutor | None = None,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"Inductor has no mode {mode!r}: it has {', '.join(MODES)}")
        super().__init__(
            name,
            version=torch.__version__,
            missing=missing,
            install="apt install g++",
            default=False,
            priority=5,
            checks=False,  # at each call, what Inductor returns: it is made of the same graph
            careful=careful,
        )
        self.devices = devices
        self.whole = whole
        self.takes = Takes.WHOLE if whole else Takes.PRODUCTS if products else Takes.LOOPS
        self.mode = mode
        self.wants = wants
        self.settings = dict(options or {})
        self.kernels = Kernels({**MODES[mode], **self.settings})
        self.finishing.append(Finish(compile_together, fewest=2))
        self._taken = Implementation(self)
        self._variants: dict[tuple[bool, str], InductorExecutor] = {(whole, mode): self}
        if wants is None:
            open_losses(self)

    def configured(self, **options: Any) -> InductorExecutor:
        """Return the same executor with ``whole`` or ``mode`` as they are given; each has kernels of its own.

        Args:
            options: ``whole``, ``mode``.

        Example:
            >>> from thunder_executors_inductor import inductor
            >>> inductor.configured(whole=True).whole, inductor.configured(mode="default") is inductor
            (True, True)
        """
        whole, mode = bool(options.get("whole", self.whole)), options.get("mode", self.mode)
        if (whole, mode) not in self._variants:
            made = InductorExecutor(
                self.name, whole=whole, products=self.takes is Takes.PRODUCTS, mode=mode, wants=self.wants,
                options=self.settings,
            )  # fmt: skip
            return self._variants.setdefault((whole, mode), made)
        return self._variants[whole, mode]

    def find(self, bound: BoundSymbol) -> Implementation | Declined:
        """Return that a region takes this call, or parts of it, or why not."""
        if self.devices is not None and not _on(self.devices, bound):
            return Declined(f"where the user does not name it, it takes tensors of {' and '.join(self.devices)} alone")
        answer = eligible(bound, self.takes)
        if answer:
            return self._taken
        in_parts = super().find(bound) if self.implementations(bound.symbol) else None
        if isinstance(in_parts, Implementation):
            return in_parts
        return answer if isinstance(answer, Declined) else Declined("it declines")

    def differentiates(self, bound: BoundSymbol) -> bool:
        """Whether a call's derivative is left to regions: not that of attention and its like, which have kernels."""
        return not bound.has_tag(OpTags.MATMUL)

    def again(self, bound: BoundSymbol) -> float | None:
        """Return what computing a call once more costs within loops; not of what has a kernel that is no loop."""
        if self.wants is not None or not self.differentiates(bound) or not self.can_fuse(bound):
            return None
        prims = expand(Trace("call", tuple(bound.inputs), (bound,), tuple(bound.outputs))).bound_symbols
        return None if any([b.has_tag(OpTags.MATMUL) for b in prims]) else cost_again(prims)

    def fuse(self, region: Region, name: str) -> list[BoundSymbol] | None:
        """Return the calls of a region's kernel and of views; ``None`` where that saves nothing, or is not wanted."""
        computing = [bound for bound in region.bound_symbols if computes(bound)]
        if not self.whole and (len(computing) < 2 or all([is_product(bound) for bound in computing])):
            return None
        if self.wants is not None and not self.wants(region):
            return None
        views: tuple[BoundSymbol, ...] = ()
        if not self.whole and all([_on(("cpu",), bound) for bound in region.bound_symbols]):
            region, views = without_views(region)  # elsewhere, steps wait for what calls kernels: for views, too
        region = ordered(region)
        return [self.fused(region, name, self.kernels.of(region)), *views]


class ByDefault(InductorExecutor):
    """Inductor where the user names none: on GPUs, as compiling C++ takes long, and without options of its own."""

    options = ()


def _on(devices: tuple[str, ...], bound: BoundSymbol) -> bool:
    return all([p.device.type in devices for p in (*bound.inputs, *bound.outputs) if isinstance(p, TensorProxy)])


def has_call(*names: str) -> Callable[[Region], bool]:
    """Return whether a region has a call of one of some operations."""

    def wants(region: Region) -> bool:
        return any([bound.symbol.name in names for bound in region.bound_symbols])

    return wants


inductor = InductorExecutor("inductor", careful=ByDefault("inductor", products=True, devices=("cuda",)))
torchcompile = InductorExecutor("torchcompile", whole=True)
torchcompile_cat = InductorExecutor("torchcompile_cat", wants=has_call("cat", "concat", "concatenate", "stack"))
torchcompile_xentropy = InductorExecutor("torchcompile_xentropy", wants=has_call("cross_entropy"))

__all__ = ["InductorExecutor", "has_call", "inductor", "torchcompile", "torchcompile_cat", "torchcompile_xentropy"]
