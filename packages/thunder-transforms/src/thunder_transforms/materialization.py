"""Models that begin on the meta device: memory is taken once the other transforms have changed what is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from thunder_frontend import Transform
from thunder_transforms.layers import original
from thunder_transforms.state import load_original_state_dict

Place = tuple[torch.nn.Module, str]
Init = Callable[["MaterializationTransform", torch.nn.Module], None]


class MaterializationTransform(Transform):
    """Give parameters and buffers of the meta device memory, and values.

    It stands last, so that what is quantised takes its memory as that. Tied parameters stay tied.

    Args:
        device: where they are to be.
        init: how values come: one of the two functions below.

    Raises:
        RuntimeError: when the module is compiled; something would be left without a value. The error names it.

    Example:
        >>> import torch
        >>> from thunder_frontend import jit
        >>> from thunder_transforms import MaterializationTransform
        >>> with torch.device("meta"):
        ...     model = torch.nn.Sequential(torch.nn.Linear(4, 4))
        >>> start = MaterializationTransform("cpu", init=MaterializationTransform.init_from_original_module_init())
        >>> jit(model, transforms=[start])(torch.ones(1, 4)).device
        device(type='cpu')
    """

    def __init__(self, device: str | torch.device, *, init: Init) -> None:
        self.device, self.init = torch.device(device), init

    def transform_module(self, model: torch.nn.Module) -> None:
        self.init(self, model)

    @staticmethod
    def init_from_original_module_init() -> Init:
        """Return an ``init`` by which each submodule draws its own values: by its ``reset_parameters``."""
        return _reset

    @staticmethod
    def init_from_original_state_dict(state: Mapping[str, torch.Tensor]) -> Init:
        """Return an ``init`` that takes values from a state dict of the original, through the transforms."""

        def init(transform: MaterializationTransform, model: torch.nn.Module) -> None:
            given = _taking_memory(original(model), transform.device)
            if not given:  # as of a copy
                return
            missing = load_original_state_dict(model, state, strict=False).missing_keys
            loaded = set(model.state_dict()) - set(missing)
            _refuse([name for name, _ in given if name not in loaded], "the state dict has no entry for it")

        return init


def _reset(transform: MaterializationTransform, model: torch.nn.Module) -> None:
    """Let each submodule that had something on the meta device draw its values."""
    given = _taking_memory(original(model), transform.device)
    holders = {id(holder): holder for _, (holder, _) in given}
    for holder in holders.values():
        reset = getattr(holder, "reset_parameters", None)
        if callable(reset):
            reset()
    _refuse([name for name, place in given if _is_unset(_tensor(place))], "no reset_parameters gives it one")


def _taking_memory(model: torch.nn.Module, device: torch.device) -> list[tuple[str, Place]]:
    """Put what is on the meta device on another one, without a value; return where that was, by its names.

    Floating-point tensors are filled with NaN and integers with one number, so that what is not set is found.
    """
    made: dict[int, torch.Tensor] = {}
    given = []
    for name, (holder, key) in list(_places(model)):
        old = _tensor((holder, key))
        if old.device.type != "meta":
            continue
        if id(old) not in made:
            new = torch.empty_like(old, device=device)
            made[id(old)] = _unset(new)
            if isinstance(old, torch.nn.Parameter):
                made[id(old)] = torch.nn.Parameter(new, requires_grad=old.requires_grad)
        table: dict[str, Any] = holder._parameters if key in holder._parameters else holder._buffers
        table[key] = made[id(old)]
        given.append((name, (holder, key)))
    return given


def _places(model: torch.nn.Module) -> Iterator[tuple[str, Place]]:
    """Yield where each parameter and buffer is, tied ones at each of their places."""
    for prefix, holder in model.named_modules():
        for key, tensor in (*holder._parameters.items(), *holder._buffers.items()):
            if tensor is not None:
                yield f"{prefix}.{key}" if prefix else key, (holder, key)


def _tensor(place: Place) -> torch.Tensor:
    holder, key = place
    found = holder._parameters[key] if key in holder._parameters else holder._buffers[key]
    assert found is not None
    return found


UNSET = 97
"""What integers are filled with that are not set yet."""


def _unset(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.dtype is torch.bool:
        return tensor.zero_()
    return tensor.fill_(float("nan") if tensor.is_floating_point() or tensor.is_complex() else UNSET)


def _is_unset(tensor: torch.Tensor) -> bool:
    if tensor.is_floating_point() or tensor.is_complex():
        return bool(tensor.isnan().any())
    return tensor.dtype is not torch.bool and tensor.numel() > 0 and bool((tensor == UNSET).all())


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise RuntimeError(
            f"{', '.join(names)} would be left without a value: {why}; make it on another device than meta, or give it "
            "a value in a transform before this one"
        )
