"""PyTorch's settings for a process or a thread: what each of them is, and how it is set."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from thunder_torch.uncast import AUTOCAST_DEVICES

GETTERS = ("_get_{}", "get_{}", "_is_{}", "is_{}", "_{}")
OTHERWISE = re.compile(
    "_?set_(torch_function_state|tracing_state|meta_in_tls.*|only_lift_cpu_tensors|thread_name|graph_exec_group|"
    "override_stale_capture_stream|num_interop_threads|autocast_(cpu|gpu|ipu|xla)_.*|default_dtype|grad_enabled|"
    "deterministic_algorithms|anomaly_enabled|autocast_enabled|autocast_dtype)"
)
"""Setters in C of what acquisition itself works with, of what can be set only once, and of what has a row below."""
OF_KERNELS = re.compile("cudnn|cublas|blas|linalg|mkldnn|onednn|nnpack|deterministic|precision|qengine|miopen|carveout")
UNKNOWN = "unknown"
"""In the place of the value of a setting that PyTorch does not tell."""


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Something that PyTorch is set to.

    Args:
        name: of it.
        get: returns what it is.
        assign: sets it.
        guarded: whether every program is compiled for what it is.
        of_kernels: whether it says how operations compute, or what they return: one depends on what it is at that place
            of the program.
        setter: a function that sets it and nothing else, if there is one.
    """

    name: str
    get: Callable[[], Any]
    assign: Callable[[Any], Any]
    guarded: bool = False
    of_kernels: bool = False
    setter: Callable[..., Any] | None = None

    def now(self) -> Any:
        """Return what it is; :data:`UNKNOWN` if PyTorch does not tell."""
        try:
            return self.get()
        except RuntimeError:  # such as the precision of products, once it was set for each backend on its own
            return UNKNOWN

    def set(self, value: object) -> None:
        """Set it to what :meth:`now` returned."""
        if value is not UNKNOWN:
            self.assign(value)

    def __repr__(self) -> str:
        return f"<setting {self.name}>"


def _in_pairs() -> Iterator[Setting]:
    """Yield the settings for which PyTorch has a function in C that sets one and a function that tells."""
    for setter in dir(torch._C):
        name = re.sub(r"^_?set_", "", setter)
        if name == setter or OTHERWISE.fullmatch(setter):
            continue
        for getter in GETTERS:
            get = getattr(torch._C, getter.format(name), None)
            if get is not None and _tells(get):
                own, of_kernels = getattr(torch._C, setter), OF_KERNELS.search(name) is not None
                # those of kernels may set another one with it, as the precision of products does
                yield Setting(name, get, _taking(own, get()), False, of_kernels, None if of_kernels else own)
                break


def _tells(get: Callable[[], Any]) -> bool:
    try:
        get()
    except (TypeError, RuntimeError):  # it wants arguments
        return False
    return True


def _taking(setter: Callable[..., Any], example: object) -> Callable[[Any], Any]:
    """Return a setter that takes what the getter returns."""
    return (lambda value: setter(*value)) if isinstance(example, tuple) else setter


def _of_autocast(kind: str) -> Iterator[Setting]:
    yield Setting(
        f"autocast on {kind}",
        lambda: torch.is_autocast_enabled(kind),
        lambda value: torch.set_autocast_enabled(kind, value),
        True,
    )
    yield Setting(
        f"dtype of autocast on {kind}",
        lambda: torch.get_autocast_dtype(kind),
        lambda value: torch.set_autocast_dtype(kind, value),
    )


def _depth_of_autocast() -> int:
    depth = torch.autocast_increment_nesting()
    torch.autocast_decrement_nesting()
    return depth - 1


def _set_depth_of_autocast(depth: int) -> None:
    for _ in range(_depth_of_autocast(), depth):
        torch.autocast_increment_nesting()
    for _ in range(depth, _depth_of_autocast()):
        torch.autocast_decrement_nesting()


def _of_attention(name: str) -> Setting:
    get, assign = getattr(torch._C, f"_get_{name}_sdp_enabled"), getattr(torch._C, f"_set_sdp_use_{name}")
    return Setting(f"attention by {name}", get, assign, True)


def _precision(backend: str, operation: str) -> Setting:
    return Setting(
        f"precision of {backend} {operation}",
        lambda: torch._C._get_fp32_precision_getter(backend, operation),
        lambda value: torch._C._set_fp32_precision_setter(backend, operation, value),
        of_kernels=True,
    )


def _default_device() -> Any:
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def _print_options() -> tuple[Any, ...]:
    return tuple(vars(torch._tensor_str.PRINT_OPTS).items())


PRECISIONS = (
    ("generic", "all"),
    *[(backend, operation) for backend in ("cuda", "mkldnn") for operation in ("all", "matmul", "conv", "rnn")],
)
SETTINGS = (
    *_in_pairs(),
    *[_precision(*each) for each in PRECISIONS],
    Setting("grad mode", torch.is_grad_enabled, torch._C._set_grad_enabled, True),
    Setting("default dtype", torch.get_default_dtype, torch.set_default_dtype, True, True),
    Setting("default device", _default_device, torch.set_default_device, True, True),
    *[setting for kind in AUTOCAST_DEVICES for setting in _of_autocast(kind)],
    Setting("depth of autocast", _depth_of_autocast, _set_depth_of_autocast),
    *[_of_attention(name) for name in ("math", "flash", "mem_efficient", "cudnn")],
    Setting(
        "deterministic algorithms",
        lambda: (
            torch._C._get_deterministic_algorithms(),
            torch._C._get_deterministic_algorithms_warn_only(),
        ),
        lambda value: torch._C._set_deterministic_algorithms(value[0], warn_only=value[1]),
        guarded=True,
        of_kernels=True,
    ),
    Setting(
        "detection of anomalies",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda value: torch.set_anomaly_enabled(*value),
    ),
    Setting("print options", _print_options, lambda value: vars(torch._tensor_str.PRINT_OPTS).update(value)),
)
"""In the order in which they are set."""


def settings_now() -> tuple[Any, ...]:
    """Return what all of :data:`SETTINGS` are."""
    return tuple([setting.now() for setting in SETTINGS])


def settings_as_text() -> str:
    """Return what all settings are as a text, for guards."""
    return text_of(settings_now())


def text_of(values: tuple[Any, ...]) -> str:
    """Return what :func:`settings_now` returned as a text."""
    return str([f"{setting.name}: {value}" for setting, value in zip(SETTINGS, values, strict=True)])


__all__ = ["SETTINGS", "Setting", "settings_as_text", "settings_now", "text_of"]
